/* May a directory that a variable or a link leads to be shown to a command? Not a home, not what holds the caller's
 * home, not a place of secrets nor what holds one. Paths are absolute and normalised. */
#pragma once
#include <stdbool.h>

#include "base/host-watch.h"

/* The caller's home as it is named and as it is; either may be NULL. Borrowed. */
struct judge {
	const char *home, *home_real;
	struct host_watch_set *watches;        /* watches what is looked at; or NULL */
};

/* May something be put at this path inside? Of the name only; asks nothing of the file system. */
bool judge_may_name(const struct judge *judge, const char *path);
/* May what is at this canonical path be seen? `beneath`: a root that was judged before, or NULL. */
bool judge_may_show(const struct judge *judge, const char *real, const char *beneath);

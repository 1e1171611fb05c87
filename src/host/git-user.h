/* The caller's git settings that hold inside, too: those that run nothing and redirect nothing, by
 * src/policy/git-settings.def. */
#pragma once
#include <stddef.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/host-watch.h"

/* *ret_text: settings of the files that git_identity() looks at, as the text of a configuration, with a comment that
 * names what was left out; NULL where there are none. -1 when memory is short. */
int git_user_settings(struct arena *arena, const char *home, const char *xdg_config_home, const char *const *environment,
                      struct host_watch_set *watches, const char **ret_text) must_check;

/* The same of these bytes, added to what `user` has. What git would refuse to parse ends it. */
struct git_user {
	struct arena *arena;
	char *kept, *left;              /* sections, and names in a comment; NULL: none yet */
	size_t kept_length, left_length;
	bool failed;                    /* memory is short */
};
void git_user_parse(struct git_user *user, const char *bytes, size_t length);

/* Which names that a default `deny` glob means are shown all the same, since hiding them breaks work and keeps nothing
 * secret. Judged at each start, by what the file is and has in it:
 *
 *   .env.example and its like       by the name, if it is a regular file with no other name
 *   *.pem and *.key                 up to 16 MiB, without a private key in it
 *   any of them                     up to 1 MiB, with the content that the git index of its repository names for it
 *
 * What a glob of somebody's own means is hidden, whatever it has in it. What cannot be judged is hidden; names->late
 * counts what there was no time for. */
#pragma once
#include "paths/index/contents.h"
#include "paths/index/names.h"

#define SHOWN_CONTENT_MAX (1u << 20)

/* Sets `is_shown` of names; `deny` is what they were found by. A file whose shown_line() is among `kept` (may be NULL)
 * is shown, too. -1 when memory is short. */
int shown_judge(struct arena *arena, int root_fd, const char *root_path, const struct strings *deny,
                const struct strings *kept, struct contents *contents, struct names *names) must_check;
/* The hash of what a file has in it, a space, and its path. NULL: it is not there, no regular file, too large, or
 * memory is short. */
const char *shown_line(struct arena *arena, int root_fd, const char *path, struct contents *contents);

/* The committer: name and e-mail of the caller's git configuration, and nothing else of it. */
#pragma once
#include <stddef.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/host-watch.h"
#include "cordon-internal.h"

/* As git finds them: GIT_AUTHOR_NAME and GIT_AUTHOR_EMAIL, else the last user.name and user.email of the files of
 * git-files.h; else, for the e-mail, EMAIL.
 * NULL for what is missing. What cannot be read or parsed counts as missing: the only failure is want of memory.
 * `home` and `environment` (K=V, ended by NULL) may be NULL. What is returned lives in the arena or in `environment`.
 * `watches` (or NULL) watches the files. */
int git_identity(struct arena *arena, const char *home, const char *xdg_config_home, const char *const *environment,
                 struct host_watch_set *watches, const char **ret_name, const char **ret_email,
                 struct cordon_error *err) must_check;

/* [user] name and email in the text of a git configuration; the last of each counts, as for git. No include is
 * followed. Parsing ends at what git would refuse; what came before it counts. Sets only what it finds. -1 when memory
 * is short. */
int git_identity_parse(struct arena *arena, const char *text, size_t length, const char **name, const char **email)
	must_check;

/* The text of a configuration with just these; "" if both are NULL. NULL when memory is short. */
const char *git_identity_text(struct arena *arena, const char *name, const char *email);

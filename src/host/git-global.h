/* Of the caller's own git configuration, what needs other files: which files git ignores everywhere, and who commits in
 * this directory. */
#pragma once
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/host-watch.h"

#define GIT_IGNORE_MAX (32u << 10)

struct git_global {
	const char *home, *xdg_config_home;     /* or NULL */
	const char *const *environment;
	const char *workspace;
	struct host_watch_set *watches;         /* or NULL */
};

/* *ret_text: the file that core.excludesFile names, or git/ignore; NULL where there is none, or it is a link, larger
 * than GIT_IGNORE_MAX, no text, or another user could have written it. -1 when memory is short. */
int git_global_ignored(struct arena *arena, const struct git_global *global, const char **ret_text) must_check;

/* user.name and user.email of the files that `includeIf "gitdir:..."` names for the workspace; sets only what it finds.
 * Those files include no others. -1 when memory is short. */
int git_global_identity(struct arena *arena, const struct git_global *global, const char **name,
                        const char **email) must_check;

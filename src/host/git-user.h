/* The git settings of the caller and the host that hold inside, too: those that run nothing and redirect nothing, by
 * src/policy/git-settings.def, and the filter that `git lfs install` writes, where commands find git-lfs. */
#pragma once
#include <stddef.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/host-watch.h"

struct git_user_search {
	const char *home, *xdg_config_home;     /* or NULL */
	const char *const *environment;         /* the caller's, K=V, ended by NULL; or NULL */
	const struct strings *shown;            /* what is shown of toolchains; or NULL */
	struct host_watch_set *watches;         /* or NULL */
};

/* *ret_text: settings of the files of git-files.h, as the text of a configuration, with a comment that names what was
 * left out; NULL where there are none. -1 when memory is short. */
int git_user_settings(struct arena *arena, const struct git_user_search *search, const char **ret_text) must_check;

/* The names of those that were left out, separated by spaces; NULL where there are none. -1 when memory is short. */
int git_user_left_out(struct arena *arena, const struct git_user_search *search, const char **ret_names) must_check;

enum git_user_lfs {
	GIT_USER_LFS_CLEAN,
	GIT_USER_LFS_SMUDGE,
	GIT_USER_LFS_PROCESS,
	GIT_USER_LFS_REQUIRED,
	GIT_USER_LFS_MAX
};

/* The same of these bytes, added to what `user` has. What git would refuse to parse ends it. */
struct git_user {
	struct arena *arena;
	char *kept, *left;              /* sections, and names in a comment; NULL: none yet */
	size_t kept_length, left_length;
	const char *lfs[GIT_USER_LFS_MAX]; /* values of the lines of git-lfs's filter; git_user_end() judges them */
	bool failed;                    /* memory is short */
};
void git_user_parse(struct git_user *user, const char *bytes, size_t length);
void git_user_end(struct git_user *user, bool has_lfs);

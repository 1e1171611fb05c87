/* What git would find in a tree that may be hostile. Whatever a name leads to is opened by descriptor with no symbolic link on
 * the way; a link in place of the name itself is never followed, since where it leads can be changed later. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "session/git-config.h"
#include "session/names.h"

struct git_look {
	int root_fd;                    /* borrowed, as are: */
	const char *root_path;          /* canonical */
	const struct names *names;      /* of now */
	char *buffer;                   /* what a file is read into, one for all of them; NULL at first */
};
void git_look_end(struct git_look *look);

/* False: it cannot be read as a regular file. */
bool git_look_config(struct git_look *look, const char *path, struct git_config_verdict *ret_verdict);

/* Whether a `.git` file leads to a repository whose configuration is a protected name itself, by which that directory
 * cannot be taken away or turned into a link either. */
bool git_look_leads_inside(struct git_look *look, const char *path);

/* Whether a `commondir` is that of a further working tree and leads to the repository it lies in: `git worktree` writes the one
 * value that does. */
bool git_look_stays_inside(struct git_look *look, const char *path);

/* Calls `take` for each entry of a directory. 1 when there are too many: then it was called for some of them. -1 when it says so.
 * None where it cannot be read. */
int git_look_each(const struct git_look *look, const char *path, size_t max, int (*take)(void *arg, int fd, const char *leaf),
                  void *arg);

/* A hook that git never runs. */
bool git_look_is_sample(const char *leaf);

/* What git would find in a tree that may be hostile. Whatever a name leads to is opened by descriptor with no symbolic
 * link on the way; a link in place of the name itself is never followed, since where it leads can be changed later. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "paths/planted/git-config.h"
#include "paths/index/table.h"
#include "paths/index/names.h"

struct git_tree {
	int root_fd;                    /* borrowed, as are: */
	const char *root_path;          /* canonical */
	const struct names *names;      /* of now */
};
/* All that a command may write: a working tree may lie in another one than its repository. */
struct git_trees {
	const struct git_tree *items;
	size_t count;
	bool incomplete;                /* the commands that are judged may have had more of them */
};
/* A configuration as it was when it was read. */
struct git_read {
	uint64_t device, inode, size;
	int64_t ctime_ns;
	char worktree[GIT_CONFIG_WORKTREE_SIZE];        /* `core.worktree`, or "" */
	bool known;                     /* the facts are all of them */
	size_t count;
	struct git_config_fact facts[];
};
struct git_look {
	const struct git_trees *trees;
	const struct git_tree *tree;    /* the one that is looked at, of which all paths are */
	char *buffer;                   /* what a file is read into, one for all of them; NULL at first */
	struct git_config_fact *facts;  /* room for those of one file; NULL at first */
	struct git_read **read;         /* large files: each of them may have ten thousand names */
	size_t read_count;
};
void git_look_end(struct git_look *look);

/* The whole path of what has this one in the tree. */
#define GIT_LOOK_PATH_SIZE (4096 + NAMES_ENTRY_SIZE)
void git_look_whole_path(const struct git_tree *tree, const char *path, char ret_path[GIT_LOOK_PATH_SIZE]);

/* Whether one of the trees before this one has the name, too, since one lies in the other: it is judged there. */
bool git_look_is_anothers(const struct git_look *look, const struct name *name);

/* What a configuration has, for git_look_config() after the command. The facts are allocated in the arena. -1 when
 * memory is short. What cannot be read is not known. */
int git_look_config_before(struct git_look *look, struct arena *arena, const char *path,
                           struct git_config_before *ret_before) must_check;
/* `before` is NULL for a new file. False: it cannot be read as a regular file. */
bool git_look_config(struct git_look *look, const char *path, const struct git_config_before *before,
                     struct git_config_verdict *ret_verdict);

/* A file's text, in the look's buffer until the next call. NULL: it cannot be read as a regular file. What is longer
 * than a configuration may be is cut one byte later. */
const char *git_look_text(struct git_look *look, const char *path, size_t *ret_length);

/* Whether a `.git` file leads to a repository in one of the trees whose configuration is a protected name itself, by
 * which that directory cannot be taken away or turned into a link either. */
bool git_look_leads_inside(struct git_look *look, const char *path);

/* Whether a `commondir` is that of a further working tree and leads to the repository it lies in: `git worktree` writes
 * the one value that does. */
bool git_look_stays_inside(struct git_look *look, const char *path);

/* Calls `take` for each entry of a directory. 1 when there are too many: then it was called for some of them. -1 when
 * it says so. None where it cannot be read. */
int git_look_each(const struct git_look *look, const char *path, size_t max,
                  int (*take)(void *arg, int fd, const char *leaf), void *arg);

/* Whether git would run a hook that is this, or could be made to by its other name. */
struct names_stat;
bool git_look_could_run(const char *leaf, const struct names_stat *stat);
/* A hook that git never runs. */
bool git_look_is_sample(const char *leaf);

/* What a command left behind under a protected name, to run later: found when it has ended, named, and by policy moved
 * out of the workspace. The pattern of use:
 *
 *     names_find(…, &names_before) in all trees; planted_record(…, &trees, &trees.items[i], &before) in each;
 *     the command runs;
 *     do names_find(…, &names_after); while (planted_unlock(root_fd, &names_before, &names_after)); in all trees
 *     planted_check(…, &trees, &trees.items[i], &before, quarantine_fd, &planted) in each, with the names of now
 *
 * What was there before is judged as well if it is not what it was, whatever was to keep it from change: another
 * command that runs at the same time can take a mount away, and a second name lets a file be changed past it. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "paths/planted/git-look.h"
#include "paths/index/names.h"

struct cordon_error;

/* A file directly in a protected directory, as it was; or what a protected file came to when it was judged. */
struct planted_seen {
	const char *path;
	uint64_t device, inode, size;
	int64_t ctime_ns;
	const struct git_config_before *config; /* what a configuration had; or NULL */
};

struct planted_before {
	const struct names *names;      /* borrowed */
	struct planted_seen *seen;      /* by path */
	size_t count, capacity;
	bool complete;                  /* no bound cut the record short */
};

struct planted_file {
	const char *path;               /* relative to the root; borrowed from the names */
	const char *note;               /* why, and what was done about it */
	const char *quarantined_as;     /* its name in the quarantine directory, or NULL */
	bool harmful;
	bool remains;                   /* harmful, and still where it was: neither moved nor removed */
};

struct planted {
	struct planted_file *items;
	size_t count, capacity;
	size_t harmful;                 /* how many of them */
	bool unfinished;                /* some that were there before could not be looked at in time */
};

/* `tree` is one of `trees`; its names are borrowed. Where it takes longer than 2 s the record is not complete. */
int planted_record(struct arena *arena, const struct git_trees *trees, const struct git_tree *tree,
                   struct planted_before *ret_before, struct cordon_error *err) must_check;

/* A directory that is called as hooks are but is the repository of a submodule of that name: it must stay writable. */
bool planted_is_repository(const struct git_tree *tree, const struct name *name);

/* Was it, or what it lies in, masked before? Then it was covered, and the command had no way to it. A link is not: what
 * it leads to is. */
bool planted_was_covered(const struct names *before, const struct name *name);

/* Forgets the masked directories that are not what they were: another command took them away, and the mask with
 * them. */
void planted_forget_replaced(int root_fd, struct names *before);

/* Gives the owner's rights back on directories that the command took them from, lest something hide there. True: look
 * for names again. At most as often as directories nest, unless another command takes them away again. */
bool planted_unlock(int root_fd, const struct names *before, const struct names *after);
/* Likewise on the root, without which there are no names. */
void planted_unlock_root(int root_fd);

/* Instead of a directory for what is harmful. */
#define PLANTED_LOOK (-1)               /* leave it, only say what there is */
#define PLANTED_NO_QUARANTINE (-2)      /* there is no such directory: remove it */

/* Judges every protected name that is new or changed. Harmful files are moved to `quarantine_fd` (a directory that only
 * cordon can write), without their right to be executed; a file that cannot be moved there is removed or emptied, which
 * needs no space. Nothing harmful: named as kept. A file that cannot be removed either is no error, its note says so.
 * Where there are more than can be judged in reasonable time, the rest counts as harmful. */
int planted_check(struct arena *arena, const struct git_trees *trees, const struct git_tree *tree,
                  const struct planted_before *before, int quarantine_fd, struct planted *ret_planted,
                  struct cordon_error *err) must_check;

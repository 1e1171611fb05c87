/* What a command left behind under a protected name, to run later: found when it has ended, named, and by policy moved
 * out of the workspace. The pattern of use:
 *
 *     names_find(…, &names_before) in all trees; planted_record(…, &trees, &trees.items[i], budget_us, &before) in each;
 *     the command runs;
 *     do names_find(…, &names_after); while (planted_unlock(root_fd, &names_before, &names_after)); in all trees
 *     planted_check(…, &trees, &trees.items[i], &before, quarantine_fd, &planted) in each, with the names of now
 *
 * What was there before is judged as well if it is not what it was, whatever was to keep it from change: another command
 * that runs at the same time can take a mount away, and a second name lets a file be changed past it. And so are directories in
 * which git looks for a repository where a known one is none any more: the root, and what lies above a known one. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "session/git-look.h"
#include "session/names.h"

struct cordon_error;

/* A file directly in a protected directory, as it was; or what a protected file came to when it was judged. */
struct planted_seen {
	const char *path;
	uint64_t device, inode, size;
	int64_t ctime_ns;
	const unsigned char *digest;    /* of a configuration that would do harm; or NULL */
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
	const char *quarantined_as;     /* its name in the quarantine directory, or NULL: it is where it was */
	bool harmful;
};

struct planted {
	struct planted_file *items;
	size_t count, capacity;
	size_t harmful;                 /* how many of them */
};

/* `tree` is one of `trees`; its names are borrowed. `budget_us` is how long looking into files and directories may take; what is
 * not looked into is still known by its change time. UINT64_MAX: no bound, for where nothing keeps them from change. */
int planted_record(struct arena *arena, const struct git_trees *trees, const struct git_tree *tree, uint64_t budget_us,
                   struct planted_before *ret_before, struct cordon_error *err) must_check;

/* A directory that is called as hooks are but is the repository of a submodule of that name: it must stay writable. */
bool planted_is_repository(const struct git_tree *tree, const struct name *name);

/* Was it, or what it lies in, masked before? Then it was covered, and the command had no way to it. A link is not: what it
 * leads to is. */
bool planted_was_covered(const struct names *before, const struct name *name);

/* Forgets the masked directories that are not what they were: another command took them away, and the mask with them. */
void planted_forget_replaced(int root_fd, struct names *before);

/* Gives the owner's rights back on directories that the command took them from, lest something hide there. True: look for
 * names again. At most as often as directories nest, unless another command takes them away again. */
bool planted_unlock(int root_fd, const struct names *before, const struct names *after);
/* Likewise on the root, without which there are no names. */
void planted_unlock_root(int root_fd);

/* Judges every protected name that is new or changed. Harmful files are moved to `quarantine_fd` (a directory that only
 * cordon can write), without their right to be executed; -1 leaves them. Nothing harmful: named as kept. A file that
 * cannot be moved is no error, its note says so. Where there are more than can be judged in reasonable time, the rest
 * counts as harmful. */
int planted_check(struct arena *arena, const struct git_trees *trees, const struct git_tree *tree,
                  const struct planted_before *before, int quarantine_fd, struct planted *ret_planted, struct cordon_error *err) must_check;

/* The tables of trees that one process searches repeatedly, and which of their directories need no check because no
 * change was reported (base/host-watch.h). Shared by threads. */
#pragma once
#include "base/arena.h"
#include "base/host-watch.h"
#include "paths/index/table.h"
#include "paths/index/walk.h"
#include "paths/index/names.h"

/* What a tree is known by: which directory, by which name, whose look, and the rules its matches were judged by. */
struct names_memory_key {
	uint64_t device, inode;
	uint32_t user;
	const char *root_path;
	const struct name_rules *rules;
};

struct names_tree {
	struct names_table table;       /* as names_table_pack() leaves it; no directories: not known */
	struct names_progress progress;
	struct names_globs globs;       /* compiled from the rules, when first needed */
	struct arena arena;             /* of these and of the key */
	struct host_watch_set *watches;
};

/* The tree of this key, exclusively until it is given back. NULL: there is none. */
struct names_tree *names_memory_take(struct names_memory *memory, const struct names_memory_key *key);
void names_memory_give_back(struct names_memory *memory, struct names_tree *tree);

/* Moves the table to a walk; its directories without a reported change count as checked. False: it is not known. */
bool names_memory_load(struct names_tree *tree, uint64_t mounts, struct names_walk *walk);
/* Moves it back. Changes that were reported meanwhile are taken into account the next time. */
void names_memory_store(struct names_tree *tree, struct names_walk *walk, const struct names_progress *progress);

/* Where what commands write to the host's package caches is kept: DATA/layers/HASH, one directory for each session,
 * and one for each workspace where sandbox.caches says so. Their layout is base/layer-slot.h's. */
#pragma once
#include <stdint.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/error.h"

/* What a directory belongs to: a session's id, or with `of_workspace` the path of a workspace. */
struct layers_owner {
	bool of_workspace;
	const char *name;
};

/* The directory of all of them. NULL when memory is short. */
const char *layers_parent(struct arena *arena, const char *data_dir);
/* Its directory, made on first use, open for reading. */
int layers_open(struct arena *arena, const char *data_dir, const struct layers_owner *owner, const char **ret_path,
                int *ret_fd, struct cordon_error *err) must_check;

struct layers_kept {
	struct layers_owner owner;
	const char *path;
	uint64_t bytes;                         /* on disk */
	bool in_use;                            /* by a sandbox that is up */
};

/* Calls `tell` for each layer, in no order; its argument lives in the arena. A negative return value of `tell` ends it
 * and is the result. */
int layers_each(struct arena *arena, const char *data_dir, int (*tell)(void *arg, const struct layers_kept *kept),
                void *arg, struct cordon_error *err) must_check;
/* Removes what is in those of the owner (NULL: of all), but for slots that a sandbox has. */
struct layers_cleared {
	unsigned removed, in_use;               /* slots */
};
int layers_clear(struct arena *arena, const char *data_dir, const struct layers_owner *owner,
                 struct layers_cleared *ret, struct cordon_error *err) must_check;

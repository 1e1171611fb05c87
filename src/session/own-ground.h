/* The ground that cordon's own files lie on: every directory and link by which a path leads there, and the file itself. Kept as long as
 * nothing is heard of a change (base/vigil.h), for the question that nearly always has the same answer. Shared by threads. */
#pragma once
#include "base/place.h"
#include "base/vigil.h"

struct own_ground;
/* `files` and `directory` (each may be missing, or NULL) are borrowed. NULL when memory is short. */
struct own_ground *own_ground_new(struct vigil *vigil, const char *const files[2], const char *directory);
void own_ground_free(struct own_ground *ground);

/* True: nothing of it is the root of one of these trees, or beneath it, and no file has a second name. False: that is so, or is not known.
 * `mounts` is the version of the post. */
bool own_ground_is_elsewhere(struct own_ground *ground, uint64_t mounts, const struct place *workspace, const struct places *trees);

/* The fixed part of a private root, kept on disk: mount points, links, small files. It is the same for every command
 * with the same grants, so it is made once, and mounted read-only instead of being made again in memory each time. */
#pragma once
#include "base/arena.h"
#include "profile/profile.h"

/* Finds the skeleton for the operations up to the first lock, beneath `data_dir`, or makes it. *ret_path is its
 * directory and *ret_rest what is still to be done. -1 if there is none: the plan is then played as it is. */
int skeleton_get(struct arena *arena, const char *data_dir, const struct mount_plan *plan,
                 const char **ret_path, struct mount_plan *ret_rest);

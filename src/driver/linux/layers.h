/* Where what commands write to package caches goes: see base/layer-slot.h for the directory. A sandbox has a slot of
 * it, locked as long as the sandbox is up, by a descriptor that its init keeps: of two sandboxes of a session each has
 * layers of its own, and the second none of the first's. */
#pragma once
#include "base/arena.h"
#include "driver/linux/launch.h"
#include "profile/profile.h"

/* Fills root->layers, which is also *ret_layers (NULL: there are none), and root->layers_lock, which is the caller's
 * to close after the start. If there is no free slot, the layers are in memory. 0, or -1 when memory is short. */
int layers_prepare(struct arena *arena, const struct profile *profile, struct launch_root *root,
                   struct launch_layer **ret_layers) must_check;

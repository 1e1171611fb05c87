/* What must be hidden where all of the host's tree is in view: `host-readonly`. */
#pragma once
#include "base/arena.h"
#include "base/place.h"

/* Adds the known places of secrets in every home, and every unix socket with a listener. `home` is the caller's, or
 * NULL. 0, or -1 when memory is short. */
int whole_view_masks(struct arena *arena, const char *home, struct places *masks);

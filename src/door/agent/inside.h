/* A session's home as it lies on this machine. Commands write to it: every name in it is opened step by step, and no
 * link followed. */
#pragma once
#include <stdbool.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "cordon-internal.h"

/* Where it is. It is made with the session's first command; this is before. */
int inside_home(struct arena *arena, struct cordon *cordon, const char *session, const char **ret_home,
                struct cordon_error *err) must_check;
/* The directory that holds `name`, and its last part. With `make` those on the way are made, in the place of what is
 * none. -1 and errno: there is none. */
int inside_open_parent(int root, const char *name, bool make, const char **ret_last);

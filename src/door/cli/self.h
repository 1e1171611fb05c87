/* Where this program lies, for what is written down to be called later. */
#pragma once
#include "base/arena.h"
#include "base/cleanup.h"
#include "cordon-internal.h"

/* The path of the running program, in the arena. */
int self_path(struct arena *arena, const char **ret_path, struct cordon_error *err) must_check;
/* The same of another program beside it, which must be there and be executable. */
int self_beside(struct arena *arena, const char *name, const char **ret_path, struct cordon_error *err) must_check;
/* PREFIX/NAME, where this program is PREFIX/bin/cordon. */
int self_beneath_prefix(struct arena *arena, const char *name, const char **ret_path,
                        struct cordon_error *err) must_check;

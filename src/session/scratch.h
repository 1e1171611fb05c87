/* A directory for one command's temporary files, for drivers without a private root. Its owner holds a lock on it
 * while it is in use, so that what a killed owner left can be recognised, and the next command removes it. */
#pragma once
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/error.h"

/* Makes <data_dir>/scratch/<id>, with mode 0700, and removes those that are not in use. The lock lasts as long as
 * *ret_fd. */
int scratch_make(struct arena *arena, const char *data_dir, const char *id, const char **ret_path, int *ret_fd,
                 struct cordon_error *err) must_check;

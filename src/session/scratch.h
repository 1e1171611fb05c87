/* A directory for one command's temporary files, for drivers without a private root. It is in use while its owner holds
 * a lock on it, so that what a killed owner left is told from what is in use, and the next command clears it away. */
#pragma once
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/error.h"

/* Makes <data_dir>/scratch/<id>, with mode 0700, and removes those that nobody uses. The lock lasts as long as
 * *ret_fd. */
int scratch_make(struct arena *arena, const char *data_dir, const char *id, const char **ret_path, int *ret_fd,
                 struct cordon_error *err) must_check;

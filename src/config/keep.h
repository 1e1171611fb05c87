/* The last good text of each file of the configuration, and which bad one was reported, kept in `<data_dir>/config/`.
 * For when a file becomes invalid between two processes. All of it is best effort: where nothing can be kept, there is
 * nothing to fall back to. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

/* The text is good: keep it, if another one is kept, and forget what was reported. NULL: there is no file any more. */
void config_keep_good(const char *data_dir, const char *path, const char *text, size_t length);

/* The last good text of the file `path`, to be free()d, and where it is kept (in `kept_path`); NULL if there is
 * none. */
#define CONFIG_KEPT_PATH_SIZE 4096
char *config_keep_load(const char *data_dir, const char *path, size_t *ret_length,
                       char kept_path[CONFIG_KEPT_PATH_SIZE]);

/* Was this reason, about this text (may be NULL), not reported yet? With `mark` it is from now on. */
bool config_keep_is_news(const char *data_dir, const char *path, const char *text, size_t length, const char *reason,
                         bool mark);

/* Which files git reads its configuration from: git-config(1), "Files". */
#pragma once
#include <stddef.h>

#include "base/arena.h"
#include "base/cleanup.h"

#define GIT_FILES_MAX 3

/* Their absolute paths, whether they exist or not, in the order in which git reads them; GIT_CONFIG_SYSTEM,
 * GIT_CONFIG_NOSYSTEM and GIT_CONFIG_GLOBAL count as for git. `xdg_config_home` NULL or "": ~/.config. All arguments
 * but the first may be NULL. The number of paths, or -1 when memory is short. */
int git_files(struct arena *arena, const char *home, const char *xdg_config_home, const char *const *environment,
              const char *ret_paths[GIT_FILES_MAX]) must_check;

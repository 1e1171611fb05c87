/* The directories of a PATH: what is put there runs when a person types its name. */
#pragma once
#include "base/arena.h"
#include "base/cleanup.h"

#define SEARCH_PATH_MAX 256
/* Those that are there, by their canonical paths, each once; of a longer PATH the first SEARCH_PATH_MAX. `path` may be
 * NULL. -1 when memory is short. */
int search_path_directories(struct arena *arena, const char *path, struct strings *ret_directories) must_check;

/* The directories of a PATH: what is put there runs when a person types its name. */
#pragma once
#include <stdbool.h>

#include "base/arena.h"
#include "base/cleanup.h"

#define SEARCH_PATH_MAX 256
/* Those that are there, by their canonical paths, each once; of a longer PATH the first SEARCH_PATH_MAX. *ret_links:
 * the directories, likewise, of the symbolic links by which PATH leads to them. `path` may be NULL. 0, or a negative
 * errno: -ESTALE where links change meanwhile. */
int search_path_directories(struct arena *arena, const char *path, struct strings *ret_directories,
                            struct strings *ret_links) must_check;

/* Programs of the packages that the work in a directory needs, there to be written by whoever installs such: those of a
 * Python environment, and node_modules/.bin. That which a command could make of another directory, while that is kept
 * as it is, does not count. */
bool search_path_is_of_packages(const char *directory);

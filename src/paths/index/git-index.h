/* The index of a git repository (gitformat-index(5), versions 2 to 4), as far as it says which blob a path has.
 * Commands can write this file: what it says is compared with the contents of the files, and never trusted. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#define GIT_INDEX_BYTES_MAX (64u << 20)
#define GIT_INDEX_PATH_MAX 4096
#define GIT_HASH_MAX 32

struct git_index_entry {
	const char *path;                       /* asked for */
	unsigned char hash[GIT_HASH_MAX];
	bool found;                             /* as a regular file, merged */
};

/* Looks the entries up, which are sorted by path (strcmp()), where hashes have so many bytes: 20, or 32. Of an index
 * that is damaged, or not sorted, what was found before that counts. */
void git_index_find(const unsigned char *bytes, size_t length, size_t hash_size, struct git_index_entry *entries,
                    size_t count);

/* The table of a root, kept in a file between commands. The file only says which directories need not be read again:
 * if it is missing, damaged or owned by another user, that costs a full walk and nothing else. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "paths/index/table.h"
#include "paths/index/names.h"

#define NAMES_CACHE_SIZE_MAX (256 * 1024 * 1024)

/* What a cache file is about: the root, and the rules its matches were judged by. */
struct names_cache_key {
	unsigned char bytes[32];
	char name[65];                  /* the file's */
};
void names_cache_key_make(uint64_t device, uint64_t inode, const char *root_path, const struct name_rules *rules,
                          struct names_cache_key *ret_key);

/* The place's descriptor, or -1: there is none. */
int names_cache_place(struct names_place *place);

/* A descriptor of the file, and the table and progress in it; -1 where there is none to be used. */
int names_cache_load(int dir_fd, const struct names_cache_key *key, struct names_table *ret_table,
                     struct names_progress *ret_progress);

/* Puts a file of this name and content there, all at once. Failing is not an error: what is kept there can be found out
 * again. */
void names_cache_put(int dir_fd, const char *name, const void *bytes, size_t size);
/* Writes the file anew. The table must come from names_table_pack(). Failing is not an error: the next call walks. */
void names_cache_store(int dir_fd, const struct names_cache_key *key, const struct names_table *table,
                       const struct names_progress *progress);

/* The part that is changed in place; any value of it is valid. */
void names_cache_set_progress(int fd, const struct names_progress *progress);

/* The file's bytes, from malloc(); taken if they are sound, else left to the caller. */
bool names_cache_parse(void *bytes, size_t size, const struct names_cache_key *key, struct names_table *ret_table,
                       struct names_progress *ret_progress);

/* How large the file of a table is, and writing it to `bytes`. */
size_t names_cache_size(const struct names_table *table);
void names_cache_write(void *bytes, const struct names_cache_key *key, const struct names_table *table,
                       const struct names_progress *progress);
/* Makes the checksum right again; for tests that change bytes. `size` is at least 64. */
void names_cache_seal(void *bytes, size_t size);

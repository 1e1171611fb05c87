/* Any bytes as a cache file of names, its checksum made right first: either refused, or safe to use and to store again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "paths/index/cache.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Where the file says what it is about; made to agree, or nothing would get past it. */
#define KEY_OFFSET 24

static void use(struct names_table *table)
{
	char path[NAMES_PATH_MAX + 1];
	uint32_t first;
	for (uint32_t i = 0; i < table->directory_count; i++) {
		names_table_path(table, i, path);
		if (strlen(path) != table->directories[i].path_length)
			abort();
		size_t children = names_table_children(table, i, &first);
		for (size_t j = 0; j < children; j++)
			if (table->directories[first + j].parent != i)
				abort();
	}
	if (table->directory_count > 1)
		table->directories[table->directory_count / 2].flags |= NAMES_DEAD;
	if (names_table_add_directory(table, 0, "added", 5) < 0 ||
	    names_table_add_match(table, 0, "added", 5, 0, 0) < 0)
		abort();
	names_table_bury(table);
}

static void store_again(const struct names_table *table, const struct names_cache_key *key)
{
	struct names_table packed, again;
	struct names_progress progress = { 0 };
	if (names_table_pack(table, &packed) < 0)
		abort();
	char *bytes = malloc(names_cache_size(&packed));
	if (!bytes)
		abort();
	names_cache_write(bytes, key, &packed, &progress);
	if (!names_cache_parse(bytes, names_cache_size(&packed), key, &again, &progress))
		abort();
	names_table_free(&again);
	names_table_free(&packed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct names_cache_key key = { .name = "" };
	struct names_table table;
	struct names_progress progress = { 0 };
	char *bytes = malloc(size ? size : 1);
	if (!bytes)
		abort();
	memcpy(bytes, data, size);
	if (size >= KEY_OFFSET + sizeof(key.bytes) + 16) {
		memcpy(bytes + KEY_OFFSET, key.bytes, sizeof(key.bytes));
		names_cache_seal(bytes, size);
	}
	if (!names_cache_parse(bytes, size, &key, &table, &progress)) {
		free(bytes);
		return 0;
	}
	use(&table);
	store_again(&table, &key);
	names_table_free(&table);
	return 0;
}

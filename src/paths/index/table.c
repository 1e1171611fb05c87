/* The table of known directories and matches: see table.h. */
#include "paths/index/table.h"

#include <stdlib.h>
#include <string.h>

int names_table_init(struct names_table *table)
{
	memset(table, 0, sizeof(*table));
	table->directories = calloc(16, sizeof(*table->directories));
	if (!table->directories)
		return -1;
	table->directory_capacity = 16;
	table->directory_count = 1;
	table->directories[0].ctime_ns = NAMES_CTIME_NEVER;
	return 0;
}

void names_table_free(struct names_table *table)
{
	if (table->directory_capacity)
		free(table->directories);
	if (table->match_capacity)
		free(table->matches);
	if (table->pool_capacity)
		free(table->pool);
	free(table->watches);
	free(table->file);
	memset(table, 0, sizeof(*table));
}

/* Room for `more` elements: where the array now is, or NULL. One that lies in the file is copied out of it first. */
static void *reserve(void *array, size_t *capacity, size_t count, size_t more, size_t size)
{
	if (*capacity >= count + more)
		return array;
	size_t wanted = (count + more) * 3 / 2 + 64;
	void *grown = realloc(*capacity ? array : NULL, wanted * size);
	if (!grown)
		return NULL;
	if (!*capacity && count)
		memcpy(grown, array, count * size);
	*capacity = wanted;
	return grown;
}

static int add_name(struct names_table *table, const char *name, size_t length, uint32_t *ret_at)
{
	if (table->pool_size + length > UINT32_MAX)
		return -1;
	char *pool = reserve(table->pool, &table->pool_capacity, table->pool_size, length, 1);
	if (!pool)
		return -1;
	table->pool = pool;
	memcpy(pool + table->pool_size, name, length);
	*ret_at = (uint32_t)table->pool_size;
	table->pool_size += length;
	return 0;
}

size_t names_table_path_length(const struct names_table *table, uint32_t directory, size_t length)
{
	return table->directories[directory].path_length + (directory ? 1 : 0) + length;
}

int names_table_add_directory(struct names_table *table, uint32_t parent, const char *name, size_t length)
{
	uint32_t at;
	struct names_directory *directories = reserve(table->directories, &table->directory_capacity,
	                                              table->directory_count, 1, sizeof(*directories));
	if (!directories)
		return -1;
	table->directories = directories;
	if (add_name(table, name, length, &at) < 0)
		return -1;
	table->directories[table->directory_count++] = (struct names_directory){
		.ctime_ns = NAMES_CTIME_NEVER,
		.parent = parent,
		.name = at,
		.name_length = (uint16_t)length,
		.path_length = (uint16_t)names_table_path_length(table, parent, length),
		.depth = (uint16_t)(table->directories[parent].depth + 1),
	};
	return 0;
}

int names_table_add_match(struct names_table *table, uint32_t directory, const char *name, size_t length, unsigned kind,
                          unsigned type)
{
	uint32_t at;
	struct names_match *matches = reserve(table->matches, &table->match_capacity, table->match_count, 1,
	                                      sizeof(*matches));
	if (!matches)
		return -1;
	table->matches = matches;
	if (add_name(table, name, length, &at) < 0)
		return -1;
	table->matches[table->match_count++] = (struct names_match){
		.directory = directory, .name = at, .name_length = (uint8_t)length,
		.kind = (uint8_t)kind, .type = (uint8_t)type,
	};
	return 0;
}

int names_table_watch(const struct names_table *table, uint32_t directory)
{
	return directory < table->watch_count ? table->watches[directory] : NAMES_NOT_WATCHED;
}

int names_table_set_watch(struct names_table *table, uint32_t directory, int watch)
{
	if (directory >= table->watch_count) {
		int *watches = reserve(table->watches, &table->watch_capacity, table->watch_count,
		                       directory + 1 - table->watch_count, sizeof(*watches));
		if (!watches)
			return -1;
		table->watches = watches;
		while (table->watch_count <= directory)
			watches[table->watch_count++] = NAMES_NOT_WATCHED;
	}
	table->watches[directory] = watch;
	return 0;
}

void names_table_path(const struct names_table *table, uint32_t directory, char *buffer)
{
	const struct names_directory *at = &table->directories[directory];
	char *end = buffer + at->path_length;
	*end = '\0';
	while (directory) {
		end -= at->name_length;
		memcpy(end, table->pool + at->name, at->name_length);
		directory = at->parent;
		at = &table->directories[directory];
		if (directory)
			*--end = '/';
	}
}

/* As loaded, parents never decrease: the children are found by halving. */
size_t names_table_children(const struct names_table *table, uint32_t directory, uint32_t *ret_first)
{
	size_t low = 1, high = table->loaded_directories, end;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (table->directories[middle].parent < directory)
			low = middle + 1;
		else
			high = middle;
	}
	for (end = low; end < table->loaded_directories && table->directories[end].parent == directory; end++)
		;
	*ret_first = (uint32_t)low;
	return end - low;
}

void names_table_bury(struct names_table *table)
{
	struct names_directory *all = table->directories;
	for (size_t i = 1; i < table->directory_count; i++)
		all[i].flags |= all[all[i].parent].flags & NAMES_DEAD;
}

bool names_table_match_counts(const struct names_table *table, size_t match)
{
	unsigned flags = table->directories[table->matches[match].directory].flags;
	return !(flags & NAMES_DEAD) && (match >= table->loaded_matches || !(flags & NAMES_REREAD));
}

/* ---- Matches of a directory that was read in part --------------------------------------------------------------- */

static int compare_matches(const struct names_match *a, const struct names_match *b, const char *pool)
{
	if (a->kind != b->kind || a->name_length != b->name_length)
		return a->kind != b->kind ? a->kind - b->kind : a->name_length - b->name_length;
	return memcmp(pool + a->name, pool + b->name, a->name_length);
}

static int by_name(const void *a, const void *b, void *pool)
{
	return compare_matches(a, b, pool);
}

static struct names_match *find_match(struct names_match *sorted, size_t count, const struct names_match *like,
                                      const char *pool)
{
	size_t low = 0, high = count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = compare_matches(&sorted[middle], like, pool);
		if (!order)
			return &sorted[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

size_t names_table_keep_matches(struct names_table *table, uint32_t directory, size_t first)
{
	struct names_match *found = table->matches + first;
	size_t count = table->match_count - first, kept = 0;
	if (directory >= table->loaded_directories)
		return count;
	table->directories[directory].flags &= (uint16_t)~NAMES_REREAD;
	if (!count)
		return 0;
	qsort_r(found, count, sizeof(*found), by_name, table->pool);
	for (size_t i = 0; i < table->loaded_matches; i++) {
		struct names_match *same = table->matches[i].directory != directory ? NULL
		                           : find_match(found, count, &table->matches[i], table->pool);
		if (same)
			same->reserved = 1;
	}
	for (size_t i = 0; i < count; i++)
		if (!found[i].reserved)
			found[kept++] = found[i];
	table->match_count = first + kept;
	return kept;
}

/* Fills `order` with the living directories breadth first, by way of sibling lists. Returns how many there are. */
static size_t breadth_first(const struct names_table *table, uint32_t *order, uint32_t *child, uint32_t *sibling)
{
	size_t count = 1;
	for (size_t i = table->directory_count - 1; i > 0; i--) {
		const struct names_directory *at = &table->directories[i];
		if (at->flags & NAMES_DEAD)
			continue;
		sibling[i] = child[at->parent];
		child[at->parent] = (uint32_t)i;
	}
	order[0] = 0;
	for (size_t done = 0; done < count; done++)
		for (uint32_t i = child[order[done]]; i; i = sibling[i])
			order[count++] = i;
	return count;
}

static int pack_directories(const struct names_table *table, const uint32_t *order, size_t count, uint32_t *new_index,
                            struct names_table *packed)
{
	for (size_t i = 1; i < count; i++) {
		const struct names_directory *from = &table->directories[order[i]];
		if (names_table_add_directory(packed, new_index[from->parent], table->pool + from->name,
		                              from->name_length) < 0)
			return -1;
		new_index[order[i]] = (uint32_t)i;
	}
	for (size_t i = 0; i < count; i++) {
		const struct names_directory *from = &table->directories[order[i]];
		struct names_directory *to = &packed->directories[i];
		to->device = from->device;
		to->inode = from->inode;
		to->ctime_ns = from->ctime_ns;
		to->flags = from->flags & (NAMES_PARTIAL | NAMES_CLOSED);
		if (to->depth <= 1 || to->flags & NAMES_CLOSED)
			to->flags |= NAMES_HOT;
		int watch = names_table_watch(table, order[i]);
		if (watch != NAMES_NOT_WATCHED && names_table_set_watch(packed, (uint32_t)i, watch) < 0)
			return -1;
	}
	return 0;
}

static int pack_matches(const struct names_table *table, const uint32_t *new_index, struct names_table *packed)
{
	for (size_t i = 0; i < table->match_count; i++) {
		const struct names_match *from = &table->matches[i];
		if (!names_table_match_counts(table, i))
			continue;
		if (names_table_add_match(packed, new_index[from->directory], table->pool + from->name,
		                          from->name_length, from->kind, from->type) < 0)
			return -1;
		packed->directories[new_index[from->directory]].flags |= NAMES_HOT;
	}
	return 0;
}

int names_table_pack(const struct names_table *table, struct names_table *ret_packed)
{
	struct names_table packed;
	size_t count = table->directory_count;
	auto_free uint32_t *scratch = calloc(count, 4 * sizeof(*scratch));
	if (!scratch || names_table_init(&packed) < 0)
		return -1;
	uint32_t *order = scratch, *child = scratch + count, *sibling = scratch + 2 * count,
		 *new_index = scratch + 3 * count;
	size_t living = breadth_first(table, order, child, sibling);
	if (pack_directories(table, order, living, new_index, &packed) < 0 ||
	    pack_matches(table, new_index, &packed) < 0) {
		names_table_free(&packed);
		return -1;
	}
	*ret_packed = packed;
	return 0;
}

/* What was there before: see seen.h. */
#include "paths/planted/seen.h"

#include <stdlib.h>
#include <string.h>

#include "paths/index/look.h"

int seen_add(struct arena *arena, struct planted_before *before, const char *path, const struct names_stat *stat,
             const struct git_config_before *config)
{
	struct planted_seen seen = { .path = path, .config = config };
	if (!path)
		return -1;
	if (before->count == before->capacity) {
		size_t capacity = before->capacity ? before->capacity * 2 : 64;
		struct planted_seen *grown = arena_alloc(arena, capacity * sizeof(*grown));
		if (!grown)
			return -1;
		if (before->count)
			memcpy(grown, before->seen, before->count * sizeof(*grown));
		before->seen = grown;
		before->capacity = capacity;
	}
	if (stat) {
		seen.device = stat->device;
		seen.inode = stat->inode;
		seen.size = stat->size;
		seen.ctime_ns = stat->ctime_ns;
	}
	before->seen[before->count++] = seen;
	return 0;
}

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct planted_seen *)a)->path, ((const struct planted_seen *)b)->path);
}

void seen_sort(struct planted_before *before)
{
	if (before->count)
		qsort(before->seen, before->count, sizeof(*before->seen), compare);
}

const struct planted_seen *seen_find(const struct planted_before *before, const char *path)
{
	const struct planted_seen key = { .path = path };
	return before->count ? bsearch(&key, before->seen, before->count, sizeof(key), compare) : NULL;
}

static bool is_same(const struct planted_seen *seen, const struct names_stat *stat)
{
	return seen && seen->device == stat->device && seen->inode == stat->inode && seen->size == stat->size &&
	       seen->ctime_ns == stat->ctime_ns;
}

bool seen_is_same(const struct planted_before *before, const char *path, const struct names_stat *stat)
{
	return is_same(seen_find(before, path), stat);
}

bool seen_entries_changed(const struct planted_before *before, int root_fd, const char *directory)
{
	size_t low = 0, high = before->count, length = strlen(directory);
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const char *path = before->seen[middle].path;
		int order = strncmp(path, directory, length);
		if (order < 0 || (order == 0 && (unsigned char)path[length] < '/'))
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < before->count; low++) {
		const struct planted_seen *seen = &before->seen[low];
		struct names_stat stat;
		if (strncmp(seen->path, directory, length) || seen->path[length] != '/')
			break;
		if (names_stat(root_fd, seen->path, &stat) && !is_same(seen, &stat))
			return true;
	}
	return false;
}

/* The names of /etc: see etc.h. The directory is read once, which costs less than asking for each row. */
#include "host/etc.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/glob.h"
#include "base/text.h"

const struct etc_row etc_rows[] = {
#define ETC(name, reason) { name, reason },
#include "host/etc.def"
#undef ETC
};
const size_t etc_row_count = ARRAY_SIZE(etc_rows);

static const char *const made_by_cordon[] = { "/etc/passwd", "/etc/group", "/etc/gitconfig" };

const char *etc_refuses(const char *path)
{
	const char *name = strncmp(path, "/etc/", 5) ? NULL : path + 5;
	if (!name || !*name)
		return "it is not beneath /etc";
	if (strpbrk(name, "*?[\\") && strchr(name, '/'))
		return "a pattern can only match names directly in /etc";
	for (size_t i = 0; i < ARRAY_SIZE(made_by_cordon); i++)
		if (path_within(path, made_by_cordon[i]))
			return "cordon makes this file itself for each command";
	return NULL;
}

/* Most rows are literal, and most names differ in their first byte. */
static bool matches(const char *pattern, const char *name)
{
	return (*pattern == *name || strchr("*?[\\", *pattern)) && glob_match_text(pattern, name);
}

static bool is_listed(const struct strings *extra, const char *name)
{
	char path[sizeof("/etc/") + NAME_MAX];
	for (size_t i = 0; i < ARRAY_SIZE(etc_rows); i++)
		if (matches(etc_rows[i].name, name))
			return true;
	snprintf(path, sizeof(path), "/etc/%s", name);
	for (size_t i = 0; extra && i < extra->count; i++)
		if (matches(extra->items[i] + 5, name))
			/* A pattern may be wider than its author knew: what cordon makes itself is never the host's. */
			return !etc_refuses(path);
	return false;
}

static int add_deeper(struct arena *arena, const char *directory, const char *name, struct strings *paths)
{
	struct stat info;
	const char *path = strchr(name, '/') ? arena_printf(arena, "%s/%s", directory, name) : NULL;
	if (!strchr(name, '/'))
		return 0;
	return !path ? -1 : lstat(path, &info) < 0 ? 0 : strings_add(arena, paths, path);
}

static int by_path(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorted, a directory precedes what is in it, if not at once: "/etc/a", "/etc/a-b", "/etc/a/c". */
static void drop_inner(struct strings *paths)
{
	size_t kept = 0;
	for (size_t i = 0; i < paths->count; i++) {
		bool inner = false;
		for (size_t j = 0; j < kept && !inner; j++)
			inner = path_within(paths->items[i], paths->items[j]);
		if (!inner)
			paths->items[kept++] = paths->items[i];
	}
	paths->count = kept;
}

static int add_names(struct arena *arena, const char *directory, const struct strings *extra, struct strings *paths)
{
	DIR *names = opendir(directory);
	int result = 0;
	for (struct dirent *entry; names && result == 0 && (entry = readdir(names));) {
		const char *name = entry->d_name;
		if (!strcmp(name, ".") || !strcmp(name, "..") || !is_listed(extra, name))
			continue;
		const char *path = arena_printf(arena, "%s/%s", directory, name);
		result = path ? strings_add(arena, paths, path) : -1;
	}
	if (names)
		closedir(names);
	return result;
}

int etc_find(struct arena *arena, const char *directory, const struct strings *extra, struct strings *ret_paths)
{
	struct strings paths = { 0 };
	if (add_names(arena, directory, extra, &paths) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(etc_rows); i++)
		if (add_deeper(arena, directory, etc_rows[i].name, &paths) < 0)
			return -1;
	for (size_t i = 0; extra && i < extra->count; i++)
		if (add_deeper(arena, directory, extra->items[i] + 5, &paths) < 0)
			return -1;
	if (paths.count)
		qsort(paths.items, paths.count, sizeof(*paths.items), by_path);
	drop_inner(&paths);
	*ret_paths = paths;
	return 0;
}

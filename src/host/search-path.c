/* See search-path.h. */
#include "host/search-path.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/place.h"
#include "session/beneath.h"

static int add_once(struct arena *arena, struct strings *list, const char *path)
{
	return strings_find(list, path) >= 0 || strings_add(arena, list, path) == 0 ? 0 : -ENOMEM;
}

static int add_links(struct arena *arena, const char *name, const char *end, struct strings *list)
{
	struct strings found = { 0 };
	int known = beneath_links(arena, name, end, &found);
	for (size_t i = 0; i < found.count && known == 0; i++)
		known = add_once(arena, list, found.items[i]);
	return known;
}

int search_path_directories(struct arena *arena, const char *path, struct strings *ret_directories,
                            struct strings *ret_links)
{
	struct strings directories = { 0 }, links = { 0 };
	while (path && *path && directories.count < SEARCH_PATH_MAX) {
		size_t length = strcspn(path, ":");
		const char *name = *path == '/' ? arena_strndup(arena, path, length) : NULL;
		struct cordon_error why;
		struct place place;
		int known = 0;
		if (*path == '/' && !name)
			return -ENOMEM;
		if (name && beneath_resolve(arena, name, &place, NULL, &why) == 0 && place.is_directory &&
		    (known = add_once(arena, &directories, place.path)) == 0 && place.alias)
			known = add_links(arena, name, place.path, &links);
		if (known < 0)
			return known;
		path += length + (path[length] == ':');
	}
	*ret_directories = directories;
	*ret_links = links;
	return 0;
}

static bool is_file(const char *directory, const char *name)
{
	uncleared char path[PATH_MAX];
	struct stat info;
	int length = snprintf(path, sizeof(path), "%s/%s", directory, name);
	return length > 0 && (size_t)length < sizeof(path) && lstat(path, &info) == 0 && S_ISREG(info.st_mode);
}

bool search_path_is_of_packages(const char *directory)
{
	static const char node[] = "/node_modules/.bin";
	size_t length = strlen(directory);
	if (length > strlen(node) && !strcmp(directory + length - strlen(node), node))
		return true;
	/* A command could put pyvenv.cfg beside a directory of programs, but not `activate` into it. */
	return is_file(directory, "../pyvenv.cfg") && is_file(directory, "activate");
}

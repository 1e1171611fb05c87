/* See search-path.h. */
#include "host/search-path.h"

#include <string.h>

#include "base/error.h"
#include "base/place.h"
#include "session/beneath.h"

int search_path_directories(struct arena *arena, const char *path, struct strings *ret_directories)
{
	struct strings directories = { 0 };
	while (path && *path && directories.count < SEARCH_PATH_MAX) {
		size_t length = strcspn(path, ":");
		const char *name = *path == '/' ? arena_strndup(arena, path, length) : NULL;
		struct cordon_error why;
		struct place place;
		if (*path == '/' && !name)
			return -1;
		if (name && beneath_resolve(arena, name, &place, NULL, &why) == 0 && place.is_directory &&
		    strings_find(&directories, place.path) < 0 && strings_add(arena, &directories, place.path) < 0)
			return -1;
		path += length + (path[length] == ':');
	}
	*ret_directories = directories;
	return 0;
}

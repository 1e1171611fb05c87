/* Looking for a program: see program.h. */
#include "host/program.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "session/beneath.h"

static bool examine(struct arena *arena, const char *path, struct place *ret_place)
{
	struct place place;
	struct stat info;
	auto_close int fd = -1;
	if (!path || beneath_resolve(arena, path, &place, &fd, NULL) < 0 || fstat(fd, &info) < 0 ||
	    !S_ISREG(info.st_mode) || !(info.st_mode & 0111))
		return false;
	*ret_place = place;
	return true;
}

bool program_find(struct arena *arena, const char *name, const char *path, const char *cwd, struct place *ret_place)
{
	if (strchr(name, '/'))
		return examine(arena, *name == '/' ? name : arena_printf(arena, "%s/%s", cwd, name), ret_place);
	for (size_t length; path && *path; path += length + (path[length] == ':')) {
		length = strcspn(path, ":");
		if (*path == '/' && examine(arena, arena_printf(arena, "%.*s/%s", (int)length, path, name), ret_place))
			return true;
	}
	return false;
}

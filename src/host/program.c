/* Looking for a program: see program.h. */
#include "host/program.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/may-run.h"
#include "session/beneath.h"

/* What a name may lack where programs are found by less than all of it. */
#ifndef SYSTEM_PROGRAM_ENDINGS
#define SYSTEM_PROGRAM_ENDINGS ""
#endif

static bool examine(struct arena *arena, const char *path, struct place *ret_place)
{
	struct place place;
	struct stat info;
	auto_close int fd = -1;
	if (!path || beneath_resolve(arena, path, &place, &fd, NULL) < 0 || fstat(fd, &info) < 0 ||
	    !S_ISREG(info.st_mode) || !mode_may_run(info.st_mode))
		return false;
	*ret_place = place;
	return true;
}

static bool find(struct arena *arena, const char *path, struct place *ret_place)
{
	static const char *const endings[] = { SYSTEM_PROGRAM_ENDINGS };
	for (size_t i = 0; path && i < ARRAY_SIZE(endings); i++)
		if (examine(arena, *endings[i] ? arena_printf(arena, "%s%s", path, endings[i]) : path, ret_place))
			return true;
	return false;
}

bool program_find(struct arena *arena, const char *name, const char *path, const char *cwd, struct place *ret_place)
{
	if (strchr(name, '/'))
		return find(arena, *name == '/' ? name : arena_printf(arena, "%s/%s", cwd, name), ret_place);
	for (size_t length; path && *path; path += length + (path[length] == ':')) {
		length = strcspn(path, ":");
		if (*path == '/' && find(arena, arena_printf(arena, "%.*s/%s", (int)length, path, name), ret_place))
			return true;
	}
	return false;
}

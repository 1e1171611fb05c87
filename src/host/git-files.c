/* See git-files.h. What git would take relative to the directory that it is in is no file of the user's. */
#include "host/git-files.h"

#include <string.h>

#include "policy/git-settings.h"

static const char *variable(const char *const *environment, const char *name)
{
	size_t length = strlen(name);
	for (; environment && *environment; environment++)
		if (!strncmp(*environment, name, length) && (*environment)[length] == '=')
			return (*environment)[length + 1] ? *environment + length + 1 : NULL;
	return NULL;
}

static bool has_system_file(const char *const *environment)
{
	const char *none = variable(environment, "GIT_CONFIG_NOSYSTEM");
	return !none || git_setting_is_false(none);
}

int git_files(struct arena *arena, const char *home, const char *xdg_config_home, const char *const *environment,
              const char *ret_paths[GIT_FILES_MAX])
{
	const char *system = variable(environment, "GIT_CONFIG_SYSTEM"),
		   *global = variable(environment, "GIT_CONFIG_GLOBAL");
	const char *found[GIT_FILES_MAX] = { 0 };
	const bool has_home = home && *home == '/', has_xdg = xdg_config_home && *xdg_config_home;
	int count = 0;
	if (has_system_file(environment))
		found[0] = system ? system : "/etc/gitconfig";
	if (global) {
		found[1] = global;
	} else {
		if ((has_xdg && !(found[1] = arena_printf(arena, "%s/git/config", xdg_config_home))) ||
		    (!has_xdg && has_home && !(found[1] = arena_printf(arena, "%s/.config/git/config", home))) ||
		    (has_home && !(found[2] = arena_printf(arena, "%s/.gitconfig", home))))
			return -1;
	}
	for (size_t i = 0; i < GIT_FILES_MAX; i++)
		if (found[i] && *found[i] == '/')
			ret_paths[count++] = found[i];
	return count;
}

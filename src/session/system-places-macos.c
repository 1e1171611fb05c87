/* Directories of macOS that can be no workspace: see workspace.h. Paths are canonical, so /tmp is /private/tmp here. */
#include "session/workspace.h"

#include <string.h>

#include "base/text.h"

/* As in system-places.c. */
static const struct {
	const char *path;
	bool beneath;
} system_places[] = {
	{ "/", false },
	{ "/Applications", true },
	{ "/Library", true },
	{ "/Network", true },
	{ "/System", true },
	{ "/Users", false },
	{ "/Users/Shared", false },
	{ "/Volumes", false },
	{ "/bin", true },
	{ "/cores", true },
	{ "/dev", true },
	{ "/etc", true },
	{ "/home", false },
	{ "/nix", true },
	{ "/opt", false },
	{ "/private", false },
	{ "/private/etc", true },
	{ "/private/tmp", false },
	{ "/private/var", false },
	{ "/private/var/db", true },
	{ "/private/var/root", false },
	{ "/private/var/tmp", false },
	{ "/sbin", true },
	{ "/tmp", false },
	{ "/usr", true },
	{ "/var", false },
};

bool workspace_is_system(const char *path)
{
	for (size_t i = 0; i < ARRAY_SIZE(system_places); i++) {
		const char *system = system_places[i].path;
		if (!strcmp(path, system) || (system_places[i].beneath && path_within(path, system)))
			return true;
	}
	return false;
}

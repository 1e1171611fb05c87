/* Directories of Windows that can be no workspace: see workspace.h. The same on every drive, whatever the case. */
#include "session/workspace.h"

#include <string.h>
#include <strings.h>

/* Beneath a drive; what lies beneath them, too, where `beneath` is set. */
static const struct {
	const char *path;
	bool beneath;
} system_places[] = {
	{ "", false },
	{ "/Windows", true },
	{ "/Program Files", true },
	{ "/Program Files (x86)", true },
	{ "/ProgramData", true },
	{ "/Users", false },
	{ "/Users/Public", false },
	{ "/Users/Default", true },
	{ "/$Recycle.Bin", true },
	{ "/Recovery", true },
	{ "/System Volume Information", true },
};

bool workspace_is_system(const char *path)
{
	if (path[0] != '/' || !path[1] || (path[2] && path[2] != '/'))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(system_places); i++) {
		size_t length = strlen(system_places[i].path);
		const char *rest = path + 2 + length;
		if (!strncasecmp(path + 2, system_places[i].path, length) &&
		    (!*rest || (system_places[i].beneath && *rest == '/')))
			return true;
	}
	return false;
}

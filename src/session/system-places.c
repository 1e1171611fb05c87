/* Directories of the system that can be no workspace: see workspace.h. */
#include "session/workspace.h"

#include <string.h>

#include "base/text.h"

/* Not these, nor anything beneath where `beneath` is set: a command that may change them is outside already. */
static const struct {
	const char *path;
	bool beneath;
} system_places[] = {
	{ "/", false },        { "/bin", true },     { "/boot", true },      { "/dev", true },   { "/etc", true },
	{ "/home", false },    { "/lib", true },     { "/lib32", true },     { "/lib64", true }, { "/libx32", true },
	{ "/media", false },   { "/mnt", false },    { "/nix", true },       { "/opt", false },  { "/proc", true },
	{ "/root", false },    { "/run", false },    { "/run/user", false }, { "/sbin", true },  { "/srv", false },
	{ "/sys", true },      { "/tmp", false },    { "/usr", true },       { "/var", false },  { "/var/tmp", false },
	{ "/var/lib", false }, { "/var/run", true },
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

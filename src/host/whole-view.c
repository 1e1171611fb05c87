/* The whole of the host in view: see whole-view.h. Secrets are known by name in each home; a link is hidden by what it
 * leads to. Sockets come from the kernel's own list, which knows every path that was bound by its absolute name in this
 * network namespace; what is elsewhere cannot be reached through a namespace of its own. */
#include "host/whole-view.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/text.h"

#define HOMES_MAX 256
#define SOCKETS_MAX 4096

static const char *const secrets[] = {
	".ssh", ".aws", ".gnupg", ".netrc", ".config/gcloud", ".kube", ".docker", ".azure", ".npmrc", ".pypirc",
	".git-credentials", ".config/gh", ".config/git/credentials", ".local/share/keyrings", ".mozilla",
	".config/google-chrome", ".config/chromium", ".password-store", ".bash_history", ".zsh_history", ".env",
	".cargo/credentials", ".cargo/credentials.toml", ".config/op", ".vault-token", ".pgpass", ".my.cnf",
};

/* Covered as a whole in that view. */
static const char *const covered[] = { "/run", "/tmp", "/dev", "/proc", "/var/tmp" };

static int mask(struct arena *arena, const char *path, struct places *masks)
{
	uncleared char real[PATH_MAX];
	struct stat info;
	if (!realpath(path, real) || stat(real, &info) < 0)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(covered); i++)
		if (path_within(real, covered[i]))
			return 0;
	for (size_t i = 0; i < masks->count; i++)
		if (path_within(real, masks->items[i].path))
			return 0;
	struct place place = { .path = arena_strdup(arena, real), .is_directory = S_ISDIR(info.st_mode) };
	return place.path ? places_add(arena, masks, &place) : -1;
}

static int mask_home(struct arena *arena, const char *home, struct places *masks)
{
	for (size_t i = 0; i < ARRAY_SIZE(secrets); i++) {
		const char *path = arena_printf(arena, "%s/%s", home, secrets[i]);
		if (!path || mask(arena, path, masks) < 0)
			return -1;
	}
	return 0;
}

static int mask_homes(struct arena *arena, const char *home, struct places *masks)
{
	if (mask_home(arena, "/root", masks) < 0 || (home && *home == '/' && mask_home(arena, home, masks) < 0))
		return -1;
	DIR *directory = opendir("/home");
	int result = 0, count = 0;
	for (struct dirent *entry; directory && result == 0 && count++ < HOMES_MAX && (entry = readdir(directory));) {
		const char *path = entry->d_name[0] == '.' ? NULL : arena_printf(arena, "/home/%s", entry->d_name);
		if (path)
			result = mask_home(arena, path, masks);
	}
	if (directory)
		closedir(directory);
	return result;
}

static int mask_sockets(struct arena *arena, struct places *masks)
{
	char line[PATH_MAX + 256];
	FILE *list = fopen("/proc/net/unix", "re");
	int result = 0, count = 0;
	while (list && result == 0 && count++ < SOCKETS_MAX && fgets(line, sizeof(line), list)) {
		const char *path = strchr(line, '/');
		line[strcspn(line, "\n")] = '\0';
		if (path && path > line && path[-1] == ' ')
			result = mask(arena, path, masks);
	}
	if (list)
		fclose(list);
	return result;
}

int whole_view_masks(struct arena *arena, const char *home, struct places *masks)
{
	return mask_homes(arena, home, masks) < 0 || mask_sockets(arena, masks) < 0 ? -1 : 0;
}

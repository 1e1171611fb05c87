/* Discarding: see discard.h. */
#include "session/discard.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/remove.h"

#define PREFIX ".cordon-removed-"
#define NAME_LENGTH (sizeof(PREFIX) - 1 + ID_SIZE - 1)
_Static_assert(NAME_LENGTH < sizeof(((struct discarded *)NULL)->name), "the name fits");

int discard_move(const char *parent, const char *name, struct discarded *ret_discarded, struct cordon_error *err)
{
	char id[ID_SIZE];
	struct discarded discarded = { "" };
	auto_close int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	id_make(id);
	snprintf(discarded.name, sizeof(discarded.name), PREFIX "%s", id);
	if (fd < 0 || renameat(fd, name, fd, discarded.name) < 0) {
		if (errno != ENOENT) {
			fail(err, CORDON_E_INTERNAL, errno, parent, "the session's directory cannot be removed");
			return fail_remedy(err, "check that %s in it can be renamed and removed", name);
		}
		discarded.name[0] = '\0';
	}
	*ret_discarded = discarded;
	return 0;
}

/* As well as can be done: another process may be removing the same. */
static void remove_others(int parent_fd)
{
	int fd = openat(parent_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *listing = fd < 0 ? NULL : fdopendir(fd);
	if (!listing) {
		cleanup_close(&fd);
		return;
	}
	for (struct dirent *entry; (entry = readdir(listing));)
		if (strlen(entry->d_name) == NAME_LENGTH && !strncmp(entry->d_name, PREFIX, sizeof(PREFIX) - 1))
			remove_tree(parent_fd, entry->d_name);
	closedir(listing);
}

int discard_remove(const char *parent, const struct discarded *discarded, struct cordon_error *err)
{
	char path[4096];
	auto_close int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : fail(err, CORDON_E_INTERNAL, errno, parent, "cannot be opened");
	int result = *discarded->name ? remove_tree(fd, discarded->name) : 0;
	remove_others(fd);
	if (result == 0)
		return 0;
	snprintf(path, sizeof(path), "%s/%s", parent, discarded->name);
	fail(err, CORDON_E_INTERNAL, 0, path, "some of the session's files cannot be removed");
	return fail_remedy(err, "look at their owners, attributes and mounts (ls -l, lsattr), and remove them by hand");
}

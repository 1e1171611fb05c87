/* Removing a tree: see remove.h. A tree can be deeper than a process may have descriptors or stack for. What lies
 * deeper than DEPTH_MAX is moved up to the top and found there again, so that any depth takes the same few
 * descriptors. */
#include "base/remove.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/id.h"

#define DEPTH_MAX 64

struct removal {
	int top_fd;
	dev_t device;
	bool changed;
};

static int open_for_removal(int parent, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(parent, name, flags);
	if (fd < 0 && fchmodat(parent, name, 0700, AT_SYMLINK_NOFOLLOW) == 0)
		fd = openat(parent, name, flags);
	return fd;
}

static void remove_directory(struct removal *removal, int parent, const char *name, int depth);

/* Takes `fd`. */
static void empty(struct removal *removal, int fd, int depth)
{
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	if (!directory) {
		if (fd >= 0)
			close(fd);
		return;
	}
	for (struct dirent *entry; (entry = readdir(directory));) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (unlinkat(fd, entry->d_name, 0) == 0)
			removal->changed = true;
		else
			remove_directory(removal, fd, entry->d_name, depth + 1);
	}
	closedir(directory);
}

static void remove_directory(struct removal *removal, int parent, const char *name, int depth)
{
	struct stat info;
	int fd = open_for_removal(parent, name);
	if (fd < 0 || fstat(fd, &info) < 0 || info.st_dev != removal->device) {
		if (fd >= 0)
			close(fd);
		return;
	}
	/* Also for moving it: its own ".." is written to. */
	fchmod(fd, 0700);
	if (depth <= DEPTH_MAX) {
		empty(removal, fd, depth);
		removal->changed |= unlinkat(parent, name, AT_REMOVEDIR) == 0;
		return;
	}
	close(fd);
	char moved[ID_SIZE];
	id_make(moved);
	removal->changed |= renameat(parent, name, removal->top_fd, moved) == 0;
}

int remove_tree(int parent_fd, const char *name)
{
	struct removal removal = { .changed = true };
	struct stat info;
	if (unlinkat(parent_fd, name, 0) == 0 || errno == ENOENT)
		return 0;
	while (removal.changed) {
		removal.changed = false;
		removal.top_fd = open_for_removal(parent_fd, name);
		if (removal.top_fd >= 0 && fstat(removal.top_fd, &info) == 0) {
			fchmod(removal.top_fd, 0700);
			removal.device = info.st_dev;
			empty(&removal, fcntl(removal.top_fd, F_DUPFD_CLOEXEC, 3), 0);
		}
		if (removal.top_fd >= 0)
			close(removal.top_fd);
		if (unlinkat(parent_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
			return 0;
	}
	return -1;
}

/* Removing a tree: see remove.h. */
#include "base/remove.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MAX 512

static void remove_at(int parent, const char *name, int depth)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && fchmodat(parent, name, 0700, AT_SYMLINK_NOFOLLOW) == 0)
		fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0) {
		fchmod(fd, 0700);
		DIR *directory = fdopendir(fd);
		for (struct dirent *entry; directory && (entry = readdir(directory));) {
			if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
				continue;
			if (unlinkat(fd, entry->d_name, 0) < 0 && depth < DEPTH_MAX)
				remove_at(fd, entry->d_name, depth + 1);
		}
		if (directory)
			closedir(directory);
		else
			close(fd);
	}
	unlinkat(parent, name, AT_REMOVEDIR);
}

void remove_tree(int parent_fd, const char *name)
{
	remove_at(parent_fd, name, 0);
}

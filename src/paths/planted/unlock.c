/* Directories that a command took its own rights from: see planted.h. */
#include "paths/planted/planted.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "paths/index/look.h"
#include "paths/index/table.h"

bool planted_was_covered(const struct names *before, const struct name *name)
{
	char part[NAMES_ENTRY_SIZE], *slash;
	const struct name *was = names_get(before, NAME_MASKED, name->path);
	if (was && was->is_directory == name->is_directory &&
	    (!was->is_link || (name->is_link && was->inode == name->inode && was->ctime_ns == name->ctime_ns)))
		return true;
	snprintf(part, sizeof(part), "%s", name->path);
	while ((slash = strrchr(part, '/'))) {
		*slash = '\0';
		was = names_get(before, NAME_MASKED, part);
		if (was && was->is_directory && !was->is_link)
			return true;
	}
	return false;
}

static bool is_replaced(int root_fd, const struct name *name)
{
	struct names_stat stat;
	if (name->kind != NAME_MASKED || !name->is_directory)
		return false;
	if (!names_stat(root_fd, name->path, &stat))
		return name->inode;
	return stat.device != name->device || stat.inode != name->inode || stat.born_ns != name->born_ns;
}

void planted_forget_replaced(int root_fd, struct names *before)
{
	size_t kept = 0;
	for (size_t i = 0; i < before->count; i++)
		if (!is_replaced(root_fd, &before->items[i]))
			before->items[kept++] = before->items[i];
	before->count = kept;
}

static bool open_up(int fd)
{
	const mode_t needed = S_IRUSR | S_IXUSR;
	struct names_stat stat;
	char self[64];
	if (!names_stat(fd, "", &stat) || (stat.mode & needed) == needed)
		return false;
	/* fchmod() refuses an O_PATH descriptor, and the file cannot be opened otherwise */
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return chmod(self, (stat.mode & 07777) | S_IRWXU) == 0;
}

bool planted_unlock(int root_fd, const struct names *before, const struct names *after)
{
	bool unlocked = false;
	for (size_t i = 0; i < after->count; i++) {
		const struct name *name = &after->items[i];
		if (!name->is_closed || planted_was_covered(before, name))
			continue;
		auto_close int fd = names_open(root_fd, name->path, O_PATH | O_DIRECTORY);
		unlocked |= fd >= 0 && open_up(fd);
	}
	return unlocked;
}

void planted_unlock_root(int root_fd)
{
	if (geteuid())
		open_up(root_fd);
}

/* Scratch directories: see scratch.h. The parent is locked, shared, between making one and locking it, and exclusively
 * while looking for abandoned ones: a directory that was just made is never taken for one. */
#include "session/scratch.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/lock.h"
#include "base/remove.h"

static void remove_abandoned(const char *parent)
{
	int fd = open(parent, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	if (!directory) {
		cleanup_close(&fd);
		return;
	}
	for (struct dirent *entry; flock(fd, LOCK_EX | LOCK_NB) == 0 && (entry = readdir(directory));) {
		if (entry->d_name[0] == '.')
			continue;
		auto_close int one = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (one < 0 ? errno == EACCES : flock(one, LOCK_EX | LOCK_NB) == 0)
			remove_tree(fd, entry->d_name);
	}
	closedir(directory);
}

int scratch_make(struct arena *arena, const char *data_dir, const char *id, const char **ret_path, int *ret_fd,
                 struct cordon_error *err)
{
	const char *parent = arena_printf(arena, "%s/scratch", data_dir);
	const char *path = arena_printf(arena, "%s/scratch/%s", data_dir, id);
	if (!parent || !path)
		return fail_oom(err);
	if (mkdir(parent, 0700) < 0 && errno != EEXIST)
		return fail(err, CORDON_E_INTERNAL, errno, parent, "cannot make a directory for temporary files");
	remove_abandoned(parent);
	auto_close int lock = open(parent, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	auto_close int fd = -1;
	if (lock >= 0 && lock_wait(lock, LOCK_SH, LOCK_PATIENCE_MS) == 0 && mkdir(path, 0700) == 0)
		fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return fail(err, CORDON_E_INTERNAL, errno, path, "cannot make a directory for temporary files");
	*ret_path = path;
	*ret_fd = take_fd(&fd);
	return 0;
}

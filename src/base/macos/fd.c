/* See base/fd.h. The path that F_GETPATH tells may be another's by the time it is opened, so what was opened is
 * compared. */
#include "base/fd.h"

#include <limits.h>

#include "base/cleanup.h"

ssize_t fd_path(int fd, char *ret_path, size_t size)
{
	char path[PATH_MAX];
	size_t length = fcntl(fd, F_GETPATH, path) < 0 ? 0 : strlen(path);
	if (!length || length >= size || path[0] != '/')
		return -1;
	memcpy(ret_path, path, length);
	return (ssize_t)length;
}

int fd_reopen(int fd, int flags)
{
	char path[PATH_MAX];
	struct stat held, opened_info;
	if (fcntl(fd, F_GETPATH, path) < 0)
		return -1;
	auto_close int opened = openat(AT_FDCWD, path, flags | O_NOFOLLOW);
	if (opened < 0 || fstat(fd, &held) < 0 || fstat(opened, &opened_info) < 0)
		return -1;
	if (held.st_dev != opened_info.st_dev || held.st_ino != opened_info.st_ino) {
		errno = ESTALE;
		return -1;
	}
	return take_fd(&opened);
}

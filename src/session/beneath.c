/* Paths to descriptors: see beneath.h. */
#include "session/beneath.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/compat.h"
#include "base/text.h"

char *beneath_path(struct arena *arena, int fd)
{
	char link[64], path[PATH_MAX];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t length = readlink(link, path, sizeof(path));
	if (length <= 0 || length == (ssize_t)sizeof(path) || path[0] != '/')
		return NULL;
	return arena_strndup(arena, path, (size_t)length);
}

int beneath_resolve(struct arena *arena, const char *path, struct place *ret_place, int *ret_fd, struct cordon_error *err)
{
	struct stat info;
	if (path[0] != '/')
		return fail(err, CORDON_E_INVALID_REQUEST, 0, path, "the path must be absolute");
	if (text_has_control(path))
		return fail(err, CORDON_E_INVALID_REQUEST, 0, path, "the path has a control character in it");
	const char *named = path_normalise(arena, path);
	auto_close int fd = named ? open(path, O_PATH | O_CLOEXEC) : -1;
	if (!named)
		return fail_oom(err);
	if (fd < 0)
		return fail(err, errno == ENOENT || errno == ENOTDIR ? CORDON_E_INVALID_REQUEST : CORDON_E_CAPABILITY_DENIED,
		            errno, path, "cannot open this path");
	const char *canonical = fstat(fd, &info) < 0 ? NULL : beneath_path(arena, fd);
	if (!canonical)
		return fail(err, CORDON_E_INTERNAL, errno, path, "cannot tell where this path leads");
	*ret_place = (struct place){ .path = canonical, .alias = strcmp(canonical, named) ? named : NULL,
	                             .device = info.st_dev, .inode = info.st_ino, .is_directory = S_ISDIR(info.st_mode) };
	if (ret_fd)
		*ret_fd = take_fd(&fd);
	return 0;
}

int beneath_open(int root_fd, const char *relative, int flags)
{
	struct open_how how = { .flags = (uint64_t)(flags | O_CLOEXEC), .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
	long fd = syscall(SYS_openat2, root_fd, *relative ? relative : ".", &how, sizeof(how));
	return fd < 0 ? -errno : (int)fd;
}

/* Of statx(2), for systems that have none: is this directory the root of a mount? It is where its parent is on another
 * device. Nothing else is filled in. */
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

#define STATX_TYPE 1
#define STATX_ATTR_MOUNT_ROOT 0x2000
#define AT_STATX_DONT_SYNC 0

struct statx {
	uint64_t stx_attributes;
};

static inline int statx(int fd, const char *path, int flags, unsigned mask, struct statx *ret_info)
{
	char above[PATH_MAX];
	struct stat info, parent;
	(void)mask;
	if (snprintf(above, sizeof(above), "%s/..", path) >= (int)sizeof(above)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	if (fstatat(fd, path, &info, flags) < 0 || fstatat(fd, above, &parent, 0) < 0)
		return -1;
	ret_info->stx_attributes = info.st_dev == parent.st_dev ? 0 : STATX_ATTR_MOUNT_ROOT;
	return 0;
}

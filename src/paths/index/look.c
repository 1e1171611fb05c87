/* Looking and opening: see look.h. */
#include "paths/index/look.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/compat.h"

#define NAME_LENGTH_MAX 255

uint64_t names_now_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* For where a filter refuses statx(). */
static bool stat_plainly(int fd, const char *path, struct names_stat *ret_stat)
{
	struct stat stat;
	if ((*path ? fstatat(fd, path, &stat, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) : fstat(fd, &stat)) < 0)
		return false;
	*ret_stat = (struct names_stat){
		.device = (uint64_t)major(stat.st_dev) << 32 | minor(stat.st_dev),
		.inode = stat.st_ino,
		.size = (uint64_t)stat.st_size,
		.ctime_ns = stat.st_ctim.tv_sec * 1000000000 + stat.st_ctim.tv_nsec,
		.mode = stat.st_mode,
		.user = stat.st_uid,
		.links = (uint32_t)stat.st_nlink,
	};
	return true;
}

bool names_stat(int fd, const char *path, struct names_stat *ret_stat)
{
	struct statx stat;
	int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC | (*path ? 0 : AT_EMPTY_PATH);
	if (compat_statx(fd, path, flags, STATX_BASIC_STATS | STATX_BTIME, &stat) < 0)
		return (errno == ENOSYS || errno == EPERM) && stat_plainly(fd, path, ret_stat);
	*ret_stat = (struct names_stat){
		.device = (uint64_t)stat.stx_dev_major << 32 | stat.stx_dev_minor,
		.inode = stat.stx_ino,
		.size = stat.stx_size,
		.ctime_ns = stat.stx_ctime.tv_sec * 1000000000 + stat.stx_ctime.tv_nsec,
		.born_ns =
			stat.stx_mask & STATX_BTIME ? stat.stx_btime.tv_sec * 1000000000 + stat.stx_btime.tv_nsec : 0,
		.mode = stat.stx_mode,
		.user = stat.stx_uid,
		.links = stat.stx_nlink,
	};
	return true;
}

/* For where a filter refuses openat2(): a component at a time. */
static int open_stepwise(int root_fd, const char *path, int flags)
{
	auto_close int at = -1;
	char name[NAME_LENGTH_MAX + 1];
	for (;;) {
		size_t length = strcspn(path, "/");
		if (length > NAME_LENGTH_MAX) {
			errno = ENAMETOOLONG;
			return -1;
		}
		memcpy(name, path, length);
		name[length] = '\0';
		path += length;
		if (!strcmp(name, "..")) {
			errno = EXDEV;
			return -1;
		}
		int next = openat(at < 0 ? root_fd : at, name,
		                  *path ? O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC : flags);
		if (next < 0 || !*path)
			return next;
		cleanup_close(&at);
		at = next;
		path += strspn(path, "/");
	}
}

int names_open(int root_fd, const char *path, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)(flags | O_NOFOLLOW | O_CLOEXEC),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	if (!*path)
		path = ".";
	int fd = compat_openat2(root_fd, path, &how);
	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		return open_stepwise(root_fd, path, (int)how.flags);
	return fd;
}

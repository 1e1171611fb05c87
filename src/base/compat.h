/* Kernel constants newer than the headers of Debian 12, and system calls without a libc wrapper. On other systems than
 * Linux only compat_openat2() and compat_statx() are here, and fail; callers have another way. */
#pragma once
#include <linux/openat2.h>
#include <stdint.h>

#ifndef __linux__

static inline int compat_openat2(int fd, const char *path, const struct open_how *how)
{
	(void)fd;
	(void)path;
	(void)how;
	errno = ENOSYS;
	return -1;
}

#define STATX_BASIC_STATS 0
#define STATX_BTIME 0
#define AT_STATX_DONT_SYNC 0
#define AT_NO_AUTOMOUNT 0
#ifndef AT_EMPTY_PATH
#define AT_EMPTY_PATH 0
#endif
#undef major
#undef minor
#define major(device) (uint32_t)((uint64_t)(device) >> 32)
#define minor(device) (uint32_t)(device)
struct statx_timestamp {
	int64_t tv_sec;
	uint32_t tv_nsec;
};
struct statx {
	uint64_t stx_ino, stx_size;
	uint32_t stx_mask, stx_nlink, stx_uid, stx_mode, stx_dev_major, stx_dev_minor;
	struct statx_timestamp stx_ctime, stx_btime;
};

static inline int compat_statx(int fd, const char *path, int flags, unsigned mask, struct statx *ret_info)
{
	(void)fd;
	(void)path;
	(void)flags;
	(void)mask;
	*ret_info = (struct statx){ 0 };
	errno = ENOSYS;
	return -1;
}

#else
#include <linux/landlock.h>
#include <linux/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443
#endif
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

#ifndef LANDLOCK_ACCESS_FS_REFER
#define LANDLOCK_ACCESS_FS_REFER (1ULL << 13)
#endif
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif
#ifndef LANDLOCK_ACCESS_FS_IOCTL_DEV
#define LANDLOCK_ACCESS_FS_IOCTL_DEV (1ULL << 15)
#endif
#ifndef LANDLOCK_ACCESS_NET_BIND_TCP
#define LANDLOCK_ACCESS_NET_BIND_TCP (1ULL << 0)
#define LANDLOCK_ACCESS_NET_CONNECT_TCP (1ULL << 1)
#endif
#ifndef LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
#define LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET (1ULL << 0)
#define LANDLOCK_SCOPE_SIGNAL (1ULL << 1)
#endif

/* struct landlock_ruleset_attr as of ABI 6; older kernels are given a shorter size. */
struct landlock_ruleset {
	uint64_t handled_access_fs, handled_access_net, scoped;
};

#ifndef MOUNT_ATTR_IDMAP
#define MOUNT_ATTR_IDMAP 0x00100000
#endif
#ifndef MOUNT_ATTR_NOSYMFOLLOW
#define MOUNT_ATTR_NOSYMFOLLOW 0x00200000
#endif
#ifndef MOVE_MOUNT_F_EMPTY_PATH
#define MOVE_MOUNT_F_EMPTY_PATH 0x00000004
#endif
#ifndef MOVE_MOUNT_T_EMPTY_PATH
#define MOVE_MOUNT_T_EMPTY_PATH 0x00000040
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#define MFD_EXEC 0x0010U
#endif
#ifndef CLONE_INTO_CGROUP
#define CLONE_INTO_CGROUP 0x200000000ULL
#endif

static inline int compat_openat2(int fd, const char *path, const struct open_how *how)
{
	return (int)syscall(SYS_openat2, fd, path, how, sizeof(*how));
}

/* Not libc's: its own emulation does not know all the flags, and says EINVAL. */
static inline int compat_statx(int fd, const char *path, int flags, unsigned mask, struct statx *ret_info)
{
	return (int)syscall(SYS_statx, fd, path, flags, mask, ret_info);
}
#endif

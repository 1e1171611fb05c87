/* Nothing is mounted. */
#pragma once
#include <errno.h>
#define MS_NOSUID 2
#define MS_NODEV 4
#define MS_RDONLY 1
#define MS_REMOUNT 32
#define MS_REC 16384
#define MS_BIND 4096
#define MS_PRIVATE (1 << 18)
#define MNT_DETACH 2
static inline int mount(const char *from, const char *to, const char *type, unsigned long flags, const void *options)
{
	(void)from, (void)to, (void)type, (void)flags, (void)options;
	errno = ENOSYS;
	return -1;
}
static inline int umount2(const char *path, int flags)
{
	(void)path, (void)flags;
	errno = ENOSYS;
	return -1;
}

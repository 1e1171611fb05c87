/* Of a file system only that it has none of the numbers of <linux/magic.h>. */
#pragma once
struct statfs {
	long f_type;
};
static inline int fstatfs(int fd, struct statfs *ret_info)
{
	(void)fd;
	ret_info->f_type = 0;
	return 0;
}
static inline int statfs(const char *path, struct statfs *ret_info)
{
	(void)path;
	ret_info->f_type = 0;
	return 0;
}

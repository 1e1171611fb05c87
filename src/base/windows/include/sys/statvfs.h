/* Of a file system only how much is free. */
#pragma once
struct statvfs {
	unsigned long f_frsize;
	unsigned long long f_bavail;
};
int fstatvfs(int fd, struct statvfs *ret_info);

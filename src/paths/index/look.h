/* Looking at things in a tree that may be hostile: what is there, and opening it with no symbolic link on the way. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

uint64_t names_now_us(void);

struct names_stat {
	uint64_t device, inode, size;
	int64_t ctime_ns;
	int64_t born_ns;                /* 0 if unknown: a number is used again for the next directory */
	uint32_t mode, user, links;
};
/* Of `path` in the directory `fd`, not following it; of `fd` itself where the path is empty. False: errno tells why.
 * Links on the way are followed, so what comes back counts only if it is what was known to be there. */
bool names_stat(int fd, const char *path, struct names_stat *ret_stat);

/* Opens beneath the root, refusing every symbolic link: a descriptor, or -1 and errno. "" is the root.
 * Close-on-exec. */
int names_open(int root_fd, const char *path, int flags);

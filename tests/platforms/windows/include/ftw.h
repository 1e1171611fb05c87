#pragma once
#define FTW_DEPTH 1
#define FTW_PHYS 2
struct FTW {
	int base, level;
};
/* Depth first, links not followed. */
int nftw(const char *path, int (*each)(const char *path, const struct stat *info, int type, struct FTW *walk), int fds,
         int flags);

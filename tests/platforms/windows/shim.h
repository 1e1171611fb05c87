/* What the unit tests use besides, where they are compiled for Windows. */
#pragma once
#include <time.h>

char *mkdtemp(char *template);
int unsetenv(const char *name);
static inline struct tm *gmtime_r(const time_t *time, struct tm *ret_utc)
{
	*ret_utc = *gmtime(time);
	return ret_utc;
}
#define random system_random        /* a name that tests have for something else, too */
#define srandom(seed) srand(seed)
static inline long system_random(void)
{
	return (long)rand() << 15 ^ rand();
}
static inline int rand_r(unsigned *seed)
{
	*seed = *seed * 1103515245u + 12345u;
	return (int)(*seed >> 16 & 0x7fff);
}
/* To the end of the file, whatever the delimiter. */
ssize_t getdelim(char **text, size_t *capacity, int delimiter, FILE *stream);
/* There are none. */
int mkfifo(const char *path, unsigned mode);
int mknod(const char *path, unsigned mode, unsigned long long device);
int chown(const char *path, uid_t uid, gid_t gid);

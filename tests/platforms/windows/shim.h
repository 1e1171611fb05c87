/* What the unit tests use besides, where they are compiled for Windows. */
#pragma once
#include <signal.h>
#include <sys/resource.h>
#include <time.h>

char *mkdtemp(char *template);
int mkostemp(char *template, int flags);
int unsetenv(const char *name);
/* Of any year, as Windows has it of years after 1969 only. */
struct tm *gmtime_r(const time_t *time, struct tm *ret_utc);
#define random system_random /* a name that tests have for something else, too */
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
int dprintf(int fd, const char *format, ...);
/* Both times are set. */
int utimensat(int fd, const char *path, const struct timespec times[2], int flags);
#define UTIME_OMIT ((1l << 30) - 2l)

/* Modes become access lists: of the owner, and of everybody else. What comes into being in a directory inherits
 * nothing. */
int mode_set(int fd, const char *path, unsigned mode);
#undef chmod
#define chmod(path, mode) mode_set(AT_FDCWD, path, mode)
#define fchmod(fd, mode) mode_set(fd, "", mode)
#define fchmodat(fd, path, mode, flags) mode_set(fd, path, mode)

#define truncate(path, length) change_length(path, length)
int change_length(const char *path, off_t length);
/* A file or an empty directory, by a path of ours. */
#define remove(path) (unlink(path) && (errno != EISDIR || rmdir(path)) ? -1 : 0)

/* What sh would do with it, of what tests write there: see shell.c. */
#define system(line) shell_run(line)
int shell_run(const char *line);
/* There is no sh to have a pipe to. */
#define popen(line, mode) NULL
#define pclose(stream) (-1)

int pipe2(int ret_fds[2], int flags);
#define pipe(ret_fds) pipe2(ret_fds, 0)

/* Without the cases that TESTS_WITHOUT names. */
#define _cmocka_run_group_tests run_cases

/* There are none. */
int mkfifo(const char *path, unsigned mode);
int mknod(const char *path, unsigned mode, unsigned long long device);
int chown(const char *path, uid_t uid, gid_t gid);
int setrlimit(int resource, const struct rlimit *limit);
int unshare(int flags);
#define CLONE_NEWNS 0x20000
#define CLONE_NEWUSER 0x10000000
#define SIGXFSZ 25
/* No table of widths: none is known. */
#define wcwidth(c) (-1)
#define link(from, to) linkat(AT_FDCWD, from, AT_FDCWD, to, 0)

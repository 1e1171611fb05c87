/* What cordon's portable rooms use of POSIX, Linux and its libc, for Windows. Included before every source file
 * (-include) when cordon is built there. Semantics are those of Linux's manual pages, less what is said here.
 *
 * Paths are UTF-8 and begin with a drive's letter: "/c/Users/ada" (path.h). Files are opened relative to a directory's
 * handle (files.c), never by a path put together from text, so a descriptor means here what it means elsewhere. Modes
 * are told from the access list: 0700 where nobody but the owner, the system and administrators may write, 0722 where
 * others may. */
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <locale.h>
#include <process.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <direct.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define SYSTEM_NAME "windows"
#define SYSTEM_PATH_GIVEN /* see base/path-given.h */
#define SYSTEM_WITHOUT_BASH /* commands come as a program and its arguments */
#define SYSTEM_WITHOUT_JOBS /* see session/jobs.h: nothing here is a named pipe of a directory, and none is watched */

/* ---- types and numbers ------------------------------------------------------------------------------------------- */

/* Who is there: the system and its administrators, the caller, whoever they are, and everybody else. */
typedef unsigned uid_t, gid_t;
enum { SYSTEM_ROOT = 0, SYSTEM_OTHER = 1, SYSTEM_CALLER = 1000 };
/* Those of the C runtime have 16 and 32 bits. */
#define ino_t uint64_t
#define dev_t uint64_t

#undef PATH_MAX
#define PATH_MAX 4096
#undef NAME_MAX
#define NAME_MAX 255

#define ESTALE 2001
#define EDQUOT 2002
#define EKEYREJECTED 2003
#define ETOOMANYREFS 2004
#undef EWOULDBLOCK
#define EWOULDBLOCK EAGAIN
#ifndef ENOTSUP
#define ENOTSUP EOPNOTSUPP
#endif

#undef O_CREAT
#define O_CREAT 0x0100
#define O_CLOEXEC O_NOINHERIT
#define O_NONBLOCK 0
#define O_NOCTTY 0
#define O_DIRECTORY 0x100000
#define O_NOFOLLOW 0x200000
#define O_PATH 0x400000
#define AT_FDCWD (-100)
#define AT_SYMLINK_NOFOLLOW 0x100
#define AT_REMOVEDIR 0x200
#define AT_EACCESS 0x400
#define AT_EMPTY_PATH 0x1000

#define S_IFLNK 0xA000
#define S_IFSOCK 0xC000
#undef S_ISLNK
#define S_ISLNK(mode) (((mode) & 0xF000) == S_IFLNK)
#define S_ISSOCK(mode) (((mode) & 0xF000) == S_IFSOCK)
#undef S_IRWXG
#undef S_IRWXO
#undef S_IWGRP
#undef S_IWOTH
#undef S_IROTH
#undef S_IXOTH
#undef S_IRGRP
#undef S_IXGRP
#define S_IRWXG 070
#define S_IRGRP 040
#define S_IWGRP 020
#define S_IXGRP 010
#define S_IRWXO 07
#define S_IROTH 04
#define S_IWOTH 02
#define S_IXOTH 01
#define S_ISUID 04000
#define S_ISGID 02000
#define S_ISVTX 01000

/* ---- files ------------------------------------------------------------------------------------------------------- */

struct system_stat {
	uint64_t st_dev, st_ino, st_nlink, st_rdev;
	unsigned st_mode;
	uid_t st_uid; /* one of those above */
	gid_t st_gid;
	int64_t st_size, st_blocks, st_blksize;
	struct timespec st_atim, st_mtim, st_ctim;
};
#define st_atime st_atim.tv_sec
#define st_mtime st_mtim.tv_sec
#define st_ctime st_ctim.tv_sec
#undef stat
#undef fstat
#undef lstat
#define stat system_stat
#define fstat system_fstat
#define lstat system_lstat
#define fstatat system_fstatat
int system_stat(const char *path, struct system_stat *ret_info);
int system_lstat(const char *path, struct system_stat *ret_info);
int system_fstat(int fd, struct system_stat *ret_info);
int system_fstatat(int fd, const char *path, struct system_stat *ret_info, int flags);

int system_openat(int fd, const char *path, int flags, ...);
int system_open(const char *path, int flags, ...);
FILE *system_fopen(const char *path, const char *mode);
#define openat system_openat
#define open system_open
#define fopen system_fopen
int mkdirat(int fd, const char *path, unsigned mode);
#define mkdir(path, mode) mkdirat(AT_FDCWD, path, mode)
int unlinkat(int fd, const char *path, int flags);
#undef unlink
#define unlink(path) unlinkat(AT_FDCWD, path, 0)
#define rmdir(path) unlinkat(AT_FDCWD, path, AT_REMOVEDIR)
int renameat(int from_fd, const char *from, int to_fd, const char *to);
#define rename(from, to) renameat(AT_FDCWD, from, AT_FDCWD, to)
#define RENAME_NOREPLACE (1u << 0)
#define RENAME_EXCHANGE (1u << 1)
int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags);
int linkat(int from_fd, const char *from, int to_fd, const char *to, int flags);
int symlinkat(const char *text, int fd, const char *path);
#define symlink(text, path) symlinkat(text, AT_FDCWD, path)
ssize_t readlinkat(int fd, const char *path, char *text, size_t size);
#define readlink(path, text, size) readlinkat(AT_FDCWD, path, text, size)
int mkfifoat(int fd, const char *path, unsigned mode);
int mknodat(int fd, const char *path, unsigned mode, unsigned device);
int faccessat(int fd, const char *path, int mode, int flags);
#define access(path, mode) faccessat(AT_FDCWD, path, mode, 0)
#define F_OK 0
#define X_OK 1
#define W_OK 2
#define R_OK 4
/* Access lists are inherited here; these only look whether there is a file. */
int fchmodat(int fd, const char *path, unsigned mode, int flags);
int fchmod(int fd, unsigned mode);
#define chmod(path, mode) fchmodat(AT_FDCWD, path, mode, 0)
int fchown(int fd, uid_t uid, gid_t gid);
char *system_getcwd(char *path, size_t size);
int system_chdir(const char *path);
char *system_realpath(const char *path, char *ret_path);
#define getcwd system_getcwd
#define chdir system_chdir
#define realpath system_realpath

/* Of both times only "now": `times` is NULL. */
int futimens(int fd, const struct timespec times[2]);
/* And the lock of a directory, see flock(). */
int system_close(int fd);
#define close system_close
ssize_t pread(int fd, void *bytes, size_t size, off_t offset);
ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset);
int fsync(int fd);
#define fdatasync fsync
/* Each file is flushed by its own descriptor; a directory has nothing to flush here. */
#define syncfs fsync
#define FALLOC_FL_KEEP_SIZE 1
int fallocate(int fd, int mode, off_t offset, off_t length);

struct flock {
	short l_type, l_whence;
	off_t l_start, l_len;
};
#define F_DUPFD_CLOEXEC 1030
#define F_OFD_GETLK 36
#define F_OFD_SETLK 37
#define F_GETFL 3
#define F_SETFL 4
#define F_GETFD 1
#define F_SETFD 2
#define FD_CLOEXEC 1
#define F_RDLCK 0
#define F_WRLCK 1
#define F_UNLCK 2
int fcntl(int fd, int command, ...);

/* ---- libc -------------------------------------------------------------------------------------------------------- */

#define PIPE_BUF 4096
#define pipe(ends) _pipe(ends, 65536, O_BINARY | O_NOINHERIT)
#define CLOCK_BOOTTIME CLOCK_MONOTONIC
#define GRND_NONBLOCK 1
ssize_t getrandom(void *bytes, size_t size, unsigned flags);
static inline uid_t getuid(void)
{
	return SYSTEM_CALLER;
}
static inline uid_t geteuid(void)
{
	return SYSTEM_CALLER;
}
static inline gid_t getgid(void)
{
	return SYSTEM_CALLER;
}
static inline gid_t getegid(void)
{
	return SYSTEM_CALLER;
}
/* UTF-8. HOME is the user's profile where it is not set; what is a path of Windows begins with "/c/" instead. */
char *system_getenv(const char *name);
#define getenv system_getenv
/* The same of all, made once: names in capitals, and what is one path or PATH mapped. Who changes the environment does
 * so before. */
char **system_environment(void);
#undef environ
#define environ system_environment()
int setenv(const char *name, const char *value, int replace);
/* Names of variables are compared without case, and programs need these. */
#define SYSTEM_COMPARE_NAMES strncasecmp
/* And names of files. */
#define SYSTEM_COMPARE_PATHS strcasecmp
/* A program is named without these, too; and no bit of a mode says what is one. */
#define SYSTEM_PROGRAM_ENDINGS "", ".exe", ".com"
#define SYSTEM_RUNS_ANY_FILE
#define SYSTEM_ENV_NAMES                                                                                               \
	"SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "OS", "NUMBER_OF_PROCESSORS",                     \
		"PROCESSOR_ARCHITECTURE"

void explicit_bzero(void *bytes, size_t size);
void *memrchr(const void *bytes, int c, size_t size);
void *mempcpy(void *to, const void *from, size_t size);
void *memmem(const void *bytes, size_t size, const void *wanted, size_t length);
char *strchrnul(const char *text, int c);
char *stpcpy(char *to, const char *from);
char *strsep(char **text, const char *separators);
char *system_basename(char *path);
#define basename system_basename
void qsort_r(void *items, size_t count, size_t size, int (*compare)(const void *, const void *, void *), void *arg);
char *strndup(const char *text, size_t most);
char *strcasestr(const char *text, const char *wanted);
void *reallocarray(void *old, size_t count, size_t size);
const char *strerrordesc_np(int number);
FILE *open_memstream(char **ret_text, size_t *ret_length);
int system_fclose(FILE *stream);
#define fclose system_fclose

typedef _locale_t locale_t;
#define LC_ALL_MASK LC_ALL
static inline locale_t newlocale(int mask, const char *name, locale_t base)
{
	(void)base;
	return _create_locale(mask, name);
}
#define tell system_tell        /* a name that is free elsewhere */
#define freelocale _free_locale
#define strtod_l _strtod_l

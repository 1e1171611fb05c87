/* What cordon's portable rooms use of Linux and its libc, for macOS. Included before every source file (-include) when
 * cordon is built there; what is declared here is in system.c. Semantics are those of Linux's manual pages, less what
 * is said here. */
#pragma once
#include <crt_externs.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>
#include <xlocale.h>

#define SYSTEM_NAME "macos"

#define st_atim st_atimespec
#define st_mtim st_mtimespec
#define st_ctim st_ctimespec

#ifndef EKEYREJECTED
#define EKEYREJECTED EAUTH
#endif

/* With O_NOFOLLOW, a descriptor of the link itself. There are no descriptors of what may not be read. */
#define O_PATH 0x20000000
int system_open(const char *path, int flags, ...);
int system_openat(int fd, const char *path, int flags, ...);
#define open system_open
#define openat system_openat
/* Of "" the link that `fd` is. */
ssize_t system_readlinkat(int fd, const char *path, char *text, size_t size);
#define readlinkat system_readlinkat

#define RENAME_NOREPLACE (1u << 0)
#define RENAME_EXCHANGE (1u << 1)
int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags);

#define FALLOC_FL_KEEP_SIZE 1
int fallocate(int fd, int mode, off_t offset, off_t length);
int fdatasync(int fd);
int syncfs(int fd);

/* A file without a name. It lies in the user's directory for temporary files, not in memory. */
#define MFD_CLOEXEC 1
int memfd_create(const char *name, unsigned flags);

/* Of this process only. More open files than the system allows are as many as it does. In driver/macos/means.c. */
int system_prlimit(pid_t pid, int resource, const struct rlimit *limit, struct rlimit *ret_before);
#define prlimit system_prlimit

/* The descriptors are closed in programs that are executed, but not from their first moment on; and no socket that is
 * made so, or with accept4(), sends SIGPIPE, which is what MSG_NOSIGNAL is for. */
#define SOCK_CLOEXEC 0x10000000
#define SOCK_NONBLOCK 0x20000000
int system_socket(int domain, int type, int protocol);
#define socket(domain, type, protocol) system_socket(domain, type, protocol)
int accept4(int fd, struct sockaddr *ret_address, socklen_t *length, int flags);
int pipe2(int ret_fds[2], int flags);
/* There is none. */
static inline int close_range(unsigned first, unsigned last, int flags)
{
	(void)first;
	(void)last;
	(void)flags;
	errno = ENOSYS;
	return -1;
}
#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif
#define MSG_CMSG_CLOEXEC 0

void explicit_bzero(void *bytes, size_t size);

#define GRND_NONBLOCK 1
ssize_t getrandom(void *bytes, size_t size, unsigned flags);

void *memrchr(const void *bytes, int c, size_t size);
void *mempcpy(void *to, const void *from, size_t size);
char *system_strchrnul(const char *text, int c);
#define strchrnul system_strchrnul
void *reallocarray(void *old, size_t count, size_t size);
void system_qsort_r(void *items, size_t count, size_t size, int (*compare)(const void *, const void *, void *),
                    void *arg);
#define qsort_r system_qsort_r
char *system_basename(char *path);
#define basename system_basename
const char *strerrordesc_np(int number);
const char *sigabbrev_np(int number);

#define environ (*_NSGetEnviron())

/* It runs while the machine sleeps, as Linux's does. */
#define CLOCK_BOOTTIME CLOCK_MONOTONIC

/* As many entries as there is room for; what readdir() is made of. */
#define dirent64 dirent
ssize_t getdents64(int fd, void *buffer, size_t size);

/* macOS's own knows no terminals; beside one the end of what is not read is told a moment later. */
int system_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
#define poll system_poll

/* The mask is changed before and after, so a signal between is noticed only when the waiting ends. */
int system_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask);
#define ppoll system_ppoll

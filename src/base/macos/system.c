/* See system.h. */
#undef open
#undef openat
#undef readlinkat
#undef qsort_r
#undef socket
#include <limits.h>
#include <stdarg.h>
#include <sys/random.h>
#include <sys/sysctl.h>
#include <sys/sysinfo.h>

#include "base/cleanup.h"

static int open_flags(int flags)
{
	if (!(flags & O_PATH))
		return flags;
	flags = (flags & ~O_PATH) | O_RDONLY | O_NONBLOCK;
	return flags & O_NOFOLLOW && !(flags & O_DIRECTORY) ? (flags & ~O_NOFOLLOW) | O_SYMLINK : flags;
}

static unsigned take_mode(int flags, va_list arguments)
{
	return flags & O_CREAT ? va_arg(arguments, unsigned) : 0;
}

int system_openat(int fd, const char *path, int flags, ...)
{
	va_list arguments;
	va_start(arguments, flags);
	unsigned mode = take_mode(flags, arguments);
	va_end(arguments);
	return openat(fd, path, open_flags(flags), mode);
}

int system_open(const char *path, int flags, ...)
{
	va_list arguments;
	va_start(arguments, flags);
	unsigned mode = take_mode(flags, arguments);
	va_end(arguments);
	return openat(AT_FDCWD, path, open_flags(flags), mode);
}

ssize_t system_readlinkat(int fd, const char *path, char *text, size_t size)
{
	char own[PATH_MAX];
	struct stat held, named;
	if (*path)
		return readlinkat(fd, path, text, size);
	/* freadlink() came with macOS 13; before it, the path of the descriptor, if that is still the same link. */
	if (fcntl(fd, F_GETPATH, own) < 0)
		return -1;
	ssize_t length = readlink(own, text, size);
	if (length >= 0 && (fstat(fd, &held) < 0 || lstat(own, &named) < 0 || held.st_ino != named.st_ino ||
	                    held.st_dev != named.st_dev)) {
		errno = ENOENT;
		return -1;
	}
	return length;
}

int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
	unsigned own = (flags & RENAME_NOREPLACE ? RENAME_EXCL : 0) | (flags & RENAME_EXCHANGE ? RENAME_SWAP : 0);
	int result = renameatx_np(from_fd, from, to_fd, to, own);
	if (result < 0 && errno == ENOTSUP)
		errno = EINVAL;
	return result;
}

int fallocate(int fd, int mode, off_t offset, off_t length)
{
	struct stat info;
	(void)mode;
	if (fstat(fd, &info) < 0)
		return -1;
	fstore_t space = { .fst_flags = F_ALLOCATEALL, .fst_posmode = F_PEOFPOSMODE };
	off_t end = offset + length, there = (off_t)info.st_blocks * 512;
	if (end <= there)
		return 0;
	space.fst_length = end - (info.st_size > there ? info.st_size : there);
	return space.fst_length <= 0 || fcntl(fd, F_PREALLOCATE, &space) != -1 ? 0 : -1;
}

int syncfs(int fd)
{
	return fsync_volume_np(fd, SYNC_VOLUME_FULLSYNC | SYNC_VOLUME_WAIT);
}

/* fsync() does not empty the disk's own cache here. */
int fdatasync(int fd)
{
	return fcntl(fd, F_FULLFSYNC) < 0 ? fsync(fd) : 0;
}

ssize_t getrandom(void *bytes, size_t size, unsigned flags)
{
	(void)flags;
	for (size_t done = 0; done < size; done += 256)
		if (getentropy((char *)bytes + done, size - done < 256 ? size - done : 256) < 0)
			return -1;
	return (ssize_t)size;
}

int memfd_create(const char *name, unsigned flags)
{
	char directory[PATH_MAX], path[PATH_MAX];
	size_t length = confstr(_CS_DARWIN_USER_TEMP_DIR, directory, sizeof(directory));
	if (!length || length > sizeof(directory) ||
	    snprintf(path, sizeof(path), "%s/%s-XXXXXX", directory, name) >= (int)sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	int fd = mkstemp(path);
	if (fd < 0)
		return -1;
	unlink(path);
	if (flags & MFD_CLOEXEC)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	return fd;
}

int pipe2(int ret_fds[2], int flags)
{
	int fds[2];
	if (pipe(fds) < 0)
		return -1;
	for (int i = 0; i < 2; i++) {
		if (flags & O_CLOEXEC)
			fcntl(fds[i], F_SETFD, FD_CLOEXEC);
		if (flags & O_NONBLOCK)
			fcntl(fds[i], F_SETFL, O_NONBLOCK);
		ret_fds[i] = fds[i];
	}
	return 0;
}

static int set_flags(int fd, int flags)
{
	static const int on = 1;
	if (fd < 0)
		return fd;
	setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof(on));
	if (flags & SOCK_CLOEXEC)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	int status = fcntl(fd, F_GETFL);
	fcntl(fd, F_SETFL, flags & SOCK_NONBLOCK ? status | O_NONBLOCK : status & ~O_NONBLOCK);
	return fd;
}

int system_socket(int domain, int type, int protocol)
{
	int flags = type & (SOCK_CLOEXEC | SOCK_NONBLOCK);
	return set_flags(socket(domain, type & ~flags, protocol), flags);
}

int accept4(int fd, struct sockaddr *ret_address, socklen_t *length, int flags)
{
	return set_flags(accept(fd, ret_address, length), flags);
}

void explicit_bzero(void *bytes, size_t size)
{
	memset(bytes, 0, size);
	__asm__ volatile("" : : "r"(bytes) : "memory");
}

void *memrchr(const void *bytes, int c, size_t size)
{
	for (const unsigned char *at = (const unsigned char *)bytes + size; at > (const unsigned char *)bytes;)
		if (*--at == (unsigned char)c)
			return (void *)(uintptr_t)at;
	return NULL;
}

void *mempcpy(void *to, const void *from, size_t size)
{
	return (char *)memcpy(to, from, size) + size;
}

char *system_strchrnul(const char *text, int c)
{
	char *found = strchr(text, c);
	return found ? found : (char *)(uintptr_t)text + strlen(text);
}

void *reallocarray(void *old, size_t count, size_t size)
{
	size_t total;
	if (__builtin_mul_overflow(count, size, &total)) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(old, total);
}

struct ordering {
	int (*compare)(const void *, const void *, void *);
	void *arg;
};

static int compare_by(void *ordering, const void *a, const void *b)
{
	const struct ordering *by = ordering;
	return by->compare(a, b, by->arg);
}

void system_qsort_r(void *items, size_t count, size_t size, int (*compare)(const void *, const void *, void *),
                    void *arg)
{
	struct ordering by = { compare, arg };
	qsort_r(items, count, size, &by, compare_by);
}

char *system_basename(char *path)
{
	char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

const char *strerrordesc_np(int number)
{
	return strerror(number);
}

const char *sigabbrev_np(int number)
{
	static char names[NSIG][16];
	if (number <= 0 || number >= NSIG)
		return NULL;
	for (size_t i = 0; i + 1 < sizeof(names[0]) && sys_signame[number][i]; i++)
		names[number][i] = (char)(sys_signame[number][i] >= 'a' && sys_signame[number][i] <= 'z'
		                                  ? sys_signame[number][i] - 'a' + 'A'
		                                  : sys_signame[number][i]);
	return names[number];
}

ssize_t __getdirentries64(int fd, void *buffer, size_t size, off_t *position);

ssize_t getdents64(int fd, void *buffer, size_t size)
{
	off_t position;
	return __getdirentries64(fd, buffer, size, &position);
}

int system_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	sigset_t before;
	if (mask)
		pthread_sigmask(SIG_SETMASK, mask, &before);
	int result = poll(fds, count, timeout ? (int)(timeout->tv_sec * 1000 + timeout->tv_nsec / 1000000) : -1),
	    number = errno;
	if (mask)
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = number;
	return result;
}

int sysinfo(struct sysinfo *ret_info)
{
	uint64_t bytes;
	size_t size = sizeof(bytes);
	if (sysctlbyname("hw.memsize", &bytes, &size, NULL, 0) < 0)
		return -1;
	*ret_info = (struct sysinfo){ bytes, 1 };
	return 0;
}

/* The system calls of <sys/syscall.h>. Those of src/base/windows are linked a second time for it, with "real_" before
 * their names. */
#include "shim.h"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <windows.h>

ssize_t real_writev(int fd, const struct iovec *parts, int count);
int real_fsync(int fd);
int real_fallocate(int fd, int mode, off_t offset, off_t length);
int real_unlinkat(int fd, const char *path, int flags);
int real_renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags);

static int tell_time(clockid_t clock, struct timespec *ret_now)
{
	if (clock == CLOCK_REALTIME) {
		FILETIME now;
		GetSystemTimePreciseAsFileTime(&now);
		uint64_t ticks = ((uint64_t)now.dwHighDateTime << 32 | now.dwLowDateTime) - 116444736000000000u;
		*ret_now = (struct timespec){ (time_t)(ticks / 10000000), (long)(ticks % 10000000 * 100) };
	} else {
		LARGE_INTEGER count, each;
		QueryPerformanceCounter(&count);
		QueryPerformanceFrequency(&each);
		*ret_now = (struct timespec){ count.QuadPart / each.QuadPart,
			                      (long)(count.QuadPart % each.QuadPart * 1000000000 / each.QuadPart) };
	}
	return 0;
}

long syscall(long number, ...)
{
	va_list list;
	va_start(list, number);
	long result = -1;
	int fd = number == SYS_nanosleep ? -1 : va_arg(list, int);
	const void *first = number == SYS_ftruncate || number == SYS_fallocate || number == SYS_fdatasync
	                            ? NULL
	                            : va_arg(list, void *);
	switch (number) {
	case SYS_write:
		result = write(fd, first, (unsigned)va_arg(list, size_t));
		break;
	case SYS_writev:
		result = (long)real_writev(fd, first, va_arg(list, int));
		break;
	case SYS_ftruncate:
		errno = _chsize_s(fd, va_arg(list, off_t));
		result = errno ? -1 : 0;
		break;
	case SYS_fallocate: {
		int mode = va_arg(list, int);
		off_t offset = va_arg(list, off_t);
		result = real_fallocate(fd, mode, offset, va_arg(list, off_t));
		break;
	}
	case SYS_fdatasync:
		result = real_fsync(fd);
		break;
	case SYS_nanosleep: {
		const struct timespec *wanted = first;
		Sleep((DWORD)(wanted->tv_sec * 1000 + (wanted->tv_nsec + 999999) / 1000000));
		result = 0;
		break;
	}
	case SYS_clock_gettime:
		result = tell_time(fd, (void *)first);
		break;
	case SYS_unlinkat:
		result = real_unlinkat(fd, first, va_arg(list, int));
		break;
	case SYS_renameat2: {
		int to_fd = va_arg(list, int);
		const char *to = va_arg(list, const char *);
		result = real_renameat2(fd, first, to_fd, to, va_arg(list, unsigned));
		break;
	}
	default:
		errno = ENOSYS;
	}
	va_end(list);
	return result;
}

void *dlsym(void *library, const char *name)
{
	(void)library;
	return strcmp(name, "renameat2") ? NULL : real_renameat2;
}

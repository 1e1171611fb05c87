/* Whole files: see file.h. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>

enum writer { OWN, OWN_OR_ROOT, ANYBODY };

static bool is_trusted(const struct stat *info, enum writer writer)
{
	if (writer == ANYBODY)
		return true;
	return (info->st_uid == geteuid() || (writer == OWN_OR_ROOT && info->st_uid == 0)) &&
	       !(info->st_mode & (S_IWGRP | S_IWOTH));
}

static int check(int fd, size_t max, enum writer writer, size_t *ret_size)
{
	struct stat info;
	if (fstat(fd, &info) < 0)
		return -errno;
	if (!S_ISREG(info.st_mode))
		return -EINVAL;
	if (!is_trusted(&info, writer))
		return -EPERM;
	if (info.st_size <= 0 || (size_t)info.st_size > max)
		return info.st_size > 0 ? -EFBIG : -ENODATA;
	*ret_size = (size_t)info.st_size;
	return 0;
}

static int read_whole(int directory_fd, const char *name, size_t max, enum writer writer, char **ret_text,
                      size_t *ret_length)
{
	auto_close int fd = openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	size_t size = 0, done = 0;
	int result = fd < 0 ? -errno : check(fd, max, writer, &size);
	if (result < 0)
		return result;
	char *text = malloc(size + 1);
	if (!text)
		return -ENOMEM;
	while (done < size) {
		ssize_t got = read(fd, text + done, size - done);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			free(text);
			return got < 0 ? -errno : -ENODATA;
		}
		done += (size_t)got;
	}
	text[size] = '\0';
	*ret_text = text;
	*ret_length = size;
	return 0;
}

int file_read(int directory_fd, const char *name, size_t max, char **ret_text, size_t *ret_length)
{
	return read_whole(directory_fd, name, max, OWN, ret_text, ret_length);
}

int file_read_trusted(int directory_fd, const char *name, size_t max, char **ret_text, size_t *ret_length)
{
	return read_whole(directory_fd, name, max, OWN_OR_ROOT, ret_text, ret_length);
}

int file_read_any(int directory_fd, const char *name, size_t max, char **ret_text, size_t *ret_length)
{
	return read_whole(directory_fd, name, max, ANYBODY, ret_text, ret_length);
}

int file_create(int directory_fd, const char *name, const char *text, size_t length, int *ret_fd)
{
	auto_close int fd = openat(directory_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	for (size_t done = 0; done < length;) {
		ssize_t put = write(fd, text + done, length - done);
		if (put < 0 && errno != EINTR) {
			int number = errno;
			unlinkat(directory_fd, name, 0);
			return -number;
		}
		done += put < 0 ? 0 : (size_t)put;
	}
	if (ret_fd)
		*ret_fd = take_fd(&fd);
	return 0;
}

int file_watch(int directory_fd, uint32_t events)
{
	char path[64];
	auto_close int notify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", directory_fd);
	return notify >= 0 && inotify_add_watch(notify, path, events | IN_ONLYDIR) >= 0 ? take_fd(&notify) : -1;
}

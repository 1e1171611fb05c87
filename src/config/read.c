/* Reads the configuration's files.
 *
 * The files of the user and of the system decide what commands may do. So they must be owned by root or the caller,
 * and not be writable by any other user. A project's file can only narrow, but it is where commands write: it may be a
 * link to a secret, a pipe that blocks, or endless. */
#include "config/read.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/toml.h"

#define FRESH_NS INT64_C(50000000)      /* some file systems keep time in steps of a kernel tick */
#define READ_ATTEMPTS 3

static int64_t nanoseconds(const struct timespec *time)
{
	return time->tv_sec * INT64_C(1000000000) + time->tv_nsec;
}

static struct config_stamp stamp_of(const struct stat *info)
{
	return (struct config_stamp){
		.device = info->st_dev, .inode = info->st_ino, .size = info->st_size,
		.modified_ns = nanoseconds(&info->st_mtim), .changed_ns = nanoseconds(&info->st_ctim),
	};
}

void config_stat(const struct config_place *place, struct config_stamp *ret_stamp)
{
	struct stat info;
	int flags = place->layer == CONFIG_PROJECT ? AT_SYMLINK_NOFOLLOW : 0;
	if (fstatat(place->directory_fd, place->name, &info, flags) == 0)
		*ret_stamp = stamp_of(&info);
	else
		*ret_stamp = (struct config_stamp){ .problem = errno == ENOTDIR ? ENOENT : errno };
}

bool config_stamp_same(const struct config_stamp *a, const struct config_stamp *b)
{
	return a->problem == b->problem && a->device == b->device && a->inode == b->inode && a->size == b->size &&
	       a->modified_ns == b->modified_ns && a->changed_ns == b->changed_ns;
}

bool config_stamp_is_fresh(const struct config_stamp *stamp)
{
	struct timespec time;
	clock_gettime(CLOCK_REALTIME, &time);
	int64_t now = nanoseconds(&time), last = stamp->changed_ns;
	if (stamp->modified_ns > last)
		last = stamp->modified_ns;
	return !stamp->problem && last > now - FRESH_NS && last < now + FRESH_NS;
}

static int refuse(const struct config_place *place, int number, const char *what, const char *remedy,
                  struct cordon_error *err)
{
	fail(err, CORDON_E_CONFIG_INVALID, number, place->path, "%s %s",
	     place->kind ? place->kind : "the configuration", what);
	fail_boundary(err, "configuration");
	return fail_remedy(err, "%s", remedy);
}

static int check_file(const struct config_place *place, const struct stat *info, struct cordon_error *err)
{
	struct stat above;
	if (!S_ISREG(info->st_mode))
		return refuse(place, 0, "is not a regular file", "replace it by one, or remove it", err);
	if (info->st_size > (off_t)TOML_SIZE_MAX)
		return refuse(place, 0, "is larger than 1 MiB", "make it smaller", err);
	if (place->layer == CONFIG_PROJECT) {
		if (info->st_uid == geteuid() ||
		    (fstat(place->directory_fd, &above) == 0 && info->st_uid == above.st_uid))
			return 0;
		return refuse(place, 0, "belongs to another user", "chown it, or remove it", err);
	}
	if (info->st_uid != 0 && info->st_uid != geteuid())
		return refuse(place, 0, "is owned by another user, who could change it", "chown it to yourself", err);
	if (info->st_mode & (S_IWGRP | S_IWOTH))
		return refuse(place, 0, "can be written by others", "chmod go-w it", err);
	return 0;
}

/* Everything up to one byte more than is allowed, so that too much is seen. */
static ssize_t read_whole(int fd, char *text, size_t size)
{
	size_t length = 0;
	while (length < size) {
		ssize_t got = read(fd, text + length, size - length);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -1;
		if (got == 0)
			break;
		length += (size_t)got;
	}
	return (ssize_t)length;
}

/* 1: it was changed meanwhile, try again. */
static int read_once(const struct config_place *place, struct config_stamp *ret_stamp, char **ret_text,
                     size_t *ret_length, struct cordon_error *err)
{
	struct stat before, after;
	int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (place->layer == CONFIG_PROJECT ? O_NOFOLLOW : 0);
	auto_close int fd = openat(place->directory_fd, place->name, flags);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
		*ret_stamp = (struct config_stamp){ .problem = ENOENT };
		*ret_text = NULL;
		return 0;
	}
	if (fd < 0 && errno == ELOOP && place->layer == CONFIG_PROJECT)
		return refuse(place, 0, "of a project must not be a symbolic link", "replace it by a file", err);
	if (fd < 0 && errno == EACCES && place->layer == CONFIG_PROJECT &&
	    faccessat(place->directory_fd, ".", X_OK, AT_EACCESS) < 0)
		return refuse(place, errno, "cannot be looked for, since its directory is closed",
		              "open the directory to yourself: chmod u+rwx", err);
	if (fd < 0 || fstat(fd, &before) < 0)
		return refuse(place, errno, "cannot be read", "make it readable, or remove it", err);
	if (check_file(place, &before, err) < 0)
		return -1;
	size_t size = (size_t)before.st_size + 1;
	auto_free char *text = malloc(size + 1);
	if (!text)
		return fail_oom(err);
	ssize_t length = read_whole(fd, text, size);
	if (length < 0 || fstat(fd, &after) < 0)
		return refuse(place, errno, "cannot be read", "make it readable, or remove it", err);
	struct config_stamp stamp = stamp_of(&before), stamp_after = stamp_of(&after);
	if ((size_t)length == size || !config_stamp_same(&stamp, &stamp_after))
		return 1;
	text[length] = '\0';
	*ret_stamp = stamp;
	*ret_length = (size_t)length;
	*ret_text = text;
	text = NULL;
	return 0;
}

int config_read(const struct config_place *place, struct config_stamp *ret_stamp, char **ret_text, size_t *ret_length,
                struct cordon_error *err)
{
	int result = 1;
	for (int attempt = 0; attempt < READ_ATTEMPTS && result > 0; attempt++)
		result = read_once(place, ret_stamp, ret_text, ret_length, err);
	if (result > 0)
		return refuse(place, 0, "is being changed all the time", "try again", err);
	return result;
}

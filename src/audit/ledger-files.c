/* The ledger's directory and how its files are opened: see ledger-files.h. */
#include "audit/ledger-files.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>

#include "base/error.h"
#include "base/file.h"

static const struct {
	int number;
	const char *remedy;
} remedies[] = {
	{ ENOSPC, "free space on that file system, or set another data directory" },
	{ EDQUOT, "raise the disk quota there, or set another data directory" },
	{ EROFS, "mount that file system read-write, or set another data directory" },
	{ EACCES, "make it writable for the user who runs cordon, or set another data directory" },
	{ EPERM, "check its owner, mode and attributes (ls -ld, lsattr), or set another data directory" },
	{ ELOOP, "replace the symbolic link by a directory or file of your own" },
	{ ENOTDIR, "a part of that path is not a directory: remove it, or set another data directory" },
	{ EISDIR, "remove the directory that is in the place of the ledger's file" },
	{ EFBIG, "raise the file size limit (ulimit -f)" },
	{ EMFILE, "raise the limit of open files (ulimit -n)" },
	{ EAGAIN, "find the process that uses the file: fuser -v FILE" },
	{ EKEYREJECTED,
	  "put the key back from a copy, or remove the file: a new one is made, and the ledger notes it" },
	{ 0, "look at the file of that name, and move it away if it is not cordon's" },
};

int ledger_refuse(const struct ledger_files *files, int os_errno, const char *name, const char *what,
                  struct cordon_error *err)
{
	char subject[sizeof(err->subject)];
	snprintf(subject, sizeof(subject), "%s%s%s%s", files->data_dir, name ? "/" LEDGER_DIRECTORY : "",
	         name && *name ? "/" : "", name ? name : "");
	fail(err, CORDON_E_AUDIT_UNAVAILABLE, os_errno, subject, "%s", what);
	fail_remedy(err, "check that the data directory can be written to, or set another one");
	for (size_t i = 0; i < ARRAY_SIZE(remedies); i++)
		if (remedies[i].number == os_errno)
			fail_remedy(err, "%s", remedies[i].remedy);
	return fail_boundary(err, "ledger");
}

/* ---- Directories ------------------------------------------------------------------------------------------------- */

static int make_directories(const char *path)
{
	char part[PATH_MAX];
	size_t length = strlen(path);
	if (length >= sizeof(part)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(part, path, length + 1);
	for (size_t i = 1; i <= length; i++) {
		if (part[i] != '/' && part[i] != '\0')
			continue;
		part[i] = '\0';
		if (mkdir(part, 0700) < 0 && errno != EEXIST)
			return -1;
		part[i] = path[i];
	}
	return 0;
}

static int open_data_dir(struct ledger_files *files, struct cordon_error *err)
{
	auto_close int fd = -1;
	struct stat st;
	close_fd(&files->data_fd);
	for (int made = 0; fd < 0; made++) {
		fd = open(files->data_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0)
			break;
		if (errno != ENOENT || made)
			return ledger_refuse(files, errno, NULL, "the data directory cannot be opened", err);
		if (make_directories(files->data_dir) < 0)
			return ledger_refuse(files, errno, NULL, "the data directory cannot be made", err);
	}
	/* A refusal is a row, too: nothing is written where nothing may be. */
	if (fstat(fd, &st) < 0 || !file_may_hold_data(&st))
		return ledger_refuse(files, EPERM, NULL, "the data directory can be changed by other users", err);
	files->data_fd = take_fd(&fd);
	return 0;
}

/* Ours, of this type, and not writable by others; errors name what it is not. */
static int check_owned(const struct ledger_files *files, const struct stat *st, mode_t type, const char *name,
                       struct cordon_error *err)
{
	if ((st->st_mode & S_IFMT) != type)
		return ledger_refuse(files, 0, name, type == S_IFDIR ? "is not a directory" : "is not a regular file",
		                     err);
	if (st->st_uid != geteuid())
		return ledger_refuse(files, EPERM, name, "belongs to another user", err);
	if (st->st_mode & (S_IWGRP | S_IWOTH))
		return ledger_refuse(files, EPERM, name, "can be written to by other users", err);
	return 0;
}

static int open_directory(struct ledger_files *files, int *ret_fd, struct cordon_error *err)
{
	struct stat st;
	auto_close int fd = -1;
	int number = 0;
	if (files->data_fd < 0 && open_data_dir(files, err) < 0)
		return -1;
	for (int attempt = 0; attempt < 3; attempt++) {
		fd = openat(files->data_fd, LEDGER_DIRECTORY, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		number = errno;
		if (fd >= 0 || number != ENOENT)
			break;
		if (!mkdirat(files->data_fd, LEDGER_DIRECTORY, 0700) || errno == EEXIST)
			continue;
		if (errno != ENOENT)
			return ledger_refuse(files, errno, "", "the ledger cannot be made", err);
		/* The data directory itself was removed since it was opened. */
		if (open_data_dir(files, err) < 0)
			return -1;
	}
	if (fd < 0) {
		if (!fstatat(files->data_fd, LEDGER_DIRECTORY, &st, AT_SYMLINK_NOFOLLOW) && S_ISLNK(st.st_mode))
			number = ELOOP;
		return ledger_refuse(files, number, "", "the ledger cannot be opened", err);
	}
	if (fstat(fd, &st) < 0)
		return ledger_refuse(files, errno, "", "the ledger cannot be examined", err);
	if (check_owned(files, &st, S_IFDIR, "", err) < 0)
		return -1;
	*ret_fd = take_fd(&fd);
	return 0;
}

/* ---- Files ------------------------------------------------------------------------------------------------------- */

int ledger_files_open(struct ledger_files *files, const char *name, int flags, int *ret_fd, struct stat *ret_st,
                      struct cordon_error *err)
{
	auto_close int dir = -1, fd = -1;
	if (open_directory(files, &dir, err) < 0)
		return -1;
	fd = openat(dir, name, O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | flags, 0600);
	if (fd < 0)
		return ledger_refuse(files, errno, name, "the ledger's file cannot be opened", err);
	if (fstat(fd, ret_st) < 0)
		return ledger_refuse(files, errno, name, "the ledger's file cannot be examined", err);
	if (check_owned(files, ret_st, S_IFREG, name, err) < 0)
		return -1;
	if (files->sync_disk && flags & O_CREAT && !ret_st->st_size && fsync(dir) < 0)
		return ledger_refuse(files, errno, name, "the new file's name did not reach the disk", err);
	*ret_fd = take_fd(&fd);
	return 0;
}

int ledger_files_stat(const struct ledger_files *files, const char *name, struct stat *ret_st)
{
	char path[sizeof(LEDGER_DIRECTORY) + NAME_MAX + 1] = LEDGER_DIRECTORY "/";
	strncpy(path + sizeof(LEDGER_DIRECTORY), name, NAME_MAX);
	return fstatat(files->data_fd, path, ret_st, AT_SYMLINK_NOFOLLOW);
}

bool ledger_files_fit(uint64_t size)
{
	struct rlimit limit;
	return getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY || size <= limit.rlim_cur;
}

void ledger_files_remove(const struct ledger_files *files, const char *name)
{
	char path[64];
	snprintf(path, sizeof(path), LEDGER_DIRECTORY "/%s", name);
	(void)!unlinkat(files->data_fd, path, 0);
}

/* The file that was there before the last one; -1 where there is none that can be written over. */
static int open_spare(const struct ledger_files *files, int dir, const char *name, size_t size)
{
	struct stat st;
	auto_close int fd = openat(dir, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) < 0 || check_owned(files, &st, S_IFREG, name, NULL) < 0 || st.st_nlink != 1 ||
	    (size_t)st.st_size != size)
		return -1;
	return take_fd(&fd);
}

static int make_fresh(const struct ledger_files *files, int dir, const char *name, int *ret_fd,
                      struct cordon_error *err)
{
	/* The lock of the head is held: a file of this name was left by a killed process. */
	int fd = unlinkat(dir, name, 0) < 0 && errno != ENOENT
	                 ? -1
	                 : openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return ledger_refuse(files, errno, name, "the ledger's file cannot be made", err);
	*ret_fd = fd;
	return 0;
}

static int replace(struct ledger_files *files, const char *name, const char *bytes, size_t size, bool spare,
                   struct cordon_error *err)
{
	char fresh[32];
	auto_close int dir = -1, fd = -1;
	snprintf(fresh, sizeof(fresh), "%s.new", name);
	if (open_directory(files, &dir, err) < 0)
		return -1;
	if (!ledger_files_fit(size))
		return ledger_refuse(files, EFBIG, name, "the ledger's file does not fit", err);
	fd = spare ? open_spare(files, dir, fresh, size) : -1;
	if (fd < 0 && make_fresh(files, dir, fresh, &fd, err) < 0)
		return -1;
	errno = ENOSPC;
	bool written = write(fd, bytes, size) == (ssize_t)size && (!files->sync_disk || fdatasync(fd) == 0);
	bool placed = written && ((spare && renameat2(dir, fresh, dir, name, RENAME_EXCHANGE) == 0) ||
	                          renameat(dir, fresh, dir, name) == 0);
	if (!placed || (files->sync_disk && fsync(dir) < 0))
		return ledger_refuse(files, errno, name, "the ledger's file cannot be written", err);
	return 0;
}

int ledger_files_replace(struct ledger_files *files, const char *name, const char *bytes, size_t size,
                         struct cordon_error *err)
{
	return replace(files, name, bytes, size, false, err);
}

int ledger_files_alternate(struct ledger_files *files, const char *name, const char *bytes, size_t size,
                           struct cordon_error *err)
{
	return replace(files, name, bytes, size, true, err);
}

/* ---- For whoever only reads -------------------------------------------------------------------------------------- */

int ledger_open_directory(const char *data_dir)
{
	auto_close int data_fd = open(data_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (data_fd < 0)
		return -1;
	return openat(data_fd, LEDGER_DIRECTORY, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int ledger_open_readable(int directory, const char *name)
{
	struct stat st;
	auto_close int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	if (!S_ISREG(st.st_mode)) {
		errno = EINVAL;
		return -1;
	}
	return take_fd(&fd);
}

void ledger_await_writer(int head)
{
	for (int tries = 0; flock(head, LOCK_SH | LOCK_NB) < 0 && tries < 50; tries++)
		usleep(1000);
}

bool day_name_valid(const char *name)
{
	static const char pattern[] = "dddd-dd-dd.jsonl";
	if (strlen(name) != DAY_NAME_LENGTH)
		return false;
	for (size_t i = 0; i < DAY_NAME_LENGTH; i++)
		if (pattern[i] == 'd' ? name[i] < '0' || name[i] > '9' : name[i] != pattern[i])
			return false;
	return true;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

int days_list(int directory, struct days *ret_days)
{
	struct days days = { 0 };
	size_t capacity = 0;
	int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		cleanup_close(&fd);
		return -1;
	}
	for (struct dirent *entry; (entry = readdir(dir));) {
		if (!day_name_valid(entry->d_name))
			continue;
		if (days.count == capacity) {
			capacity = capacity ? 2 * capacity : 64;
			void *grown = reallocarray(days.names, capacity, sizeof(*days.names));
			if (!grown) {
				free(days.names);
				closedir(dir);
				errno = ENOMEM;
				return -1;
			}
			days.names = grown;
		}
		memcpy(days.names[days.count++], entry->d_name, DAY_NAME_SIZE);
	}
	closedir(dir);
	if (days.count)
		qsort(days.names, days.count, sizeof(*days.names), compare_names);
	*ret_days = days;
	return 0;
}

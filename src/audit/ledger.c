/* A row is one writev() with O_APPEND, under flock(): whole lines only, whoever writes. The page cache outlives every
 * process, so a row is kept from the moment the call returns.
 *
 * A writer that is killed inside the call may leave half a line. Whoever writes next sees, under the lock, that the file
 * does not end in a newline; it ends that line and adds a row `{"row":"repair",…}` that says where it is, so that every
 * later line stands alone again. A write that came out short is taken back by truncating to the old size; where even
 * that fails, it is a torn line like any other.
 *
 * The day's file stays open between rows. One fstatat() per row, under the lock, tells whether it is still the file of
 * that name, and how long it is. Names are opened through the data directory's descriptor and never through a symbolic
 * link; a file that is not ours or that others may write to is no ledger. */
#include "audit/ledger.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>

#include "base/error.h"
#include "base/id.h"
#include "base/utc.h"

#define DIRECTORY "ledger"
#define DAY_NAME_LENGTH 16              /* YYYY-MM-DD.jsonl */
#define LOCK_PATIENCE_MS 10000          /* a stopped process that holds the lock must not stop all others for ever */

struct ledger {
	pthread_mutex_t mutex;          /* flock() does not separate threads */
	char *data_dir;
	bool sync_disk;
	int data_fd, fd;                /* -1 until needed */
	pid_t owner;                    /* who opened `fd`: a lock is shared with forked children */
	int64_t day;
	dev_t device;
	ino_t inode;
	char name[sizeof(DIRECTORY) + DAY_NAME_LENGTH + 1];
};

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
	{ EISDIR, "remove the directory that stands where the day's file should be" },
	{ EFBIG, "raise the file size limit (ulimit -f)" },
	{ EMFILE, "raise the limit of open files (ulimit -n)" },
	{ EAGAIN, "find who uses the file with: fuser -v FILE" },
	{ 0, "look at what stands there, and move it away if it is not cordon's" },
};

/* `name` is relative to the data directory, or NULL. */
static int refuse(const struct ledger *ledger, int number, const char *name, const char *what, struct cordon_error *err)
{
	char subject[sizeof(err->subject)];
	snprintf(subject, sizeof(subject), "%s%s%s", ledger->data_dir, name ? "/" : "", name ? name : "");
	fail(err, CORDON_E_AUDIT_UNAVAILABLE, number, subject, "%s", what);
	fail_remedy(err, "check that the data directory can be written to, or set another one");
	for (size_t i = 0; i < ARRAY_SIZE(remedies); i++)
		if (remedies[i].number == number)
			fail_remedy(err, "%s", remedies[i].remedy);
	return fail_boundary(err, "ledger");
}

int ledger_open(const char *data_dir, bool sync_disk, struct ledger **ret_ledger, struct cordon_error *err)
{
	if (!data_dir || data_dir[0] != '/')
		return fail(err, CORDON_E_AUDIT_UNAVAILABLE, 0, data_dir, "the data directory must be an absolute path");
	struct ledger *ledger = calloc(1, sizeof(*ledger));
	if (!ledger || !(ledger->data_dir = strdup(data_dir))) {
		free(ledger);
		return fail_oom(err);
	}
	pthread_mutex_init(&ledger->mutex, NULL);
	ledger->sync_disk = sync_disk;
	ledger->data_fd = ledger->fd = -1;
	*ret_ledger = ledger;
	return 0;
}

static void drop(int *fd)
{
	cleanup_close(fd);
	*fd = -1;
}

void ledger_unref(struct ledger *ledger)
{
	if (!ledger)
		return;
	drop(&ledger->fd);
	drop(&ledger->data_fd);
	pthread_mutex_destroy(&ledger->mutex);
	free(ledger->data_dir);
	free(ledger);
}

/* ---- Opening ---------------------------------------------------------------------------------------------------- */

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

static int open_data_dir(struct ledger *ledger, struct cordon_error *err)
{
	drop(&ledger->data_fd);
	for (int made = 0; ledger->data_fd < 0; made++) {
		ledger->data_fd = open(ledger->data_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (ledger->data_fd >= 0)
			break;
		if (errno != ENOENT || made)
			return refuse(ledger, errno, NULL, "the data directory cannot be opened", err);
		if (make_directories(ledger->data_dir) < 0)
			return refuse(ledger, errno, NULL, "the data directory cannot be made", err);
	}
	return 0;
}

/* Ours, of this type, and not writable by others; errors name what it is not. */
static int check_owned(const struct ledger *ledger, const struct stat *st, mode_t type, const char *name,
                       struct cordon_error *err)
{
	if ((st->st_mode & S_IFMT) != type)
		return refuse(ledger, 0, name, type == S_IFDIR ? "is not a directory" : "is not a regular file", err);
	if (st->st_uid != geteuid())
		return refuse(ledger, EPERM, name, "belongs to another user", err);
	if (st->st_mode & (S_IWGRP | S_IWOTH))
		return refuse(ledger, EPERM, name, "can be written to by other users", err);
	return 0;
}

static int open_ledger_dir(struct ledger *ledger, int *ret_fd, struct cordon_error *err)
{
	struct stat st;
	auto_close int fd = -1;
	int number = 0;
	for (int attempt = 0; attempt < 3; attempt++) {
		fd = openat(ledger->data_fd, DIRECTORY, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		number = errno;
		if (fd >= 0 || number != ENOENT)
			break;
		if (!mkdirat(ledger->data_fd, DIRECTORY, 0700) || errno == EEXIST)
			continue;
		if (errno != ENOENT)
			return refuse(ledger, errno, DIRECTORY, "the ledger cannot be made", err);
		/* The data directory itself was removed since it was opened. */
		if (open_data_dir(ledger, err) < 0)
			return -1;
	}
	if (fd < 0) {
		if (!fstatat(ledger->data_fd, DIRECTORY, &st, AT_SYMLINK_NOFOLLOW) && S_ISLNK(st.st_mode))
			number = ELOOP;
		return refuse(ledger, number, DIRECTORY, "the ledger cannot be opened", err);
	}
	if (fstat(fd, &st) < 0)
		return refuse(ledger, errno, DIRECTORY, "the ledger cannot be examined", err);
	if (check_owned(ledger, &st, S_IFDIR, DIRECTORY, err) < 0)
		return -1;
	*ret_fd = take_fd(&fd);
	return 0;
}

/* `name` is relative to the data directory. */
static int open_file(struct ledger *ledger, const char *name, int more_flags, int *ret_fd, struct stat *ret_st,
                     struct cordon_error *err)
{
	auto_close int dir = -1, fd = -1;
	if ((ledger->data_fd < 0 && open_data_dir(ledger, err) < 0) || open_ledger_dir(ledger, &dir, err) < 0)
		return -1;
	fd = openat(dir, name + sizeof(DIRECTORY), O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | more_flags, 0600);
	if (fd < 0)
		return refuse(ledger, errno, name, "the ledger's file cannot be opened", err);
	if (fstat(fd, ret_st) < 0)
		return refuse(ledger, errno, name, "the ledger's file cannot be examined", err);
	if (check_owned(ledger, ret_st, S_IFREG, name, err) < 0)
		return -1;
	if (ledger->sync_disk && !ret_st->st_size && fsync(dir) < 0)
		return refuse(ledger, errno, name, "the new file's name did not reach the disk", err);
	*ret_fd = take_fd(&fd);
	return 0;
}

static int lock_file(struct ledger *ledger, int fd, const char *name, struct cordon_error *err)
{
	struct timespec pause = { .tv_nsec = 20000 };
	for (int64_t waited_ns = 0; flock(fd, LOCK_EX | LOCK_NB) < 0;) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return refuse(ledger, errno, name, "the ledger cannot be locked", err);
		if (waited_ns > LOCK_PATIENCE_MS * INT64_C(1000000))
			return refuse(ledger, EAGAIN, name, "the ledger is locked by another process", err);
		nanosleep(&pause, NULL);
		waited_ns += pause.tv_nsec;
		if (pause.tv_nsec < 500000)
			pause.tv_nsec *= 2;
	}
	return 0;
}

/* ---- Writing ---------------------------------------------------------------------------------------------------- */

/* All parts in one write at the end of the file, which is `*size` bytes long; or nothing. */
static int put(struct ledger *ledger, int fd, const char *name, const struct iovec *parts, int count, uint64_t *size,
               struct cordon_error *err)
{
	struct rlimit limit;
	size_t length = 0;
	for (int i = 0; i < count; i++)
		length += parts[i].iov_len;
	/* Writing beyond it would raise SIGXFSZ in a program that is not ours. */
	if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY && *size + length > limit.rlim_cur)
		return refuse(ledger, EFBIG, name, "the row does not fit", err);
	ssize_t written;
	do
		written = writev(fd, parts, count);
	while (written < 0 && errno == EINTR);
	if (written < 0)
		return refuse(ledger, errno, name, "the row cannot be written", err);
	if ((size_t)written != length) {
		bool undone = !ftruncate(fd, (off_t)*size);
		return refuse(ledger, ENOSPC, name, undone ? "the row was written in part and taken back" :
		              "the row was written in part and cannot be taken back", err);
	}
	*size += length;
	return 0;
}

/* Where the last line begins. */
static uint64_t line_start(int fd, uint64_t size)
{
	char block[4096];
	while (size) {
		size_t length = size < sizeof(block) ? (size_t)size : sizeof(block);
		if (pread(fd, block, length, (off_t)(size - length)) != (ssize_t)length)
			break;
		const char *newline = memrchr(block, '\n', length);
		if (newline)
			return size - length + (size_t)(newline - block) + 1;
		size -= length;
	}
	return size;
}

static int repair(struct ledger *ledger, int fd, const char *name, uint64_t *size, struct cordon_error *err)
{
	char last, id[ID_SIZE], when[UTC_SIZE], text[256];
	if (!*size)
		return 0;
	if (pread(fd, &last, 1, (off_t)*size - 1) != 1)
		return refuse(ledger, errno, name, "the ledger's last row cannot be read", err);
	if (last == '\n')
		return 0;
	utc_now(when);
	id_make(id);
	uint64_t torn = line_start(fd, *size);
	int length = snprintf(text, sizeof(text),
	                      "\n{\"row\":\"repair\",\"id\":\"%s\",\"time\":\"%s\",\"reason\":\"torn line\","
	                      "\"torn_at\":%" PRIu64 ",\"torn_bytes\":%" PRIu64 "}\n",
	                      id, when, torn, *size - torn);
	struct iovec part = { text, (size_t)length };
	return put(ledger, fd, name, &part, 1, size, err);
}

/* The newest file before today's may have been torn when nothing was written after. Once a day, as well as can be done:
 * an old file that was archived or made read-only is no reason to refuse today's rows. */
static void repair_previous(struct ledger *ledger)
{
	char newest[sizeof(ledger->name)] = DIRECTORY "/";
	const char *today = ledger->name + sizeof(DIRECTORY);
	char *best = newest + sizeof(DIRECTORY);
	auto_close int dir_fd = -1, fd = -1;
	struct stat st;
	if (open_ledger_dir(ledger, &dir_fd, NULL) < 0)
		return;
	DIR *dir = fdopendir(dir_fd);
	if (!dir)
		return;
	take_fd(&dir_fd);
	for (struct dirent *entry; (entry = readdir(dir));)
		if (strlen(entry->d_name) == DAY_NAME_LENGTH && !strcmp(entry->d_name + 10, ".jsonl") &&
		    strcmp(entry->d_name, today) < 0 && strcmp(entry->d_name, best) > 0)
			memcpy(best, entry->d_name, DAY_NAME_LENGTH + 1);
	closedir(dir);
	if (!*best || open_file(ledger, newest, 0, &fd, &st, NULL) < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 ||
	    fstat(fd, &st) < 0)
		return;
	uint64_t size = (uint64_t)st.st_size;
	(void)!repair(ledger, fd, newest, &size, NULL);
}

static int open_day(struct ledger *ledger, int64_t day, struct cordon_error *err)
{
	struct stat st;
	char midnight[UTC_SIZE];
	drop(&ledger->fd);
	utc_text(day * 86400, 0, midnight);
	int length = snprintf(ledger->name, sizeof(ledger->name), DIRECTORY "/%.*s.jsonl", UTC_DATE_LENGTH, midnight);
	if (length != sizeof(ledger->name) - 1)
		return refuse(ledger, EOVERFLOW, DIRECTORY, "the system's date cannot be written", err);
	if (open_file(ledger, ledger->name, O_CREAT, &ledger->fd, &st, err) < 0)
		return -1;
	ledger->day = day;
	ledger->owner = getpid();
	ledger->device = st.st_dev;
	ledger->inode = st.st_ino;
	return 0;
}

/* The day's file: open, locked, still the one of that name, ending in a whole line. */
static int acquire(struct ledger *ledger, uint64_t *ret_size, struct cordon_error *err)
{
	for (int attempt = 0; attempt < 16; attempt++) {
		struct stat st;
		int64_t day = time(NULL) / 86400;
		if ((ledger->fd < 0 || ledger->day != day || ledger->owner != getpid()) && open_day(ledger, day, err) < 0)
			return -1;
		if (lock_file(ledger, ledger->fd, ledger->name, err) < 0)
			return -1;
		if (fstatat(ledger->data_fd, ledger->name, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_ino != ledger->inode ||
		    st.st_dev != ledger->device) {
			drop(&ledger->fd);
			continue;
		}
		uint64_t size = (uint64_t)st.st_size;
		if (!size)
			repair_previous(ledger);
		else if (repair(ledger, ledger->fd, ledger->name, &size, err) < 0) {
			flock(ledger->fd, LOCK_UN);
			return -1;
		}
		*ret_size = size;
		return 0;
	}
	return refuse(ledger, EAGAIN, ledger->name, "the ledger's file is replaced again and again", err);
}

static int append(struct ledger *ledger, const struct iovec *parts, int count, struct cordon_error *err)
{
	uint64_t size;
	if (acquire(ledger, &size, err) < 0)
		return -1;
	int status = count ? put(ledger, ledger->fd, ledger->name, parts, count, &size, err) : 0;
	flock(ledger->fd, LOCK_UN);
	/* Outside the lock, so that many writers share one trip to the disk. */
	if (!status && count && ledger->sync_disk && fdatasync(ledger->fd) < 0)
		status = refuse(ledger, errno, ledger->name, "the row did not reach the disk", err);
	return status;
}

int ledger_append(struct ledger *ledger, const char *line, size_t length, struct cordon_error *err)
{
	if (!length || length >= LEDGER_LINE_MAX || memchr(line, '\n', length))
		return refuse(ledger, 0, NULL, length ? "a row must be one line of less than 1 MiB" : "a row is empty", err);
	struct iovec parts[] = { { (char *)(uintptr_t)line, length }, { (char[]){ '\n' }, 1 } };
	pthread_mutex_lock(&ledger->mutex);
	int status = append(ledger, parts, ARRAY_SIZE(parts), err);
	pthread_mutex_unlock(&ledger->mutex);
	return status;
}

int ledger_check(struct ledger *ledger, struct cordon_error *err)
{
	pthread_mutex_lock(&ledger->mutex);
	int status = append(ledger, NULL, 0, err);
	pthread_mutex_unlock(&ledger->mutex);
	return status;
}

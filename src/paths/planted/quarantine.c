/* Quarantine: see quarantine.h.
 *
 * A rename is atomic and keeps everything, so a file is renamed if possible. A file with a second name in the
 * workspace would stay connected to the one that was removed, and a file on another filesystem cannot be renamed:
 * these are copied, as far as there is space, and removed. A directory is copied, too: a command that still runs may
 * hold it open, and would continue to write into it. Removing a harmful file matters more than keeping its contents.
 * The workspace may change during all this; the quarantine directory does not. */
#include "paths/planted/quarantine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/compat.h"
#include "base/error.h"
#include "base/id.h"
#include "base/remove.h"

#define TRIES 1000
#define ENTRY_BYTES 4096                /* that anything counts as, however small */
#define LEAF_MAX 64
#define DEPTH_MAX 32
#define PASSES_MAX 8
#define CHECKS_MAX 128                  /* what so many checks took is kept, the newest */
#define SPARE "spare"

static char *new_name(struct arena *arena, const char *name, unsigned try)
{
	struct timespec now;
	char leaf[LEAF_MAX + 1];
	size_t length = 0;
	for (; name[length] && length < LEAF_MAX; length++) {
		char byte = name[length];
		bool plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
		             (byte >= '0' && byte <= '9') || byte == '-' || byte == '_' || byte == '.';
		leaf[length] = plain ? byte : '_';
	}
	leaf[length] = '\0';
	clock_gettime(CLOCK_REALTIME, &now);
	return arena_printf(arena, "%lld.%03ld-%u-%s", (long long)now.tv_sec, now.tv_nsec / 1000000, try, leaf);
}

static int write_all(int fd, const char *bytes, size_t size)
{
	while (size) {
		ssize_t written = write(fd, bytes, size);
		if (written < 0)
			return -1;
		bytes += written;
		size -= (size_t)written;
	}
	return 0;
}

static int copy_content(int from, int to, size_t *left)
{
	char buffer[16 * 1024];
	while (*left) {
		ssize_t got = read(from, buffer, *left < sizeof(buffer) ? *left : sizeof(buffer));
		if (got <= 0)
			return (int)got;
		if (write_all(to, buffer, (size_t)got) < 0)
			return -1;
		*left -= (size_t)got;
	}
	return 0;
}

static int copy_link(int fd, const char *name, int to)
{
	char target[4096];
	ssize_t length = readlinkat(fd, name, target, sizeof(target));
	return length < 0 ? -1 : write_all(to, target, (size_t)length);
}

static int copy(int fd, const char *name, bool is_link, int quarantine_fd, const char *as, size_t *left)
{
	auto_close int to = openat(quarantine_fd, as, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0)
		return -1;
	auto_close int from = is_link ? -1 : openat(fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if ((is_link  ? copy_link(fd, name, to) :
	     from < 0 ? -1 :
	                copy_content(from, to, left)) < 0 ||
	    unlinkat(fd, name, 0) < 0) {
		int saved = errno;
		unlinkat(quarantine_fd, as, 0);
		errno = saved;
		return -1;
	}
	return 0;
}

/* Is something else mounted on this directory? On overlays only directories tell. */
static bool is_mount(int fd, const struct stat *directory)
{
	struct stat parent;
	return fstat(fd, &parent) < 0 || parent.st_dev != directory->st_dev;
}

/* By copying. A directory is removed. */
static int carry(int fd, const char *name, const char *as, int to, size_t *left)
{
	struct stat stat;
	if (fstatat(fd, name, &stat, AT_SYMLINK_NOFOLLOW) < 0)
		return -1;
	bool is_link = S_ISLNK(stat.st_mode), is_file = S_ISREG(stat.st_mode), is_directory = S_ISDIR(stat.st_mode);
	if (is_directory && is_mount(fd, &stat)) {
		errno = EBUSY;
		return -1;
	}
	if (*left < ENTRY_BYTES)
		*left = 0;
	if (is_directory || !*left)
		return remove_tree(fd, name);
	*left -= ENTRY_BYTES;
	/* One that may be run but not read. */
	if (is_file && !(stat.st_mode & S_IRUSR) && fchmodat(fd, name, S_IRUSR, AT_SYMLINK_NOFOLLOW) < 0)
		return -1;
	if (is_link || is_file)
		return copy(fd, name, is_link, to, as, left);
	return mknodat(to, as, (stat.st_mode & S_IFMT) | S_IRUSR | S_IWUSR, 0) < 0 || unlinkat(fd, name, 0) < 0 ? -1 :
	                                                                                                          0;
}

static int carry_tree(int fd, const char *name, const char *as, int to, unsigned depth, size_t *left);

static void carry_entries(int from, int to, unsigned depth, size_t *left)
{
	DIR *directory = fdopendir(from);
	struct dirent *entry;
	while (directory && (entry = readdir(directory)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			(void)!carry_tree(dirfd(directory), entry->d_name, entry->d_name, to, depth, left);
	if (directory)
		closedir(directory);
	else
		close(from);
}

/* A directory to be emptied for good, which its owner may have to be allowed first. -1: none, or something else is
 * mounted there. */
static int open_directory(int fd, const char *name)
{
	struct stat stat;
	if (fstatat(fd, name, &stat, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(stat.st_mode) || is_mount(fd, &stat))
		return -1;
	if ((stat.st_mode & S_IRWXU) != S_IRWXU && fchmodat(fd, name, S_IRWXU, AT_SYMLINK_NOFOLLOW) < 0)
		return -1;
	return openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* A directory becomes a new one with copies of what was in it, and is removed. What there is no room for is removed. */
static int carry_tree(int fd, const char *name, const char *as, int to, unsigned depth, size_t *left)
{
	int held = depth < DEPTH_MAX && *left >= ENTRY_BYTES ? open_directory(fd, name) : -1;
	if (held < 0)
		return carry(fd, name, as, to, left);
	auto_close int fresh =
		mkdirat(to, as, 0700) < 0 ? -1 : openat(to, as, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fresh < 0) {
		close(held);
		return -1;
	}
	*left -= ENTRY_BYTES;
	carry_entries(held, fresh, depth + 1, left);
	for (unsigned pass = 1; unlinkat(fd, name, AT_REMOVEDIR) < 0; pass++) {
		held = pass < PASSES_MAX ? open_directory(fd, name) : -1;
		if (held < 0)
			return remove_tree(fd, name);
		carry_entries(held, fresh, depth + 1, left);
	}
	return 0;
}

static int take_as(int fd, const char *name, const struct stat *stat, int quarantine_fd, const char *as, size_t *room)
{
	bool is_link = S_ISLNK(stat->st_mode), is_file = S_ISREG(stat->st_mode);
	size_t size = is_file ? (size_t)stat->st_blocks * 512 + ENTRY_BYTES : ENTRY_BYTES;
	if (!is_file && !is_link)
		return carry_tree(fd, name, as, quarantine_fd, 0, room);
	if (is_link || stat->st_nlink > 1) {
		*room -= *room < ENTRY_BYTES ? *room : ENTRY_BYTES;
		int status = *room ? copy(fd, name, is_link, quarantine_fd, as, room) : unlinkat(fd, name, 0);
		/* A file that may be executed but not read is removed nevertheless, and its mode is cleared for its
		 * other names. */
		if (status == 0 || is_link || errno != EACCES)
			return status;
	}
	if (size > *room) {
		*room = 0;
		return unlinkat(fd, name, 0);
	}
	if (renameat2(fd, name, quarantine_fd, as, RENAME_NOREPLACE) < 0) {
		/* EINVAL: a filesystem that cannot promise not to replace */
		return errno == EXDEV || errno == EINVAL || errno == ENOSYS ? carry(fd, name, as, quarantine_fd, room) :
		                                                              -1;
	}
	*room -= size;
	/* Another command may have put a directory in its place, and hold that open. */
	struct stat arrived;
	if (fstatat(quarantine_fd, as, &arrived, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(arrived.st_mode))
		return remove_tree(quarantine_fd, as);
	return fchmodat(quarantine_fd, as, 0600, 0);
}

/* A command may have made the directory read-only, to keep what is in it. */
static bool unlock_directory(int fd)
{
	struct stat directory;
	return fstat(fd, &directory) == 0 && !(directory.st_mode & S_IWUSR) &&
	       fchmod(fd, (directory.st_mode & 07777) | S_IRWXU) == 0;
}

const char *quarantine_take(struct arena *arena, int fd, const char *name, int quarantine_fd, size_t *room)
{
	struct stat stat;
	if (fstatat(fd, name, &stat, AT_SYMLINK_NOFOLLOW) < 0)
		return NULL;
	for (unsigned try = 0; try < TRIES; try++) {
		char *as = new_name(arena, name, try);
		if (!as) {
			errno = ENOMEM;
			return NULL;
		}
		int status = take_as(fd, name, &stat, quarantine_fd, as, room);
		if (status < 0 && errno == EACCES && unlock_directory(fd))
			status = take_as(fd, name, &stat, quarantine_fd, as, room);
		if (status == 0)
			return as;
		if (errno != EEXIST)
			return NULL;
	}
	return NULL;
}

static int empty(int fd, const char *name)
{
	char self[64];
	struct stat stat;
	auto_close int held = openat(fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (held < 0 || fstat(held, &stat) < 0)
		return -1;
	if (!S_ISREG(stat.st_mode)) {
		errno = EPERM;
		return -1;
	}
	snprintf(self, sizeof(self), "/proc/self/fd/%d", held);
	(void)!chmod(self, S_IWUSR);
	int status = truncate(self, 0), reason = errno;
	if (chmod(self, 0) < 0 && status < 0)
		errno = reason;
	return status;
}

int quarantine_disarm(int fd, const char *name)
{
	if (unlinkat(fd, name, 0) == 0 || errno == ENOENT ||
	    (errno == EACCES && unlock_directory(fd) && unlinkat(fd, name, 0) == 0))
		return 0;
	return errno == EISDIR ? remove_tree(fd, name) : empty(fd, name);
}

static int open_all(const char *data_dir)
{
	char path[4096];
	if (snprintf(path, sizeof(path), "%s/quarantine", data_dir) >= (int)sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return -1;
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

int quarantine_reserve(const char *data_dir, struct cordon_error *err)
{
	auto_close int all = open_all(data_dir);
	if (all >= 0 && (mkdirat(all, SPARE, 0700) == 0 || errno == EEXIST))
		return 0;
	fail(err, CORDON_E_AUDIT_UNAVAILABLE, errno, data_dir, "there is no room for what a command may leave behind");
	return fail_remedy(err, "free some space, or move cordon's data to another filesystem (XDG_DATA_HOME)");
}

/* Ids sort by time. Returns how many checks there are. */
static size_t find_oldest(int all, char ret_oldest[ID_SIZE])
{
	int fd = openat(all, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	size_t count = 0;
	*ret_oldest = '\0';
	while (directory && (entry = readdir(directory))) {
		if (!id_time_ms(entry->d_name))
			continue;
		if (!count++ || strcmp(entry->d_name, ret_oldest) < 0)
			memcpy(ret_oldest, entry->d_name, ID_SIZE);
	}
	if (directory)
		closedir(directory);
	else if (fd >= 0)
		close(fd);
	return count;
}

int quarantine_open(const char *data_dir, const char *id, unsigned *ret_dropped)
{
	char oldest[ID_SIZE];
	unsigned dropped = 0;
	auto_close int all = open_all(data_dir);
	if (all < 0)
		return -1;
	while (dropped < CHECKS_MAX && find_oldest(all, oldest) > CHECKS_MAX && remove_tree(all, oldest) == 0)
		dropped++;
	if (mkdirat(all, id, 0700) < 0 && errno != EEXIST)
		(void)!renameat(all, SPARE, all, id);
	*ret_dropped = dropped;
	return openat(all, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

/* Quarantine: see quarantine.h.
 *
 * A rename is atomic and keeps everything, so it comes first. It will not do for a file with a second name in the
 * workspace, which would stay connected to the one taken away, nor from one filesystem to another: these are copied, as much as there
 * is room for, and removed; of what a command was free to make, that it is gone matters more than what it was. The
 * workspace may change under our hands; the quarantine directory does not, so what has arrived there is what counts. A command
 * that still runs may hold a directory that was taken, and would go on writing here: what is in it moves on to a new one. */
#include "session/quarantine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/compat.h"
#include "base/remove.h"

#define TRIES 1000
#define ENTRY_BYTES 4096                /* that anything counts as, however small */
#define LEAF_MAX 64
#define DEPTH_MAX 32
#define PASSES_MAX 8

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE (1 << 0)
#endif

static char *new_name(struct arena *arena, const char *name, unsigned try)
{
	struct timespec now;
	char leaf[LEAF_MAX + 1];
	size_t length = 0;
	for (; name[length] && length < LEAF_MAX; length++) {
		char byte = name[length];
		bool plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
		             byte == '-' || byte == '_' || byte == '.';
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
	if ((is_link ? copy_link(fd, name, to) : from < 0 ? -1 : copy_content(from, to, left)) < 0 || unlinkat(fd, name, 0) < 0) {
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

/* To another filesystem, what is no directory that is to be moved on. */
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
	if (is_directory || *left < ENTRY_BYTES)
		return remove_tree(fd, name);
	*left -= ENTRY_BYTES;
	/* One that may be run but not read. */
	if (is_file && !(stat.st_mode & S_IRUSR) && fchmodat(fd, name, S_IRUSR, AT_SYMLINK_NOFOLLOW) < 0)
		return -1;
	if (is_link || is_file)
		return copy(fd, name, is_link, to, as, left);
	return mknodat(to, as, (stat.st_mode & S_IFMT) | S_IRUSR | S_IWUSR, 0) < 0 || unlinkat(fd, name, 0) < 0 ? -1 : 0;
}

static int move_on(int fd, const char *name, const char *as, int to, unsigned depth, size_t *left);

/* All that is in the directory `from`, which is taken. */
static void move_entries(int from, int to, unsigned depth, size_t *left)
{
	DIR *directory = fdopendir(from);
	struct dirent *entry;
	while (directory && (entry = readdir(directory)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") &&
		    move_on(dirfd(directory), entry->d_name, entry->d_name, to, depth, left) < 0 && !left)
			renameat(dirfd(directory), entry->d_name, to, entry->d_name);
	if (directory)
		closedir(directory);
	else
		close(from);
}

/* -1: none, or none that is to be entered. `unlock`: to be emptied for good, which its owner may have to be allowed first. */
static int open_directory(int fd, const char *name, bool unlock)
{
	struct stat stat;
	if (unlock && (fstatat(fd, name, &stat, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(stat.st_mode) || is_mount(fd, &stat)))
		return -1;
	if (unlock && (stat.st_mode & S_IRWXU) != S_IRWXU && fchmodat(fd, name, S_IRWXU, AT_SYMLINK_NOFOLLOW) < 0)
		return -1;
	return openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* A directory becomes a new one with what was in it, and is removed: in what nobody can find, nothing can be made. Something else
 * is no more than renamed. `left`: or carried to another filesystem, where there is so much room; what there is none for is removed. */
static int move_on(int fd, const char *name, const char *as, int to, unsigned depth, size_t *left)
{
	bool enter = depth < DEPTH_MAX && (!left || *left >= ENTRY_BYTES);
	int held = enter ? open_directory(fd, name, left) : -1;
	if (held < 0)
		return left ? carry(fd, name, as, to, left) : renameat(fd, name, to, as);
	auto_close int fresh = mkdirat(to, as, 0700) < 0 ? -1 : open_directory(to, as, false);
	if (fresh < 0) {
		close(held);
		return -1;
	}
	if (left)
		*left -= ENTRY_BYTES;
	move_entries(held, fresh, depth + 1, left);
	for (unsigned pass = 1; unlinkat(fd, name, AT_REMOVEDIR) < 0; pass++) {
		held = pass < PASSES_MAX ? open_directory(fd, name, left) : -1;
		if (held < 0) {
			errno = ENOTEMPTY;
			return -1;
		}
		move_entries(held, fresh, depth + 1, left);
	}
	return 0;
}

/* It is taken, whatever becomes of this. */
static void let_go(int quarantine_fd, const char *as)
{
	char held[LEAF_MAX * 2];
	if (snprintf(held, sizeof(held), "%s.held", as) < (int)sizeof(held) && renameat(quarantine_fd, as, quarantine_fd, held) == 0)
		(void)!move_on(quarantine_fd, held, as, quarantine_fd, 0, NULL);
}

static int take_as(int fd, const char *name, const struct stat *stat, int quarantine_fd, const char *as, size_t *room)
{
	struct stat arrived;
	bool is_link = S_ISLNK(stat->st_mode), is_file = S_ISREG(stat->st_mode);
	if (is_link || (is_file && stat->st_nlink > 1)) {
		*room -= *room < ENTRY_BYTES ? *room : ENTRY_BYTES;
		int status = *room ? copy(fd, name, is_link, quarantine_fd, as, room) : unlinkat(fd, name, 0);
		/* One that may be run but not read has to go all the same, its other names' rights with it. */
		if (status == 0 || is_link || errno != EACCES)
			return status;
	}
	if (syscall(SYS_renameat2, fd, name, quarantine_fd, as, RENAME_NOREPLACE) < 0) {
		/* EINVAL: a filesystem that cannot promise not to replace */
		if (errno == EXDEV || (is_file && (errno == EINVAL || errno == ENOSYS)))
			return move_on(fd, name, as, quarantine_fd, 0, room);
		return -1;
	}
	if (fstatat(quarantine_fd, as, &arrived, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (S_ISDIR(arrived.st_mode))
		let_go(quarantine_fd, as);
	return S_ISREG(arrived.st_mode) ? fchmodat(quarantine_fd, as, 0600, 0) : 0;
}

const char *quarantine_take(struct arena *arena, int fd, const char *name, int quarantine_fd, size_t *room)
{
	struct stat stat, directory;
	if (fstatat(fd, name, &stat, AT_SYMLINK_NOFOLLOW) < 0)
		return NULL;
	for (unsigned try = 0; try < TRIES; try++) {
		char *as = new_name(arena, name, try);
		if (!as) {
			errno = ENOMEM;
			return NULL;
		}
		int status = take_as(fd, name, &stat, quarantine_fd, as, room);
		/* A command may have made its directory read-only, to keep what is in it. */
		if (status < 0 && errno == EACCES && fstat(fd, &directory) == 0 && !(directory.st_mode & S_IWUSR)) {
			if (fchmod(fd, (directory.st_mode & 07777) | S_IRWXU) < 0)
				return NULL;
			status = take_as(fd, name, &stat, quarantine_fd, as, room);
		}
		if (status == 0)
			return as;
		if (errno != EEXIST)
			return NULL;
	}
	return NULL;
}

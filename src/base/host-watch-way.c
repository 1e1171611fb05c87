/* The way to a path: see host-watch.h. In each directory the next name is claimed before it is examined, so a change in
 * between is reported. Symbolic links are followed. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/host-watch-claim.h"

#define LINKS_MAX 40

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

static const uint32_t local_filesystems[] = {
	EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, F2FS_SUPER_MAGIC,
	TMPFS_MAGIC,      RAMFS_MAGIC,     SQUASHFS_MAGIC,
};

static bool is_local(const struct statfs *info)
{
	for (size_t i = 0; i < ARRAY_SIZE(local_filesystems); i++)
		if ((uint32_t)info->f_type == local_filesystems[i])
			return true;
	return false;
}

bool host_watch_is_local(int fd)
{
	struct statfs info;
	return fstatfs(fd, &info) == 0 && is_local(&info);
}

/* Watches a directory for `name` in it. 1: it cannot be entered, so what is beneath it does not matter; a change of
 * that is reported by the directory it is in. */
static int watch_directory(struct host_watch_set *watches, const char *path, const char *name)
{
	int watch = host_watch_claim(watches, path, HOST_WATCH_DIRECTORY, name);
	if (watch == -EACCES && faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0 && errno == EACCES)
		return 1;
	struct statfs info;
	return watch >= 0 && statfs(path, &info) == 0 && is_local(&info) ? 0 : -1;
}

/* A file that cannot be read has no contents for us; its directory reports if that changes. */
static int watch_file(struct host_watch_set *watches, const char *path)
{
	int watch = host_watch_claim(watches, path, HOST_WATCH_FILE, "");
	return watch >= 0 || watch == -EACCES ? 0 : -1;
}

/* The way so far, without a link in it ("" is the root), and what is left of the path. */
struct way {
	char at[PATH_MAX], rest[PATH_MAX];
	enum host_watch_end end;
	int links;
};

/* Takes the first component off the rest. 1: there is none left. */
static int next_name(struct way *way, char name[NAME_MAX + 1])
{
	size_t slashes = strspn(way->rest, "/"), length = strcspn(way->rest + slashes, "/");
	if (length > NAME_MAX)
		return -1;
	memcpy(name, way->rest + slashes, length);
	name[length] = '\0';
	memmove(way->rest, way->rest + slashes + length, strlen(way->rest + slashes + length) + 1);
	return length ? 0 : 1;
}

static int follow_link(struct way *way, size_t before)
{
	uncleared char text[PATH_MAX];
	ssize_t length = readlink(way->at, text, sizeof(text) - 1);
	size_t rest = strlen(way->rest);
	way->at[before] = '\0';
	if (length <= 0 || ++way->links > LINKS_MAX || (size_t)length + rest + 2 > sizeof(way->rest))
		return -1;
	if (*text == '/')
		way->at[0] = '\0';
	memmove(way->rest + length + 1, way->rest, rest + 1);
	memcpy(way->rest, text, (size_t)length);
	way->rest[length] = '/';
	return 0;
}

/* One component. 1: the way ends here, or nothing is there. */
static int step(struct host_watch_set *watches, struct way *way)
{
	uncleared char name[NAME_MAX + 1];
	struct stat info;
	size_t before = strlen(way->at);
	int status = next_name(way, name);
	if (status != 0 || !strcmp(name, "."))
		return status;
	if (!strcmp(name, "..")) {
		char *slash = strrchr(way->at, '/');
		if (slash)
			*slash = '\0';
		return 0;
	}
	status = watch_directory(watches, before ? way->at : "/", name);
	if (status != 0)
		return status;
	size_t length = strlen(name);
	if (before + length + 2 > sizeof(way->at))
		return -1;
	way->at[before] = '/';
	memcpy(way->at + before + 1, name, length + 1);
	if (lstat(way->at, &info) < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == EACCES ? 1 : -1;
	if (S_ISLNK(info.st_mode))
		return way->end == HOST_WATCH_END_LINK && !*way->rest ? 1 : follow_link(way, before);
	if (S_ISDIR(info.st_mode))
		return 0;
	status = watch_file(watches, way->at);
	return status < 0 ? -1 : 1;
}

int host_watch_claim_way(struct host_watch_set *watches, const char *path, enum host_watch_end kind)
{
	uncleared struct way way;
	struct stat info;
	size_t length = strlen(path);
	int status = 0;
	if (*path != '/' || length >= sizeof(way.rest))
		return -1;
	memcpy(way.rest, path, length + 1);
	way.at[0] = '\0';
	way.end = kind;
	way.links = 0;
	while (status == 0)
		status = step(watches, &way);
	if (status < 0)
		return -1;
	const char *end = *way.at ? way.at : "/";
	bool is_directory = lstat(end, &info) == 0 && S_ISDIR(info.st_mode);
	return is_directory && watch_directory(watches, end, kind == HOST_WATCH_END_NAMES ? NULL : "") < 0 ? -1 : 0;
}

void host_watch_path(struct host_watch_set *watches, const char *path)
{
	host_watch_way(watches, path, HOST_WATCH_END_FILE);
}

void host_watch_link(struct host_watch_set *watches, const char *path)
{
	host_watch_way(watches, path, HOST_WATCH_END_LINK);
}

void host_watch_names(struct host_watch_set *watches, const char *directory)
{
	host_watch_way(watches, directory, HOST_WATCH_END_NAMES);
}

/* Paths to descriptors: see beneath.h. */
#include "session/beneath.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/compat.h"
#include "base/fd.h"
#include "base/text.h"

/* How deep a place may lie, and how many links may lead to it, where openat2() does not answer. */
#define STEPS_MAX 128
#define LINKS_MAX 40
/* More components than any real path has: a command could keep its caller busy with them. */
#define COMPONENTS_MAX 1024

char *beneath_path(struct arena *arena, int fd)
{
	uncleared char path[PATH_MAX];
	ssize_t length = fd_path(fd, path, sizeof(path));
	return length < 0 ? NULL : arena_strndup(arena, path, (size_t)length);
}

int beneath_resolve(struct arena *arena, const char *path, struct place *ret_place, int *ret_fd,
                    struct cordon_error *err)
{
	struct stat info;
	if (path[0] != '/')
		return fail(err, CORDON_E_INVALID_REQUEST, 0, path, "the path must be absolute");
	if (text_has_control(path))
		return fail(err, CORDON_E_INVALID_REQUEST, 0, path, "the path has a control character in it");
	const char *named = path_normalise(arena, path);
	if (!named)
		return fail_oom(err);
	/* Without a link on the way, the path is canonical already; asking /proc for it costs more than all the
	 * rest. */
	struct open_how straight = { .flags = O_PATH | O_CLOEXEC,
		                     .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
	auto_close int fd = strstr(path, "..") ? -1 : compat_openat2(AT_FDCWD, named, &straight);
	bool canonical_as_named = fd >= 0;
	if (fd < 0)
		fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return fail(err,
		            errno == ENOENT || errno == ENOTDIR ? CORDON_E_INVALID_REQUEST : CORDON_E_CAPABILITY_DENIED,
		            errno, path, "cannot open this path");
	const char *canonical = fstat(fd, &info) < 0 ? NULL : canonical_as_named ? named : beneath_path(arena, fd);
	if (!canonical)
		return fail(err, CORDON_E_INTERNAL, errno, path, "cannot tell where this path leads");
	*ret_place = (struct place){ .path = canonical,
		                     .alias = strcmp(canonical, named) ? named : NULL,
		                     .device = info.st_dev,
		                     .inode = info.st_ino,
		                     .is_directory = S_ISDIR(info.st_mode) };
	if (ret_fd)
		*ret_fd = take_fd(&fd);
	return 0;
}

/* ---- step by step ---------------------------------------------------------------------------------------------- */

/* The first component, which `rest` loses. */
static bool take_name(char rest[PATH_MAX], char name[NAME_MAX + 1], bool *ret_more)
{
	size_t length = strcspn(rest, "/");
	if (length > NAME_MAX)
		return false;
	memcpy(name, rest, length);
	name[length] = '\0';
	*ret_more = rest[length] == '/';
	size_t next = length + strspn(rest + length, "/");
	memmove(rest, rest + next, strlen(rest + next) + 1);
	return true;
}

/* Puts what a link says before the rest of the path. */
static int put_before(char text[PATH_MAX], char rest[PATH_MAX], int *links)
{
	if (++*links > LINKS_MAX)
		return -ELOOP;
	if (strlen(text) + 1 + strlen(rest) >= PATH_MAX)
		return -ENAMETOOLONG;
	if (*rest) {
		strcat(text, "/");
		strcat(text, rest);
	}
	strcpy(rest, text);
	return 0;
}

/* One component of a path; `at` is the way so far, without a link in it, and "" is the root. */
static int follow(struct arena *arena, char at[PATH_MAX], char rest[PATH_MAX], int *links, struct strings *directories)
{
	uncleared char name[NAME_MAX + 1], text[PATH_MAX];
	size_t before = strlen(at);
	bool more;
	if (!take_name(rest, name, &more))
		return -ENAMETOOLONG;
	if (!*name || !strcmp(name, "."))
		return 0;
	if (!strcmp(name, "..")) {
		char *slash = strrchr(at, '/');
		if (slash)
			*slash = '\0';
		return 0;
	}
	if (before + 1 + strlen(name) >= PATH_MAX)
		return -ENAMETOOLONG;
	at[before] = '/';
	strcpy(at + before + 1, name);
	ssize_t length = readlink(at, text, sizeof(text) - 1);
	if (length < 0)
		return errno == EINVAL ? 0 : -errno;
	text[length] = '\0';
	at[before] = '\0';
	if (strings_add(arena, directories, before ? arena_strdup(arena, at) : "/") < 0)
		return -ENOMEM;
	if (*text == '/')
		*at = '\0';
	return put_before(text, rest, links);
}

/* Where names of files have one spelling only. */
#ifndef SYSTEM_COMPARE_PATHS
#define SYSTEM_COMPARE_PATHS strcmp
#endif

int beneath_links(struct arena *arena, const char *path, const char *end, struct strings *ret_directories)
{
	struct strings directories = { 0 };
	char at[PATH_MAX] = "", rest[PATH_MAX];
	int links = 0, result = strlen(path) < sizeof(rest) ? 0 : -ENAMETOOLONG;
	if (result == 0)
		strcpy(rest, path);
	while (result == 0 && *rest)
		result = follow(arena, at, rest, &links, &directories);
	if (result == 0 && SYSTEM_COMPARE_PATHS(*at ? at : "/", end))
		result = -ESTALE;
	*ret_directories = directories;
	return result;
}

/* ---- a link that may be hostile -------------------------------------------------------------------------------- */

struct following {
	struct arena *arena;
	const struct strings *roots;
	char at[PATH_MAX], rest[PATH_MAX];      /* the way so far, without a link in it, and what is to come; "" is
	                                           the root */
	int links;
	bool is_directory;
	struct strings way;
};

static bool is_near(const struct strings *roots, const char *path)
{
	for (size_t i = 0; i < roots->count; i++)
		if (path_within(path, roots->items[i]) || path_within(roots->items[i], path))
			return true;
	return false;
}

static int open_straight(int fd, const char *path, uint64_t flags, uint64_t resolve)
{
	struct open_how how = { .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC | flags,
		                .resolve = RESOLVE_NO_SYMLINKS | resolve };
	int result = compat_openat2(fd, path, &how);
	/* By hand, it cannot be told that no mount is entered. */
	if (result < 0 && !resolve && (errno == ENOSYS || errno == EPERM))
		result = openat(fd, path, (int)how.flags);
	return result < 0 ? -errno : result;
}

/* What is called `name` at the end of the way, itself. */
static int open_next(const struct following *following, const char *name, const char *path)
{
	struct statfs info;
	const char *at = *following->at ? following->at : "/";
	/* O_DIRECTORY lets a mount come into being. */
	auto_close int fd = open_straight(AT_FDCWD, at, is_near(following->roots, at) ? O_DIRECTORY : 0, 0);
	if (fd < 0 || is_near(following->roots, path))
		return fd < 0 ? fd : open_straight(fd, name, 0, 0);
	/* There, asking for a name makes it. */
	if (fstatfs(fd, &info) < 0 || info.f_type == AUTOFS_SUPER_MAGIC)
		return -EXDEV;
	return open_straight(fd, name, 0, RESOLVE_NO_XDEV);
}

static int go_back(struct following *following)
{
	char *slash = strrchr(following->at, '/');
	if (!slash)
		return 0;
	if (strings_add(following->arena, &following->way, arena_strdup(following->arena, following->at)) < 0)
		return -ENOMEM;
	*slash = '\0';
	return 0;
}

static int go_by_link(struct following *following, int fd, const char *path)
{
	uncleared char text[PATH_MAX];
	ssize_t length = readlinkat(fd, "", text, sizeof(text) - 1);
	if (length <= 0)
		return length < 0 ? -errno : -ENOENT;
	text[length] = '\0';
	if (strings_add(following->arena, &following->way, arena_strdup(following->arena, path)) < 0)
		return -ENOMEM;
	if (*text == '/')
		*following->at = '\0';
	return put_before(text, following->rest, &following->links);
}

static int go_on(struct following *following)
{
	uncleared char name[NAME_MAX + 1], path[PATH_MAX];
	struct stat info;
	bool more;
	if (!take_name(following->rest, name, &more))
		return -ENAMETOOLONG;
	following->is_directory = true;
	if (!*name || !strcmp(name, "."))
		return 0;
	if (!strcmp(name, ".."))
		return go_back(following);
	if (snprintf(path, sizeof(path), "%s/%s", following->at, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	auto_close int fd = open_next(following, name, path);
	if (fd < 0 || fstat(fd, &info) < 0)
		return fd < 0 ? fd : -errno;
	if (S_ISLNK(info.st_mode))
		return go_by_link(following, fd, path);
	following->is_directory = S_ISDIR(info.st_mode);
	strcpy(following->at, path);
	return more && !following->is_directory ? -ENOTDIR : 0;
}

int beneath_follow(struct arena *arena, const char *link, const struct strings *roots, struct place *ret_place,
                   struct strings *ret_way)
{
	struct following following = { .arena = arena, .roots = roots };
	const char *slash = strrchr(link, '/');
	if (strlen(link) >= sizeof(following.at))
		return -ENAMETOOLONG;
	memcpy(following.at, link, (size_t)(slash - link));
	strcpy(following.rest, slash + 1);
	int result = 0;
	for (int i = 0; result == 0 && *following.rest; i++)
		result = i < COMPONENTS_MAX ? go_on(&following) : -ETIME;
	const char *path = result < 0 ? NULL : arena_strdup(arena, *following.at ? following.at : "/");
	if (!path)
		return result < 0 ? result : -ENOMEM;
	*ret_place = (struct place){ .path = path, .is_directory = following.is_directory };
	*ret_way = following.way;
	return 0;
}

static int way_by_steps(struct arena *arena, const char *path, const char **ret_end, struct strings *ret_way)
{
	const char *everywhere[] = { "/" };
	const struct strings roots = { .items = everywhere, .count = 1 };
	struct following following = { .arena = arena, .roots = &roots };
	uncleared char rest[PATH_MAX];
	int result = snprintf(rest, sizeof(rest), "%s", path) < (int)sizeof(rest) ? 0 : -ENAMETOOLONG;
	strcpy(following.rest, rest);
	for (int i = 0; result == 0 && *following.rest; i++) {
		strcpy(rest, following.rest);
		result = i < COMPONENTS_MAX ? go_on(&following) : -ETIME;
	}
	*ret_end = arena_printf(arena, "%s%s%s", following.at, result < 0 ? "/" : "", result < 0 ? rest : "");
	*ret_way = following.way;
	return *ret_end ? result : -ENOMEM;
}

int beneath_way(struct arena *arena, const char *path, const char **ret_end, struct strings *ret_way)
{
	const struct open_how straight = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS };
	const char *named = path_normalise(arena, path);
	if (!named)
		return -ENOMEM;
	auto_close int fd = strstr(path, "..") ? -1 : compat_openat2(AT_FDCWD, named, &straight);
	if (fd < 0 && (strstr(path, "..") || errno != ENOENT))
		return way_by_steps(arena, path, ret_end, ret_way);
	*ret_end = named;
	*ret_way = (struct strings){ 0 };
	return fd < 0 ? -ENOENT : 0;
}

/* ---- where openat2() does not answer --------------------------------------------------------------------------- */

/* The directories from the root to where the walk is, so that ".." is answered from what was walked, not by the kernel:
 * a directory that is moved meanwhile cannot lead out. */
struct steps {
	int fds[STEPS_MAX];
	int count;
};

static int step_into(struct steps *steps, int fd)
{
	if (steps->count == STEPS_MAX) {
		close(fd);
		return -ENAMETOOLONG;
	}
	steps->fds[steps->count++] = fd;
	return 0;
}

static int step_back(struct steps *steps)
{
	if (steps->count == 1)
		return -EXDEV;
	close(steps->fds[--steps->count]);
	return 0;
}

static int read_link(int fd, char rest[PATH_MAX], int *links)
{
	char text[PATH_MAX];
	ssize_t length = readlinkat(fd, "", text, sizeof(text) - 1);
	if (length < 0)
		return -errno;
	text[length] = '\0';
	return text[0] == '/' ? -EXDEV : put_before(text, rest, links);
}

/* One component: `rest` loses it, and gains what a link says. */
static int step(struct steps *steps, char rest[PATH_MAX], int *links)
{
	char name[NAME_MAX + 1];
	bool more;
	if (!take_name(rest, name, &more))
		return -ENAMETOOLONG;
	if (!*name || !strcmp(name, "."))
		return 0;
	if (!strcmp(name, ".."))
		return step_back(steps);
	struct stat info;
	int fd = openat(steps->fds[steps->count - 1], name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int result = fstat(fd, &info) < 0 ? -errno : 0;
	if (result == 0 && S_ISLNK(info.st_mode))
		result = read_link(fd, rest, links);
	else if (result == 0 && more && !S_ISDIR(info.st_mode))
		result = -ENOTDIR;
	else if (result == 0)
		return step_into(steps, fd);
	close(fd);
	return result;
}

/* Only O_PATH: what is asked for here is a place. */
static int open_stepwise(int root_fd, const char *relative, int flags)
{
	struct steps steps = { .count = 0 };
	char rest[PATH_MAX];
	struct stat info;
	int links = 0, fd = -1;
	if (!(flags & O_PATH) || *relative == '/')
		return *relative == '/' ? -EXDEV : -EINVAL;
	if (strlen(relative) >= sizeof(rest))
		return -ENAMETOOLONG;
	strcpy(rest, relative);
	int root = fcntl(root_fd, F_DUPFD_CLOEXEC, 3);
	int result = root < 0 ? -errno : step_into(&steps, root);
	while (result == 0 && *rest)
		result = step(&steps, rest, &links);
	if (result == 0)
		fd = steps.fds[--steps.count];
	while (steps.count)
		close(steps.fds[--steps.count]);
	if (fd >= 0 && (flags & O_DIRECTORY) && (fstat(fd, &info) < 0 || !S_ISDIR(info.st_mode))) {
		close(fd);
		return -ENOTDIR;
	}
	return result < 0 ? result : fd;
}

int beneath_open(int root_fd, const char *relative, int flags)
{
	struct open_how how = { .flags = (uint64_t)(flags | O_CLOEXEC),
		                .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
	int fd = compat_openat2(root_fd, *relative ? relative : ".", &how);
	/* EAGAIN: a rename or mount anywhere on the machine made the kernel unsure about a ".."; by hand it is
	 * certain. */
	if (fd < 0 && (errno == ENOSYS || errno == EPERM || errno == EAGAIN))
		return open_stepwise(root_fd, relative, flags);
	return fd < 0 ? -errno : fd;
}

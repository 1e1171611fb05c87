/* See home.h. */
#include "session/home.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/passwd.h"
#include "base/text.h"
#include "session/beneath.h"
#include "session/workspace.h"

#define ASIDE_MAX 1000

/* ---- where it is ------------------------------------------------------------------------------------------------ */

/* What the sandbox itself needs there would be covered. */
static bool is_needed(const char *path)
{
	static const char *const places[] = { "/run", "/dev", "/proc", "/sys", "/nix" };
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (path_within(path, places[i]))
			return true;
	return strcmp(path, "/root") && workspace_is_system(path);
}

/* One that is not there has a mount point in the private root; not where that would be in a directory of the host's. */
static bool can_be_made(const char *path, bool whole_view)
{
	return !whole_view && !path_within(path, "/opt");
}

/* The command of a root caller is another user: in the host's own tree it can enter only directories that all users
 * can. What is in /tmp is made anew. */
static bool is_reachable(struct arena *arena, const char *path)
{
	if (path_within(path, "/tmp") || path_within(path, "/var/tmp"))
		return true;
	char *parent = arena_strdup(arena, path), *slash;
	struct stat info;
	while (parent && (slash = strrchr(parent, '/')) && slash > parent) {
		*slash = '\0';
		if (stat(parent, &info) < 0 || !(info.st_mode & S_IXOTH))
			return false;
	}
	return parent;
}

int home_choose(struct arena *arena, const char *variable, unsigned uid, bool whole_view, const char **ret_path,
                const char **ret_alias, struct cordon_error *err)
{
	uncleared char of_user[PATH_MAX];
	struct cordon_error why;
	struct place place;
	*ret_path = whole_view ? HOME_IN_WHOLE_VIEW : HOME_INSIDE;
	*ret_alias = NULL;
	if (!variable || !*variable) {
		if (!passwd_home(PASSWD_FILE, uid, of_user, sizeof(of_user))) {
			fail(err, CORDON_E_INVALID_REQUEST, 0, "HOME",
			     "HOME is not set, and user %u has no home in " PASSWD_FILE, uid);
			return fail_remedy(err, "set HOME to a directory of yours");
		}
		variable = of_user;
	}
	if (*variable != '/' || text_has_control(variable) || strlen(variable) >= PATH_MAX)
		return 0;
	const char *path = path_normalise(arena, variable);
	if (!path)
		return fail_oom(err);
	bool there = beneath_resolve(arena, path, &place, NULL, &why) == 0;
	if (there ? !place.is_directory : why.os_errno != ENOENT || !can_be_made(path, whole_view))
		return 0;
	const char *canonical = there ? place.path : path;
	if (is_needed(canonical) || is_needed(path) ||
	    (whole_view && geteuid() == 0 && !is_reachable(arena, canonical)))
		return 0;
	*ret_path = canonical;
	*ret_alias = strcmp(canonical, path) ? path : NULL;
	return 0;
}

/* ---- mount points in it ----------------------------------------------------------------------------------------- */

static int move_aside(int directory, const char *name)
{
	char aside[NAME_MAX + 1];
	for (int number = 1; number <= ASIDE_MAX; number++) {
		if (snprintf(aside, sizeof(aside), "%.*s.cordon-aside-%d", NAME_MAX - 24, name, number) < 0)
			return -1;
		if (renameat2(directory, name, directory, aside, RENAME_NOREPLACE) == 0 || errno == ENOENT)
			return 0;
		if (errno != EEXIST)
			return -1;
	}
	return -1;
}

/* Opens the directory `name`, made if need be. */
static int enter(int directory, const char *name)
{
	for (int attempt = 0; attempt < 3; attempt++) {
		int fd = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0)
			return fd;
		if (errno == ENOENT ? mkdirat(directory, name, 0700) < 0 && errno != EEXIST
		                    : (errno != ENOTDIR && errno != ELOOP) || move_aside(directory, name) < 0)
			return -1;
	}
	return -1;
}

static int make_file(int directory, const char *name)
{
	struct stat info;
	for (int attempt = 0; attempt < 3; attempt++) {
		if (fstatat(directory, name, &info, AT_SYMLINK_NOFOLLOW) == 0) {
			if (S_ISREG(info.st_mode))
				return 0;
			if (move_aside(directory, name) < 0)
				return -1;
		}
		auto_close int fd = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd >= 0)
			return 0;
		if (errno != EEXIST)
			return -1;
	}
	return -1;
}

static int make_link(int directory, const char *name, const char *text)
{
	uncleared char found[PATH_MAX];
	for (int attempt = 0; attempt < 3; attempt++) {
		ssize_t length = readlinkat(directory, name, found, sizeof(found));
		if (length == (ssize_t)strlen(text) && !memcmp(found, text, (size_t)length))
			return 0;
		if ((length >= 0 || errno != ENOENT) && move_aside(directory, name) < 0)
			return -1;
		if (symlinkat(text, directory, name) == 0)
			return 0;
		if (errno != EEXIST)
			return -1;
	}
	return -1;
}

static int make_point(int home_fd, const char *relative, const struct place *point)
{
	char name[NAME_MAX + 1];
	auto_close int directory = fcntl(home_fd, F_DUPFD_CLOEXEC, 0);
	for (const char *at = relative; directory >= 0 && *at;) {
		size_t length = strcspn(at, "/");
		bool last = !at[length + strspn(at + length, "/")];
		if (length >= sizeof(name))
			return -1;
		memcpy(name, at, length);
		name[length] = '\0';
		if (last && point->alias)
			return make_link(directory, name, point->alias);
		if (last && !point->is_directory)
			return make_file(directory, name);
		int inner = enter(directory, name);
		close_fd(&directory);
		directory = inner;
		at += length + strspn(at + length, "/");
	}
	return directory < 0 ? -1 : 0;
}

int home_make_points(int home_fd, const char *home, const struct places *points, struct cordon_error *err)
{
	/* What was opened as a place only cannot be read from. */
	auto_close int fd = points->count ? openat(home_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	for (size_t i = 0; i < points->count; i++) {
		const struct place *point = &points->items[i];
		if (path_within(point->path, home) && point->path[strlen(home)] &&
		    (fd < 0 || make_point(fd, point->path + strlen(home) + 1, point) < 0)) {
			fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, errno, point->path,
			     "cannot make a mount point in the session's home");
			fail_boundary(err, "filesystem");
			return fail_remedy(
				err, "see what the session has there (cordon session show ID), or begin a new one");
		}
	}
	return 0;
}

/* git working trees: see git-tree.h, gitrepository-layout(5) and git-worktree(1).
 *
 * A `.git` that is a file says where the repository is: `gitdir: PATH`. A process that can write this file can name
 * any repository, so the repository must name this working tree, too: a linked worktree's
 * `<common>/worktrees/NAME/gitdir` names the `.git` file, a submodule's core.worktree the directory. Both are compared
 * by device and inode. */
#include "host/git-tree.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/stat.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "policy/git-syntax.h"
#include "session/beneath.h"

#define LINE_SIZE_MAX (2 * PATH_MAX)
#define GITDIR "gitdir: "

/* ---- the top ---------------------------------------------------------------------------------------------------- */

static bool is_home(const char *path, const char *home)
{
	bool in_home = !strncmp(path, "/home/", 6) && !strchr(path + 6, '/');
	return in_home || !strcmp(path, "/root") || (home && path_within(home, path));
}

static bool is_mount_root(const char *path)
{
	struct statx info;
	return statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_STATX_DONT_SYNC, STATX_TYPE, &info) < 0 ||
	       info.stx_attributes & STATX_ATTR_MOUNT_ROOT;
}

/* A directory that is a repository, or a file or link that names one; git ignores anything else of this name. One that
 * is owned by another user, such as in a directory that all may write, does not count. */
static bool has_git(struct arena *arena, const char *directory, uid_t owner, bool *ret_has)
{
	struct stat info, head_info;
	char start[sizeof(GITDIR)] = "";
	const char *git = arena_printf(arena, "%s/.git", directory),
		   *head = git ? arena_printf(arena, "%s/HEAD", git) : NULL;
	if (!head)
		return false;
	*ret_has = false;
	if (lstat(git, &info) < 0 || (info.st_uid != geteuid() && info.st_uid != owner))
		return true;
	if (S_ISREG(info.st_mode)) {
		auto_close int fd = open(git, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
		*ret_has = fd >= 0 && read(fd, start, sizeof(start) - 1) == sizeof(start) - 1 && !strcmp(start, GITDIR);
	} else {
		*ret_has = (S_ISDIR(info.st_mode) || S_ISLNK(info.st_mode)) && lstat(head, &head_info) == 0;
	}
	return true;
}

int git_tree_top(struct arena *arena, const char *here, const char *home, const char **ret_top,
                 const char **ret_refused)
{
	char *path = arena_strdup(arena, here);
	struct stat first, info;
	*ret_top = *ret_refused = NULL;
	if (!path)
		return -1;
	if (stat(path, &first) < 0)
		return 0;
	for (;;) {
		bool has;
		if (!has_git(arena, path, first.st_uid, &has))
			return -1;
		bool other = stat(path, &info) < 0 || info.st_uid != first.st_uid;
		/* A directory that all users may write says nothing about the directories in it. */
		if (!other && !has && (info.st_mode & S_IWOTH))
			return 0;
		if (has) {
			*ret_top = path;
			*ret_refused = other ? "it belongs to another user" : NULL;
			return 0;
		}
		char *slash = strrchr(path, '/');
		if (other || is_home(path, home) || is_mount_root(path) || slash == path)
			return 0;
		*slash = '\0';
	}
}

/* ---- the repository of a working tree that has a `.git` file ---------------------------------------------------- */

/* A regular file of the caller's own. NULL: there is none such. */
static char *read_own(struct arena *arena, int directory, const char *name, size_t max, size_t *ret_length)
{
	auto_close int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat info;
	if (fd < 0 || fstat(fd, &info) < 0 || !S_ISREG(info.st_mode) || info.st_uid != geteuid() ||
	    (uintmax_t)info.st_size > max)
		return NULL;
	char *text = arena_alloc(arena, (size_t)info.st_size + 1);
	ssize_t length = text ? read(fd, text, (size_t)info.st_size) : -1;
	if (length < 0)
		return NULL;
	text[length] = '\0';
	*ret_length = (size_t)length;
	return text;
}

/* The one line of a file, from `prefix` on; NULL where it is not like that. */
static const char *read_line(struct arena *arena, int directory, const char *name, const char *prefix)
{
	size_t length;
	char *text = read_own(arena, directory, name, LINE_SIZE_MAX, &length);
	if (!text || strlen(text) != length || strncmp(text, prefix, strlen(prefix)))
		return NULL;
	text += strlen(prefix);
	size_t end = strcspn(text, "\r\n");
	if (text[end + strspn(text + end, "\r\n")] || !end)
		return NULL;
	text[end] = '\0';
	return text;
}

static int resolve(struct arena *arena, const char *from, const char *path, struct place *ret_place, int *ret_fd)
{
	struct cordon_error why;
	const char *whole = *path == '/' ? path : arena_printf(arena, "%s/%s", from, path);
	return whole && !text_has_control(whole) ? beneath_resolve(arena, whole, ret_place, ret_fd, &why) : -1;
}

static bool is_same(const struct place *place, const struct stat *info)
{
	return place->device == (uint64_t)info->st_dev && place->inode == info->st_ino;
}

static bool is_own_directory(int fd, struct stat *ret_info)
{
	return fstat(fd, ret_info) == 0 && S_ISDIR(ret_info->st_mode) && ret_info->st_uid == geteuid();
}

static bool lies_in_git(const char *path)
{
	const char *end = path + strlen(path);
	return strstr(path, "/.git/") || (end - path > 5 && !strcmp(end - 5, "/.git"));
}

static bool is_repository(int fd)
{
	struct stat info;
	return fstatat(fd, "HEAD", &info, AT_SYMLINK_NOFOLLOW) == 0 &&
	       fstatat(fd, "refs", &info, AT_SYMLINK_NOFOLLOW) == 0 &&
	       fstatat(fd, "objects", &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(info.st_mode);
}

/* `git` is <common>/worktrees/NAME, by what its own files say. */
static const char *check_worktree(struct arena *arena, const struct place *git, int git_fd, const char *common_text,
                                  const struct stat *top, struct place *ret_common)
{
	const char *name = strrchr(git->path, '/');
	const char *worktrees = name > git->path ? memrchr(git->path, '/', (size_t)(name - git->path)) : NULL;
	const char *back = read_line(arena, git_fd, "gitdir", "");
	struct place common, here;
	if (!worktrees || strncmp(worktrees, "/worktrees/", 11) ||
	    resolve(arena, git->path, common_text, &common, NULL) < 0 ||
	    strncmp(common.path, git->path, (size_t)(worktrees - git->path)) || common.path[worktrees - git->path])
		return "names a repository that is not laid out as git lays it out";
	const char *slash = back ? strrchr(back, '/') : NULL;
	if (!slash || strcmp(slash, "/.git"))
		return "names a repository that does not name it";
	const char *parent = arena_strndup(arena, back, slash > back ? (size_t)(slash - back) : 1);
	if (!parent || resolve(arena, git->path, parent, &here, NULL) < 0 || !is_same(&here, top))
		return "names a repository that is another directory's";
	*ret_common = common;
	return NULL;
}

static void take_worktree(void *arg, const char *name, const struct git_setting *setting)
{
	char *value = arg;
	if (!strcmp(name, "core.worktree"))
		value[0] = '\0';
	if (!strcmp(name, "core.worktree") && setting->value && !setting->cut && strlen(setting->value) < PATH_MAX)
		memcpy(value, setting->value, strlen(setting->value) + 1);
}

static const char *check_submodule(struct arena *arena, const struct place *git, int git_fd, const struct stat *top)
{
	uncleared char worktree[PATH_MAX];
	struct place here;
	size_t length;
	worktree[0] = '\0';
	const char *config = read_own(arena, git_fd, "config", GIT_SYNTAX_SIZE_MAX, &length);
	if (!config || !git_syntax_read(config, length, take_worktree, worktree) || !*worktree)
		return "names a repository that does not name this directory";
	return resolve(arena, git->path, worktree, &here, NULL) < 0 || !is_same(&here, top)
	               ? "names a repository that is another directory's" : NULL;
}

/* NULL: it is the tree's own, and *ret_place is what the tree needs of it. */
static const char *check(struct arena *arena, const struct place *git, int git_fd, const struct stat *top,
                         struct place *ret_place)
{
	struct stat info;
	const char *common_text = read_line(arena, git_fd, "commondir", "");
	if (!is_own_directory(git_fd, &info))
		return "names a directory of another user";
	struct place place = *git;
	const char *why = common_text ? check_worktree(arena, git, git_fd, common_text, top, &place)
	                              : check_submodule(arena, git, git_fd, top);
	if (why)
		return why;
	auto_close int fd = open(place.path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || !is_own_directory(fd, &info) || !is_same(&place, &info))
		return "names a directory of another user";
	if (!is_repository(fd))
		return "names a directory that is no repository";
	if (!lies_in_git(place.path))
		return "names a repository that is not called .git, whose hooks and configuration could not be "
		       "protected";
	place.alias = NULL;
	*ret_place = place;
	return NULL;
}

/* The directory that `.git` names, and what `top` is; the tree's own or not. -1: there is no file of that name, or
 * *ret_refused says what is wrong with it. */
static int open_named(struct arena *arena, int top_fd, const char *top, struct place *ret_git, struct stat *ret_top,
                      const char **ret_refused)
{
	int git_fd = -1;
	auto_close int fd = openat(top_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstatat(fd, ".git", ret_top, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(ret_top->st_mode))
		return -1;
	const char *named = read_line(arena, fd, ".git", GITDIR);
	if (!named || !is_own_directory(fd, ret_top))
		*ret_refused = "is not the caller's, or not as git writes it";
	else if (resolve(arena, top, named, ret_git, &git_fd) < 0)
		*ret_refused = "names a directory that is not there";
	return git_fd;
}

int git_tree_common(struct arena *arena, int top_fd, const char *top, struct place *ret_place, const char **ret_refused)
{
	struct place git, found = { 0 };
	struct stat info;
	*ret_place = found;
	*ret_refused = NULL;
	auto_close int git_fd = open_named(arena, top_fd, top, &git, &info, ret_refused);
	if (git_fd < 0 || path_within(git.path, top))
		return 0;
	*ret_refused = check(arena, &git, git_fd, &info, &found);
	if (!*ret_refused && !path_within(found.path, top))
		*ret_place = found;
	return 0;
}

int git_tree_own(struct arena *arena, int top_fd, const char *top)
{
	const char *refused = NULL;
	struct place git, place;
	struct stat info;
	auto_close int git_fd = open_named(arena, top_fd, top, &git, &info, &refused);
	return git_fd < 0 || check(arena, &git, git_fd, &info, &place) ? -1 : take_fd(&git_fd);
}

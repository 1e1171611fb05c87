/* Paths of a call, held open: see place.h. */
#include "files/place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/fd.h"
#include "base/text.h"
#include "paths/index/look.h"
#include "paths/index/shown.h"
#include "session/beneath.h"

/* ---- errors ----------------------------------------------------------------------------------------------------- */

int files_fail(struct cordon_error *err, int os_errno, const char *path, const char *what)
{
	static const struct {
		int os_errno;
		enum cordon_class class;
		const char *reason, *remedy;
	} rows[] = {
		{ EXDEV, CORDON_E_CAPABILITY_DENIED,
		  "the path leaves the workspace and every granted path, or is led by an absolute symbolic link",
		  "name a path inside the workspace, or grant it: --read PATH or --write PATH" },
		{ ENOENT, CORDON_E_NOT_FOUND, NULL, "see what is there: cordon file list, cordon file find" },
		{ ENOTDIR, CORDON_E_NOT_FOUND, NULL, "see what is there: cordon file list, cordon file find" },
		{ ELOOP, CORDON_E_CAPABILITY_DENIED,
		  "the path is a loop of symbolic links, or a link where none is followed",
		  "name what the link leads to" },
		{ ENOSPC, CORDON_E_RESOURCE_EXHAUSTED, NULL, "nothing was changed; make room on the disk" },
		{ EDQUOT, CORDON_E_RESOURCE_EXHAUSTED, NULL, "nothing was changed; make room within the quota" },
		{ ENAMETOOLONG, CORDON_E_INVALID_REQUEST, NULL, "name it from a directory nearer to it: --cwd" },
		{ EEXIST, CORDON_E_INVALID_REQUEST, NULL, "choose another name, or remove what is there first" },
		{ ENOTEMPTY, CORDON_E_INVALID_REQUEST, NULL, "remove what is in it, or remove it with --recursive" },
		{ EACCES, CORDON_E_CAPABILITY_DENIED, NULL, "the operating system refuses it to this user" },
		{ EPERM, CORDON_E_CAPABILITY_DENIED, NULL, "the operating system refuses it to this user" },
		{ EROFS, CORDON_E_CAPABILITY_DENIED, NULL, "it lies on a file system that is mounted read-only" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (rows[i].os_errno != os_errno)
			continue;
		fail(err, rows[i].class, rows[i].reason ? 0 : os_errno, path, "%s",
		     rows[i].reason ? rows[i].reason : what);
		fail_boundary(err, "filesystem");
		if (os_errno == EXDEV && *path == '/')
			fail_grant(err, "read", path);
		return fail_remedy(err, "%s", rows[i].remedy);
	}
	fail(err, CORDON_E_INTERNAL, os_errno, path, "%s", what);
	return fail_boundary(err, "filesystem");
}

const char *files_kind(mode_t mode)
{
	return S_ISREG(mode) ? "file" : S_ISDIR(mode) ? "directory" : S_ISLNK(mode) ? "link" : S_ISFIFO(mode) ? "fifo"
	     : S_ISSOCK(mode) ? "socket" : "device";
}

int files_require_regular(const struct files_place *place, struct cordon_error *err)
{
	if (S_ISREG(place->info.st_mode))
		return 0;
	fail(err, CORDON_E_INVALID_REQUEST, 0, place->given, "this is a %s, not a regular file: it has no content",
	     files_kind(place->info.st_mode));
	fail_boundary(err, "filesystem");
	return fail_remedy(err, S_ISDIR(place->info.st_mode) ? "list it: cordon file list" :
	                                                       "only regular files are read and written");
}

int files_require_directory(const struct files_place *place, struct cordon_error *err)
{
	if (S_ISDIR(place->info.st_mode))
		return 0;
	fail(err, CORDON_E_INVALID_REQUEST, 0, place->given, "this is a %s, not a directory",
	     files_kind(place->info.st_mode));
	fail_boundary(err, "filesystem");
	return fail_remedy(err, "name the directory it lies in");
}

/* ---- judging ---------------------------------------------------------------------------------------------------- */

static bool is_hidden_by_name(const struct files *files, const struct files_root *root, const char *path)
{
	char above[PATH_MAX];
	size_t length = strcmp(root->path, "/") ? strlen(root->path) : 0;
	for (size_t i = 0; files->hidden && i < files->hidden->count; i++)
		if (path_within(path, files->hidden->items[i]) && !path_within(root->path, files->hidden->items[i]))
			return true;
	if (!files->globs || !path_within(path, root->path))
		return false;
	while (path[length]) {
		length += 1 + strcspn(path + length + 1, "/");
		if (length >= sizeof(above))
			return true;
		memcpy(above, path, length);
		above[length] = '\0';
		if (names_globs_hide(files->globs, root->path, above))
			return true;
	}
	return false;
}

/* By what it is and has in it, as for a command. */
static bool is_shown(const struct files *files, const struct files_root *root, const char *path)
{
	size_t length = strcmp(root->path, "/") ? strlen(root->path) : 0;
	struct name name = { .kind = NAME_MASKED, .path = path + length + 1 };
	struct names names = { .items = &name, .count = 1 };
	return files->deny && path[length] &&
	       shown_judge(files->arena, root->fd, root->path, files->deny, NULL, NULL, &names) == 0 &&
	       name.is_shown;
}

bool files_is_hidden(const struct files *files, const struct files_root *root, const char *path)
{
	char above[PATH_MAX];
	const char *slash = strrchr(path, '/');
	if (!is_hidden_by_name(files, root, path))
		return false;
	snprintf(above, sizeof(above), "%.*s", (int)(slash - path), path);
	return is_hidden_by_name(files, root, above) || !is_shown(files, root, path);
}

bool files_is_protected(const struct files *files, const char *path, bool is_directory)
{
	return files->globs && names_globs_keep(files->globs, path, is_directory);
}

bool files_leads_to_protected(const struct files *files, const char *path)
{
	const char *name = strrchr(path, '/') + 1;
	return files->globs && names_globs_keep_link(files->globs, name, strlen(name));
}

static int refuse_name(const struct files_place *place, const char *why, const char *remedy, struct cordon_error *err)
{
	fail(err, CORDON_E_CAPABILITY_DENIED, 0, place->given, "%s", why);
	fail_boundary(err, "filesystem");
	return fail_remedy(err, "%s", remedy);
}

static int refuse_hidden(const struct files_place *place, struct cordon_error *err)
{
	fail(err, CORDON_E_CAPABILITY_DENIED, 0, place->given, "the name is hidden by a deny glob");
	fail_boundary(err, "masked_names");
	return fail_remedy(err, "see capabilities.deny of the configuration");
}

/* The deepest root that the canonical path lies in. */
static const struct files_root *root_of(const struct files *files, const char *path)
{
	const struct files_root *deepest = NULL;
	for (size_t i = 0; i < files->root_count; i++)
		if (path_within(path, files->roots[i].path) &&
		    (!deepest || strlen(files->roots[i].path) >= strlen(deepest->path)))
			deepest = &files->roots[i];
	return deepest;
}

static int judge_rules(const struct files *files, struct files_place *place, const char *path, struct cordon_error *err)
{
	struct rule_verdict verdict;
	if (!files->rules)
		return 0;
	if (rules_judge(files->arena, files->rules, files->tool, path, true, true, &verdict) < 0)
		return fail_oom(err);
	if (verdict.decision == RULE_DENY) {
		fail(err, CORDON_E_CAPABILITY_DENIED, 0, place->given, "%s", verdict.why);
		fail_boundary(err, "policy");
		return verdict.where ? fail_remedy(err, "the rule is at %s", verdict.where) :
		                       fail_remedy(err, "see [policy] of the configuration");
	}
	if (verdict.decision == RULE_ASK) {
		place->asks = true;
		place->rule =
			verdict.where ? arena_printf(files->arena, "%s (%s)", verdict.why, verdict.where) : verdict.why;
	}
	return 0;
}

static bool is_there(int directory_fd, const char *name)
{
	return faccessat(directory_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Would git take its directory for a repository, and read or run what it is? A command that makes one is judged at its
 * end; here it is refused. */
static bool completes_repository(const struct files_place *place)
{
	static const char *const parts[] = { "HEAD", "objects", "commondir", "config", "config.worktree", "hooks" };
	bool has[ARRAY_SIZE(parts)], is_part = false;
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		bool is_this = !strcasecmp(place->name, parts[i]);
		has[i] = is_this || is_there(place->parent_fd, parts[i]);
		is_part |= is_this;
	}
	if (is_part && has[0] && (has[1] || has[2]))
		return true;
	const char *end = strrchr(place->path, '/');
	return end - place->path >= 6 && !strncasecmp(end - 6, "/hooks", 6) && is_there(place->parent_fd, "../HEAD") &&
	       (is_there(place->parent_fd, "../objects") || is_there(place->parent_fd, "../commondir"));
}

static int refuse_repository(const struct files_place *place, struct cordon_error *err)
{
	return refuse_name(place, "git would take the directory for a repository and read or run this",
	                   "a person can make it outside", err);
}

/* In a repository's own directory nearly every file decides what git does next, outside: a rebase in progress has
 * commands in it, a link at logs/HEAD leads what git appends. What a command changes there is judged at its end; file
 * tools change nothing there. */
static bool is_in_git(const struct files_root *root, const char *path)
{
	for (const char *at = path + strlen(root->path); (at = strchr(at, '/')); at++)
		if (!strncasecmp(at + 1, ".git", 4) && (at[5] == '/' || !at[5]))
			return true;
	return false;
}

static int judge(const struct files *files, struct files_place *place, unsigned how, struct cordon_error *err)
{
	const char *const paths[] = { place->path, place->named };
	const bool is_directory = place->fd >= 0 && S_ISDIR(place->info.st_mode);
	const struct files_root *root = root_of(files, place->path);
	if (!root)
		return files_fail(err, EXDEV, place->given, "");
	if ((how & FILES_WRITE) && !root->writable)
		return refuse_name(place, "this path is granted for reading only", "grant it: --write PATH", err);
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		if (i && !strcmp(paths[i], paths[0]))
			break;
		if (files_is_hidden(files, root, paths[i]))
			return files->untold
			               ? refuse_name(place, "it may not be read or changed here", "do without it", err)
			               : refuse_hidden(place, err);
		if ((how & FILES_WRITE) && files_is_protected(files, paths[i], is_directory))
			return refuse_name(
				place,
				"the name is protected: what it holds would run later, outside, or changes what may be "
			        "done here",
				"a person can change it outside; see capabilities.protect of the configuration", err);
		if ((how & FILES_WRITE) && is_in_git(root, paths[i]))
			return refuse_name(place, "file tools change nothing in a repository's own directory",
			                   "run git in a command instead", err);
		if (judge_rules(files, place, paths[i], err) < 0)
			return -1;
	}
	if ((how & FILES_WRITE) && files->globs && completes_repository(place))
		return refuse_repository(place, err);
	place->root = root;
	return 0;
}

int files_place_again(const struct files *files, const struct files_place *place, struct cordon_error *err)
{
	struct files_place now = *place;
	const char *parent = beneath_path(files->arena, place->parent_fd);
	now.path = now.named =
		parent ? arena_printf(files->arena, "%s/%s", strcmp(parent, "/") ? parent : "", place->name) : NULL;
	if (!now.path)
		return fail_oom(err);
	if (strcmp(now.path, place->path) != 0)
		return judge(files, &now, FILES_WRITE, err);
	return files->globs && completes_repository(place) ? refuse_repository(place, err) : 0;
}

const char *files_refused_name(const struct files *files, const struct files_root *root, const char *path,
                               bool is_directory)
{
	struct rule_verdict verdict = { .decision = RULE_ALLOW };
	const struct files_root *deepest = root_of(files, path);
	if (!deepest || !deepest->writable)
		return "lies where nothing may be written";
	if (files_is_hidden(files, root, path))
		return "has a name that is hidden";
	if (files_is_protected(files, path, is_directory))
		return "has a name that is protected";
	if (is_in_git(root, path))
		return "lies in a repository's own directory";
	if (files->rules && rules_judge(files->arena, files->rules, files->tool, path, true, true, &verdict) < 0)
		return "cannot be judged, because memory is short";
	return verdict.decision == RULE_ALLOW ? NULL : "is not allowed by a tool rule";
}

/* ---- opening ---------------------------------------------------------------------------------------------------- */

/* The rest of `path` after `root`, compared by component, not counting "." and doubled slashes; ".." is left to the
 * kernel. NULL: it begins elsewhere. */
static const char *after_root(const char *path, const char *root)
{
	for (;;) {
		path += strspn(path, "/");
		root += strspn(root, "/");
		if (!*root)
			return path;
		size_t length = strcspn(path, "/");
		if (length == 1 && *path == '.') {
			path++;
			continue;
		}
		if (!length || length != strcspn(root, "/") || memcmp(path, root, length) != 0)
			return NULL;
		path += length;
		root += length;
	}
}

static const struct files_root *find_root(const struct files *files, const char *path, const char **ret_rest)
{
	const struct files_root *deepest = NULL;
	for (size_t i = 0; i < files->root_count; i++) {
		const char *const names[] = { files->roots[i].path, files->roots[i].alias };
		for (size_t j = 0; j < ARRAY_SIZE(names); j++) {
			const char *rest = names[j] ? after_root(path, names[j]) : NULL;
			if (rest && (!deepest || strlen(rest) < strlen(*ret_rest))) {
				deepest = &files->roots[i];
				*ret_rest = rest;
			}
		}
	}
	return deepest;
}

int files_reopen(int fd, int flags)
{
	int opened = fd_reopen(fd, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	return opened < 0 ? -errno : opened;
}

/* The directory of the last component, and that component. "" where the path has none: it is the root, or ends in
 * "..". */
static int open_parent(struct files_place *place, struct arena *arena, int root_fd, const char *rest)
{
	size_t end = strlen(rest);
	while (end && rest[end - 1] == '/')
		end--;
	size_t start = end;
	while (start && rest[start - 1] != '/')
		start--;
	char *name = arena_strndup(arena, rest + start, end - start);
	char *directory = arena_strndup(arena, rest, start);
	if (!name || !directory)
		return -ENOMEM;
	if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
		return -EINVAL;
	int fd = beneath_open(root_fd, directory, O_PATH | O_DIRECTORY);
	if (fd < 0)
		return fd;
	place->parent_fd = fd;
	place->name = name;
	return 0;
}

/* What is called `name` in the directory, itself; nothing may be there. */
static int open_last(const struct files *files, struct files_place *place)
{
	int fd = openat(place->parent_fd, place->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno != ENOENT)
		return -errno;
	place->fd = fd;
	if (fd >= 0 && fstat(fd, &place->info) < 0)
		return -errno;
	const char *parent = beneath_path(files->arena, place->parent_fd);
	if (!parent)
		return -ENAMETOOLONG;
	place->path = arena_printf(files->arena, "%s/%s", strcmp(parent, "/") ? parent : "", place->name);
	return place->path ? 0 : -ENOMEM;
}

/* The directory of what was opened through links, by its canonical path, in which it must still be. */
static int open_real_parent(const struct files *files, struct files_place *place, const struct files_root *root)
{
	struct stat info;
	const char *rest = after_root(place->path, root->path);
	if (!rest)
		return -ESTALE;
	if (!*rest)
		return -EINVAL;
	const char *slash = strrchr(rest, '/');
	const char *directory = slash ? arena_strndup(files->arena, rest, (size_t)(slash - rest)) : "";
	if (!directory)
		return -ENOMEM;
	place->name = slash ? slash + 1 : rest;
	place->parent_fd = names_open(root->fd, directory, O_PATH | O_DIRECTORY);
	if (place->parent_fd < 0)
		return -errno;
	if (fstatat(place->parent_fd, place->name, &info, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? -ESTALE : -errno;
	return info.st_dev == place->info.st_dev && info.st_ino == place->info.st_ino ? 0 : -ESTALE;
}

static int open_followed(const struct files *files, struct files_place *place, const struct files_root *root,
                         const char *rest, unsigned how)
{
	place->fd = *rest ? beneath_open(root->fd, rest, O_PATH) : fcntl(root->fd, F_DUPFD_CLOEXEC, 3);
	if (place->fd == -ENOENT && (how & FILES_MAY_MISS)) {
		place->fd = -1;
		int result = open_parent(place, files->arena, root->fd, rest);
		if (result == 0)
			result = open_last(files, place);
		/* A link that leads to nothing: what it would make is not what was named. Or something came into being
		 * meanwhile. */
		return result == 0 && place->fd >= 0 ? -ELOOP : result;
	}
	if (place->fd < 0 || fstat(place->fd, &place->info) < 0)
		return place->fd < -1 ? place->fd : -errno;
	place->path = beneath_path(files->arena, place->fd);
	if (!place->path)
		return -ENAMETOOLONG;
	/* The path of what was removed meanwhile says nothing. */
	if (!place->info.st_nlink)
		return -ENOENT;
	return how & FILES_WRITE ? open_real_parent(files, place, root) : 0;
}

static int refuse_open(int result, const char *path, unsigned how, struct cordon_error *err)
{
	if (result == -ENOMEM)
		return fail_oom(err);
	/* The file itself may be missing. */
	if (result == -ENOENT && (how & FILES_MAY_MISS)) {
		fail(err, CORDON_E_NOT_FOUND, 0, path, "the directory in which it would be is not there");
		fail_boundary(err, "filesystem");
		return fail_remedy(err, "make the directory first: cordon file mkdir");
	}
	if (result == -ESTALE) {
		fail(err, CORDON_E_SESSION_BUSY, 0, path, "the path changed while it was looked at");
		fail_boundary(err, "filesystem");
		return fail_remedy(err, "try again");
	}
	if (result == -EINVAL) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, path,
		     "the path names a granted root itself, or no entry of a directory");
		return fail_boundary(err, "filesystem");
	}
	return files_fail(err, -result, path, "cannot open this path");
}

int files_place_open(const struct files *files, const char *path, unsigned how, struct files_place *ret_place,
                     struct cordon_error *err)
{
	const char *rest = NULL;
	*ret_place = (struct files_place){ .given = path, .fd = -1, .parent_fd = -1 };
	if (!*path || strlen(path) >= PATH_MAX) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, path, *path ? "the path is too long" : "the path is empty");
		return fail_boundary(err, "request");
	}
	const char *whole = *path == '/' ? path : arena_printf(files->arena, "%s/%s", files->cwd, path);
	if (!whole || !(ret_place->named = path_normalise(files->arena, whole)))
		return fail_oom(err);
	const struct files_root *root = find_root(files, whole, &rest);
	if (!root)
		return files_fail(err, EXDEV, path, "");
	int result;
	if (how & FILES_NO_FOLLOW) {
		result = open_parent(ret_place, files->arena, root->fd, rest);
		if (result == 0)
			result = open_last(files, ret_place);
		if (result == 0 && ret_place->fd < 0 && !(how & FILES_MAY_MISS))
			result = -ENOENT;
	} else {
		result = open_followed(files, ret_place, root, rest, how);
	}
	return result < 0 ? refuse_open(result, path, how, err) : judge(files, ret_place, how, err);
}

void files_place_close(struct files_place *place)
{
	if (place->fd >= 0)
		close(place->fd);
	if (place->parent_fd >= 0)
		close(place->parent_fd);
	place->fd = place->parent_fd = -1;
}

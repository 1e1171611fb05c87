/* See git-file.h. git reads a `.git` file in setup.c (read_gitfile_gently) and `commondir` in get_common_dir_noenv():
 * both drop line ends at the end, and take what is left as a path from the directory that the file lies in. */
#include "paths/planted/git-file.h"

#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

static size_t without_line_ends(const char *text, size_t length)
{
	while (length && (text[length - 1] == '\n' || text[length - 1] == '\r'))
		length--;
	return length;
}

/* Components that are neither empty nor `.` nor `..`. */
static bool is_plain(const char *path, size_t length)
{
	for (size_t at = 0;; at++) {
		size_t size = 0;
		while (at + size < length && path[at + size] != '/')
			size++;
		if (!size || (path[at] == '.' && (size == 1 || (size == 2 && path[at + 1] == '.'))))
			return false;
		at += size;
		if (at >= length)
			return true;
	}
}

/* What follows `.git/modules/` or the like in a path, or NULL. */
static const char *after(const char *path, const char *part)
{
	const char *found = path;
	while ((found = strstr(found, part)) && found != path && found[-1] != '/')
		found++;
	return found ? found + strlen(part) : NULL;
}

bool git_file_is_worktree(const char *path)
{
	const char *slash = strrchr(path, '/');
	if (!slash || !slash[1] || (!after(path, ".git/worktrees/") && !after(path, ".git/modules/")))
		return false;
	static const char parent[] = "/worktrees";
	size_t length = (size_t)(slash - path);
	return length >= strlen(parent) && !memcmp(slash - strlen(parent), parent, strlen(parent));
}

bool git_file_is_up_two(const char *text, size_t length)
{
	length = without_line_ends(text, length);
	return length == 5 && !memcmp(text, "../..", 5);
}

/* What a path leads to from the directory that a file lies in; that and those above it are no links, so that up from
 * there is the same for the text and for the kernel. `base` is the length of the directory's own path. */
static bool follow(const char *text, size_t length, const char *path, size_t base, char *ret_target, size_t size)
{
	for (; length > 3 && !memcmp(text, "../", 3); text += 3, length -= 3) {
		if (!base)
			return false;
		while (path[--base] != '/')
			;
	}
	if (!is_plain(text, length) || base + length + 2 > size)
		return false;
	memcpy(ret_target, path, base);
	ret_target[base] = '/';
	memcpy(ret_target + base + 1, text, length);
	ret_target[base + 1 + length] = '\0';
	return true;
}

static size_t directory_length(const char *path)
{
	return (size_t)(strrchr(path, '/') - path);
}

bool git_file_follow(const char *text, const char *path, char *ret_target, size_t size)
{
	return follow(text, strlen(text), path, directory_length(path), ret_target, size);
}

bool git_file_target(const char *text, size_t length, const char *path, char *ret_target, size_t size)
{
	static const char prefix[] = "gitdir: ";
	size_t base = directory_length(path);
	length = without_line_ends(text, length);
	if (length <= strlen(prefix) || memcmp(text, prefix, strlen(prefix)) || memchr(text, '\0', length) ||
	    memchr(text, '\n', length))
		return false;
	text += strlen(prefix);
	length -= strlen(prefix);
	if (*text == '/') {
		base = 0;
		text++;
		length--;
	}
	if (!follow(text, length, path, base, ret_target, size))
		return false;
	const char *module = after(ret_target, ".git/modules/"), *worktree = after(ret_target, ".git/worktrees/");
	return (module && *module) || (worktree && *worktree);
}

/* Directories in a `.git` that git writes into. Knowingly excluded: `hooks`, which is judged by what could run in
 * it. */
static const char *const own_directories[] = {
	"branches", "info",         "logs",         "lost-found", "modules",  "NOTES_MERGE_WORKTREE",
	"objects",  "rebase-apply", "rebase-merge", "refs",       "reftable", "remotes",
	"rr-cache", "sequencer",    "svn",          "worktrees",
};

static bool is_own(const char *in_git)
{
	size_t length = strcspn(in_git, "/");
	if (!in_git[length])
		return length;
	for (size_t i = 0; i < ARRAY_SIZE(own_directories); i++)
		if (strlen(own_directories[i]) == length && !strncasecmp(in_git, own_directories[i], length))
			return true;
	return false;
}

bool git_file_is_gits_own(const char *path)
{
	for (const char *at = path; *at; at += strspn(at, "/")) {
		size_t length = strcspn(at, "/");
		if (length == 4 && !strncasecmp(at, ".git/", 5) && is_own(at + 5))
			return true;
		at += length;
	}
	return false;
}

bool git_file_is_usual_link(const char *path, const char *text)
{
	const char *slash = strrchr(path, '/'), *leaf = slash ? slash + 1 : path;
	if (!is_plain(text, strlen(text)))
		return false;
	/* core.preferSymlinkRefs */
	if (!strcmp(leaf, "HEAD"))
		return !strncmp(text, "refs/", 5);
	return !strncmp(leaf, ".#", 2) && !strchr(text, '/');
}

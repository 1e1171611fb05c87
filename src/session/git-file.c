/* See git-file.h. git reads a `.git` file in setup.c (read_gitfile_gently) and `commondir` in get_common_dir_noenv(): both
 * drop line ends at the end, and take what is left as a path from the directory that the file lies in. */
#include "session/git-file.h"

#include <string.h>

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

bool git_file_target(const char *text, size_t length, const char *path, const char *root_path, char *ret_target,
                     size_t size)
{
	static const char prefix[] = "gitdir: ";
	const char *slash = strrchr(path, '/');
	size_t base = slash ? (size_t)(slash - path) : 0, root = strlen(root_path);
	length = without_line_ends(text, length);
	if (length <= strlen(prefix) || memcmp(text, prefix, strlen(prefix)) || memchr(text, '\0', length) ||
	    memchr(text, '\n', length))
		return false;
	text += strlen(prefix);
	length -= strlen(prefix);
	if (*text == '/') {
		root -= root && root_path[root - 1] == '/';
		if (length <= root + 1 || memcmp(text, root_path, root) || text[root] != '/')
			return false;
		base = 0;
		text += root + 1;
		length -= root + 1;
	} else {
		/* The directories it lies in are no links: up from there is the same for the text and for the kernel. */
		for (; length > 3 && !memcmp(text, "../", 3); text += 3, length -= 3) {
			if (!base)
				return false;
			while (base && path[base - 1] != '/')
				base--;
			base -= base > 0;
		}
	}
	if (!is_plain(text, length) || base + length + 2 > size)
		return false;
	memcpy(ret_target, path, base);
	ret_target[base] = '/';
	memcpy(ret_target + base + !!base, text, length);
	ret_target[base + !!base + length] = '\0';
	const char *module = after(ret_target, ".git/modules/"), *worktree = after(ret_target, ".git/worktrees/");
	return (module && *module) || (worktree && *worktree);
}

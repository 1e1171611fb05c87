/* Reading what git would: see git-look.h. */
#include "session/git-look.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "session/git-file.h"
#include "session/names-look.h"
#include "session/names-table.h"

void git_look_end(struct git_look *look)
{
	free(look->buffer);
}

/* False: it cannot be read as a regular file. What is longer than a configuration may be is cut one byte later. */
static bool read_file(struct git_look *look, const char *path, size_t *ret_length)
{
	struct names_stat stat;
	auto_close int fd = names_open(look->root_fd, path, O_RDONLY | O_NONBLOCK);
	if (fd < 0 || !names_stat(fd, "", &stat) || !S_ISREG(stat.mode))
		return false;
	if (!look->buffer && !(look->buffer = malloc(GIT_CONFIG_SIZE_MAX + 1)))
		return false;
	size_t length = 0;
	for (ssize_t got; length < GIT_CONFIG_SIZE_MAX + 1; length += (size_t)got) {
		got = read(fd, look->buffer + length, GIT_CONFIG_SIZE_MAX + 1 - length);
		if (got < 0)
			return false;
		if (!got)
			break;
	}
	*ret_length = length;
	return true;
}

/* Where a `.git` file leads. */
static bool read_git_file(struct git_look *look, const char *path, char *ret_target, size_t size)
{
	size_t length;
	return read_file(look, path, &length) &&
	       git_file_target(look->buffer, length, path, look->root_path, ret_target, size);
}

static bool lies_in(const char *path, const char *directory)
{
	const char *slash = strrchr(path, '/');
	size_t length = slash ? (size_t)(slash - path) : 0;
	return strlen(directory) == length && !memcmp(directory, path, length);
}

/* Whether what a submodule's configuration names is really, with no link on the way, the working tree that leads to it: its
 * `.git` is a protected name, by which it cannot be turned into a link later. */
static bool has_worktree(struct git_look *look, const char *path, const char *worktree)
{
	char tree[NAMES_PATH_MAX], file[NAMES_PATH_MAX + 8], target[NAMES_PATH_MAX];
	if (!git_file_follow(worktree, path, tree, sizeof(tree)))
		return false;
	snprintf(file, sizeof(file), "%s/.git", tree);
	return read_git_file(look, file, target, sizeof(target)) && lies_in(path, target);
}

bool git_look_config(struct git_look *look, const char *path, struct git_config_verdict *ret_verdict)
{
	size_t length;
	bool is_module = strcasestr(path, ".git/modules/") || strcasestr(path, ".git/worktrees/");
	if (!read_file(look, path, &length))
		return false;
	git_config_judge(look->buffer, length, is_module, ret_verdict);
	if (*ret_verdict->worktree && !ret_verdict->reason && !has_worktree(look, path, ret_verdict->worktree)) {
		strcpy(ret_verdict->key, "core.worktree");
		ret_verdict->reason = GIT_CONFIG_ELSEWHERE;
	}
	return true;
}

/* Whether a repository that has a working tree has this one, the directory that `path` lies in. */
static bool is_worktree_of(struct git_look *look, const char *path, const char *config)
{
	char tree[NAMES_PATH_MAX];
	size_t length;
	struct git_config_verdict verdict;
	if (!read_file(look, config, &length))
		return false;
	git_config_judge(look->buffer, length, true, &verdict);
	if (!*verdict.worktree)
		return true;
	return git_file_follow(verdict.worktree, config, tree, sizeof(tree)) && lies_in(path, tree);
}

bool git_look_leads_inside(struct git_look *look, const char *path)
{
	char target[NAMES_PATH_MAX], file[NAMES_PATH_MAX + 32];
	struct names_stat stat;
	if (!read_git_file(look, path, target, sizeof(target)))
		return false;
	bool is_further = git_file_is_worktree(target);
	snprintf(file, sizeof(file), "%s/%s", target, is_further ? "commondir" : "config");
	const struct name *name = names_get(look->names, NAME_PROTECTED, file);
	auto_close int fd = name && !name->is_link ? names_open(look->root_fd, file, O_PATH) : -1;
	return fd >= 0 && names_stat(fd, "", &stat) && S_ISREG(stat.mode) && (is_further || is_worktree_of(look, path, file));
}

bool git_look_stays_inside(struct git_look *look, const char *path)
{
	char directory[NAMES_ENTRY_SIZE];
	size_t length;
	snprintf(directory, sizeof(directory), "%.*s", (int)(strlen(path) - strlen("/commondir")), path);
	return git_file_is_worktree(directory) && read_file(look, path, &length) && git_file_is_up_two(look->buffer, length);
}

int git_look_each(const struct git_look *look, const char *path, size_t max, int (*take)(void *arg, int fd, const char *leaf),
                  void *arg)
{
	int fd = names_open(look->root_fd, path, O_RDONLY | O_DIRECTORY), status = 0;
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	if (!directory) {
		cleanup_close(&fd);
		return 0;
	}
	struct dirent *entry;
	for (size_t i = 0; status == 0 && (entry = readdir(directory)); i++)
		if (i >= max)
			status = 1;
		else if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			status = take(arg, fd, entry->d_name);
	closedir(directory);
	return status;
}

bool git_look_is_sample(const char *leaf)
{
	size_t length = strlen(leaf);
	return length >= 7 && !strcmp(leaf + length - 7, ".sample");
}

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

#define SMALL 4096                      /* bytes that are read in no time */

void git_look_end(struct git_look *look)
{
	for (size_t i = 0; i < look->judged_count; i++)
		free(look->judged[i]);
	free(look->judged);
	free(look->buffer);
}

void git_look_whole_path(const struct git_tree *tree, const char *path, char ret_path[GIT_LOOK_PATH_SIZE])
{
	snprintf(ret_path, GIT_LOOK_PATH_SIZE, "%s/%s", strcmp(tree->root_path, "/") ? tree->root_path : "", path);
}

/* What a whole path is in a tree; NULL where it does not lie there. */
static const char *path_in(const struct git_tree *tree, const char *whole)
{
	size_t length = strcmp(tree->root_path, "/") ? strlen(tree->root_path) : 0;
	return !strncmp(whole, tree->root_path, length) && whole[length] == '/' ? whole + length + 1 : NULL;
}

/* False: it cannot be read as a regular file. What is longer than a configuration may be is cut one byte later. */
static bool read_file(struct git_look *look, const struct git_tree *tree, const char *path, size_t *ret_length)
{
	struct names_stat stat;
	auto_close int fd = names_open(tree->root_fd, path, O_RDONLY | O_NONBLOCK);
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

static const struct git_judged *find_judged(const struct git_look *look, const struct names_stat *stat, bool is_module)
{
	for (size_t i = look->judged_count; i-- > 0;) {
		const struct git_judged *judged = look->judged[i];
		if (judged->inode == stat->inode && judged->device == stat->device && judged->size == stat->size &&
		    judged->ctime_ns == stat->ctime_ns && judged->is_module == is_module)
			return judged;
	}
	return NULL;
}

/* Where there is no memory for it, it is read again. */
static void keep_judged(struct git_look *look, const struct git_judged *found)
{
	struct git_judged **items = realloc(look->judged, (look->judged_count + 1) * sizeof(struct git_judged *));
	struct git_judged *copy = items ? malloc(sizeof(*copy)) : NULL;
	if (items)
		look->judged = items;
	if (!copy)
		return;
	*copy = *found;
	items[look->judged_count++] = copy;
}

/* False: it cannot be read as a regular file. */
static bool judge_config(struct git_look *look, const struct git_tree *tree, const char *path, bool is_module,
                         struct git_config_verdict *ret_verdict)
{
	struct names_stat stat;
	size_t length;
	auto_close int fd = names_open(tree->root_fd, path, O_PATH);
	if (fd < 0 || !names_stat(fd, "", &stat))
		return false;
	const struct git_judged *known = stat.size > SMALL ? find_judged(look, &stat, is_module) : NULL;
	if (known) {
		*ret_verdict = known->verdict;
		return true;
	}
	if (!read_file(look, tree, path, &length))
		return false;
	git_config_judge(look->buffer, length, is_module, ret_verdict);
	if (stat.size > SMALL)
		keep_judged(look, &(struct git_judged){ stat.device, stat.inode, stat.size, stat.ctime_ns, is_module, *ret_verdict });
	return true;
}

/* Where a `.git` file leads. */
static bool read_git_file(struct git_look *look, const struct git_tree *tree, const char *path, char *ret_target, size_t size)
{
	char whole[GIT_LOOK_PATH_SIZE];
	size_t length;
	git_look_whole_path(tree, path, whole);
	return read_file(look, tree, path, &length) && git_file_target(look->buffer, length, whole, ret_target, size);
}

/* All of these take whole paths. */

static bool lies_in(const char *path, const char *directory)
{
	size_t length = (size_t)(strrchr(path, '/') - path);
	return strlen(directory) == length && !memcmp(directory, path, length);
}

/* Whether what a submodule's configuration names is really, with no link on the way, the working tree that leads to it: its
 * `.git` is a protected name, by which it cannot be turned into a link later. */
static bool has_worktree(struct git_look *look, const char *config, const char *worktree)
{
	char directory[GIT_LOOK_PATH_SIZE], file[GIT_LOOK_PATH_SIZE + 8], target[GIT_LOOK_PATH_SIZE];
	if (!git_file_follow(worktree, config, directory, sizeof(directory)))
		return false;
	snprintf(file, sizeof(file), "%s/.git", directory);
	for (size_t i = 0; i < look->trees->count; i++) {
		const char *path = path_in(&look->trees->items[i], file);
		if (path && read_git_file(look, &look->trees->items[i], path, target, sizeof(target)) && lies_in(config, target))
			return true;
	}
	return false;
}

/* Whether a repository that has a working tree has this one, the directory that `git_file` lies in. `path` is that of its
 * configuration in `tree`, which may be another. */
static bool is_worktree_of(struct git_look *look, const char *git_file, const struct git_tree *tree, const char *path)
{
	char config[GIT_LOOK_PATH_SIZE], worktree[GIT_LOOK_PATH_SIZE];
	struct git_config_verdict verdict;
	if (!judge_config(look, tree, path, true, &verdict))
		return false;
	if (!*verdict.worktree)
		return true;
	git_look_whole_path(tree, path, config);
	return git_file_follow(verdict.worktree, config, worktree, sizeof(worktree)) && lies_in(git_file, worktree);
}

static bool is_guarded(const struct git_tree *tree, const char *path)
{
	struct names_stat stat;
	const struct name *name = names_get(tree->names, NAME_PROTECTED, path);
	auto_close int fd = name && !name->is_link ? names_open(tree->root_fd, path, O_PATH) : -1;
	return fd >= 0 && names_stat(fd, "", &stat) && S_ISREG(stat.mode);
}

/* ---- Of the tree that is looked at -------------------------------------------------------------------------------- */

bool git_look_is_anothers(const struct git_look *look, const struct name *name)
{
	char whole[GIT_LOOK_PATH_SIZE];
	git_look_whole_path(look->tree, name->path, whole);
	for (const struct git_tree *tree = look->trees->items; tree < look->tree; tree++) {
		const char *path = path_in(tree, whole);
		if (path && names_get(tree->names, name->kind, path))
			return true;
	}
	return false;
}

bool git_look_config(struct git_look *look, const char *path, struct git_config_verdict *ret_verdict)
{
	char whole[GIT_LOOK_PATH_SIZE];
	git_look_whole_path(look->tree, path, whole);
	bool is_module = strcasestr(whole, ".git/modules/") || strcasestr(whole, ".git/worktrees/");
	if (!judge_config(look, look->tree, path, is_module, ret_verdict))
		return false;
	if (*ret_verdict->worktree && !ret_verdict->reason && !has_worktree(look, whole, ret_verdict->worktree)) {
		strcpy(ret_verdict->key, "core.worktree");
		ret_verdict->reason = GIT_CONFIG_ELSEWHERE;
	}
	return true;
}

bool git_look_leads_inside(struct git_look *look, const char *path)
{
	char whole[GIT_LOOK_PATH_SIZE], target[GIT_LOOK_PATH_SIZE], wanted[GIT_LOOK_PATH_SIZE + 16];
	git_look_whole_path(look->tree, path, whole);
	if (!read_git_file(look, look->tree, path, target, sizeof(target)))
		return false;
	bool is_further = git_file_is_worktree(target);
	snprintf(wanted, sizeof(wanted), "%s/%s", target, is_further ? "commondir" : "config");
	for (size_t i = 0; i < look->trees->count; i++) {
		const struct git_tree *tree = &look->trees->items[i];
		const char *file = path_in(tree, wanted);
		if (file && is_guarded(tree, file))
			return is_further || is_worktree_of(look, whole, tree, file);
	}
	return false;
}

bool git_look_stays_inside(struct git_look *look, const char *path)
{
	char directory[GIT_LOOK_PATH_SIZE];
	size_t length;
	git_look_whole_path(look->tree, path, directory);
	*strrchr(directory, '/') = '\0';
	return git_file_is_worktree(directory) && read_file(look, look->tree, path, &length) &&
	       git_file_is_up_two(look->buffer, length);
}

int git_look_each(const struct git_look *look, const char *path, size_t max, int (*take)(void *arg, int fd, const char *leaf),
                  void *arg)
{
	int fd = names_open(look->tree->root_fd, path, O_RDONLY | O_DIRECTORY), status = 0;
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

/* Reading what git would: see git-look.h. */
#include "paths/planted/git-look.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/may-run.h"
#include "paths/planted/git-file.h"
#include "paths/index/look.h"
#include "paths/index/table.h"

#define SMALL 4096                      /* bytes that are read in no time */

void git_look_end(struct git_look *look)
{
	for (size_t i = 0; i < look->read_count; i++)
		free(look->read[i]);
	free(look->read);
	free(look->facts);
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

static const struct git_read *find_read(const struct git_look *look, const struct names_stat *stat)
{
	for (size_t i = look->read_count; i-- > 0;) {
		const struct git_read *read = look->read[i];
		if (read->inode == stat->inode && read->device == stat->device && read->size == stat->size &&
		    read->ctime_ns == stat->ctime_ns)
			return read;
	}
	return NULL;
}

/* Where memory is short, the file is read again the next time. */
static void keep_read(struct git_look *look, const struct git_read *found)
{
	struct git_read **items = realloc(look->read, (look->read_count + 1) * sizeof(struct git_read *));
	struct git_read *copy = items ? malloc(sizeof(*copy) + found->count * sizeof(*look->facts)) : NULL;
	if (items)
		look->read = items;
	if (!copy)
		return;
	*copy = *found;
	if (found->count)
		memcpy(copy->facts, look->facts, found->count * sizeof(*look->facts));
	items[look->read_count++] = copy;
}

/* What a configuration has, by its content alone; its facts are in look->facts, and not in `ret_read`. False: it
 * cannot be read as a regular file, or memory is short. */
static bool read_config(struct git_look *look, const struct git_tree *tree, const char *path, struct git_read *ret_read)
{
	static const struct git_config_context by_itself = { .may_have_worktree = true };
	struct git_config_verdict verdict;
	struct names_stat stat;
	size_t length;
	auto_close int fd = names_open(tree->root_fd, path, O_PATH);
	if (fd < 0 || !names_stat(fd, "", &stat) ||
	    (!look->facts && !(look->facts = malloc(GIT_CONFIG_FACTS_MAX * sizeof(*look->facts)))))
		return false;
	const struct git_read *known = stat.size > SMALL ? find_read(look, &stat) : NULL;
	if (known) {
		*ret_read = *known;
		memcpy(look->facts, known->facts, known->count * sizeof(*look->facts));
		return true;
	}
	if (!read_file(look, tree, path, &length))
		return false;
	*ret_read = (struct git_read){ stat.device, stat.inode, stat.size, stat.ctime_ns, "", false, 0 };
	ret_read->known = git_config_read(look->buffer, length, look->facts, &ret_read->count);
	git_config_judge(look->buffer, length, &by_itself, &verdict);
	memcpy(ret_read->worktree, verdict.worktree, sizeof(verdict.worktree));
	if (stat.size > SMALL)
		keep_read(look, ret_read);
	return true;
}

/* Where a `.git` file leads. */
static bool read_git_file(struct git_look *look, const struct git_tree *tree, const char *path, char *ret_target,
                          size_t size)
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

/* Whether what a submodule's configuration names is really, with no link on the way, the working tree that leads to
 * it: its `.git` is a protected name, by which it cannot be turned into a link later. */
static bool has_worktree(struct git_look *look, const char *config, const char *worktree)
{
	char directory[GIT_LOOK_PATH_SIZE], file[GIT_LOOK_PATH_SIZE + 8], target[GIT_LOOK_PATH_SIZE];
	if (!git_file_follow(worktree, config, directory, sizeof(directory)))
		return false;
	snprintf(file, sizeof(file), "%s/.git", directory);
	for (size_t i = 0; i < look->trees->count; i++) {
		const char *path = path_in(&look->trees->items[i], file);
		if (path && read_git_file(look, &look->trees->items[i], path, target, sizeof(target)) &&
		    lies_in(config, target))
			return true;
	}
	return false;
}

/* Whether a repository that has a working tree has this one, the directory that `git_file` lies in. `path` is that of
 * its configuration in `tree`, which may be another. */
static bool is_worktree_of(struct git_look *look, const char *git_file, const struct git_tree *tree, const char *path)
{
	char config[GIT_LOOK_PATH_SIZE], worktree[GIT_LOOK_PATH_SIZE];
	struct git_read read;
	if (!read_config(look, tree, path, &read))
		return false;
	if (!*read.worktree)
		return true;
	git_look_whole_path(tree, path, config);
	return git_file_follow(read.worktree, config, worktree, sizeof(worktree)) && lies_in(git_file, worktree);
}

static bool is_guarded(const struct git_tree *tree, const char *path)
{
	struct names_stat stat;
	const struct name *name = names_get(tree->names, NAME_PROTECTED, path);
	auto_close int fd = name && !name->is_link ? names_open(tree->root_fd, path, O_PATH) : -1;
	return fd >= 0 && names_stat(fd, "", &stat) && S_ISREG(stat.mode);
}

/* ---- Of the tree that is looked at ----------------------------------------------------------------------------- */

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

const char *git_look_text(struct git_look *look, const char *path, size_t *ret_length)
{
	return read_file(look, look->tree, path, ret_length) ? look->buffer : NULL;
}

int git_look_config_before(struct git_look *look, struct arena *arena, const char *path,
                           struct git_config_before *ret_before)
{
	struct git_read read;
	*ret_before = (struct git_config_before){ 0 };
	if (!read_config(look, look->tree, path, &read) || !read.known)
		return 0;
	ret_before->known = true;
	ret_before->count = read.count;
	if (!read.count)
		return 0;
	struct git_config_fact *facts = arena_alloc(arena, read.count * sizeof(*facts));
	if (!facts)
		return -1;
	ret_before->facts = memcpy(facts, look->facts, read.count * sizeof(*facts));
	return 0;
}

bool git_look_config(struct git_look *look, const char *path, const struct git_config_before *before,
                     struct git_config_verdict *ret_verdict)
{
	char whole[GIT_LOOK_PATH_SIZE];
	size_t length;
	git_look_whole_path(look->tree, path, whole);
	const struct git_config_context context = {
		.before = before,
		.may_have_worktree = strcasestr(whole, ".git/modules/") || strcasestr(whole, ".git/worktrees/"),
		.is_overlay = !strcasecmp(strrchr(whole, '/') + 1, "config.worktree"),
	};
	if (!read_file(look, look->tree, path, &length))
		return false;
	git_config_judge(look->buffer, length, &context, ret_verdict);
	if (!ret_verdict->reason && ret_verdict->worktree_is_new && !has_worktree(look, whole, ret_verdict->worktree)) {
		strcpy(ret_verdict->key, "core.worktree");
		ret_verdict->reason = GIT_SETTING_ELSEWHERE;
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

int git_look_each(const struct git_look *look, const char *path, size_t max,
                  int (*take)(void *arg, int fd, const char *leaf), void *arg)
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

/* What a repository has in a directory that is called hooks, as that of a submodule can be. No hook has such a name. */
static bool is_of_repository(const char *leaf)
{
	static const char *const names[] = { "HEAD",       "ORIG_HEAD",   "FETCH_HEAD",      "MERGE_HEAD",  "config",
		                             "index",      "packed-refs", "config.worktree", "description", "commondir",
		                             "gitdir",     "shallow",     "COMMIT_EDITMSG" };
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(leaf, names[i]))
			return true;
	return false;
}

bool git_look_could_run(const char *leaf, const struct names_stat *stat)
{
	return S_ISLNK(stat->mode) ||
	       (S_ISREG(stat->mode) && (stat->mode & 0111 || stat->links > 1 ||
	                                (mode_may_run(stat->mode) && !is_of_repository(leaf))));
}

/* A repository is known by its `config`, that of a further working tree by its `commondir`: both are among the names.
 * What a person had in progress before is recorded, so that it is not held against a command that did not change it. */
#include "paths/planted/progress.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "paths/planted/git-file.h"
#include "paths/planted/git-progress.h"
#include "paths/index/look.h"
#include "paths/index/table.h"
#include "paths/planted/judge.h"
#include "paths/planted/record.h"
#include "paths/planted/seen.h"

struct repository {
	struct recording *recording;    /* or NULL: */
	struct check *check;
	char path[NAMES_ENTRY_SIZE];    /* of the git directory, in the tree */
	bool is_older;                  /* as its name is */
};

static int take_file(void *arg, const char *name, const struct names_stat *stat, const char *reason)
{
	const struct repository *repository = arg;
	struct recording *recording = repository->recording;
	struct check *check = repository->check;
	const char *slash = *repository->path ? "/" : "";
	const char *path =
		arena_printf(recording ? recording->arena : check->arena, "%s%s%s", repository->path, slash, name);
	if (!path)
		return -1;
	if (recording)
		return seen_add(recording->arena, recording->before, path, stat, NULL);
	bool is_older = repository->is_older && stat->ctime_ns < check->look.tree->names->since_ns;
	return is_older || seen_is_same(check->before, path, stat) ? 0 : condemn(check, path, reason);
}

static bool has_leaf(const struct name *name, const char *leaf, size_t *ret_parent)
{
	const char *slash = strrchr(name->path, '/');
	*ret_parent = slash ? (size_t)(slash - name->path) : 0;
	return !strcasecmp(slash ? slash + 1 : name->path, leaf);
}

/* Whether a name says that the directory it lies in is a git directory; of two that do, the first. */
static bool is_in_git_directory(const struct git_tree *tree, const struct name *name, size_t *ret_parent)
{
	char whole[GIT_LOOK_PATH_SIZE], config[NAMES_ENTRY_SIZE];
	if ((name->kind != NAME_PROTECTED && name->kind != NAME_JUDGED) || name->is_directory)
		return false;
	git_look_whole_path(tree, name->path, whole);
	if (name->kind == NAME_PROTECTED && !git_file_is_gits_own(whole))
		return false;
	if (has_leaf(name, "config", ret_parent))
		return true;
	if (!has_leaf(name, "commondir", ret_parent))
		return false;
	snprintf(config, sizeof(config), "%.*s%sconfig", (int)*ret_parent, name->path, *ret_parent ? "/" : "");
	return !names_get(tree->names, name->kind, config);
}

static int look_into(struct repository *repository, const struct git_tree *tree, const struct name *name,
		     uint64_t deadline_us)
{
	size_t parent;
	if (!is_in_git_directory(tree, name, &parent))
		return 0;
	snprintf(repository->path, sizeof(repository->path), "%.*s", (int)parent, name->path);
	repository->is_older = name->is_older;
	auto_close int fd = names_open(tree->root_fd, repository->path, O_PATH | O_DIRECTORY);
	return fd < 0 ? 0 : git_progress_judge(fd, deadline_us, take_file, repository);
}

int progress_record(struct recording *recording)
{
	struct repository repository = { .recording = recording };
	const struct names *names = recording->before->names;
	int status = 0;
	for (size_t i = 0; i < names->count && status == 0 && recording->before->count < SEEN_MAX; i++)
		status = look_into(&repository, recording->look.tree, &names->items[i], recording->deadline_us);
	return status;
}

int progress_judge(struct check *check)
{
	struct repository repository = { .check = check };
	const struct names *names = check->look.tree->names;
	int status = 0;
	for (size_t i = 0; i < names->count && status == 0; i++)
		if (!git_look_is_anothers(&check->look, &names->items[i]))
			status = look_into(&repository, check->look.tree, &names->items[i], check->deadline_us);
	return status;
}

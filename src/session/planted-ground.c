/* A ground can be a repository itself, that no `.git` tells of: see planted-ground.h. */
#include "session/planted-ground.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "session/git-file.h"
#include "session/names-look.h"
#include "session/names-table.h"
#include "session/planted-judge.h"
#include "session/planted-record.h"
#include "session/planted-seen.h"

/* What git takes from one that is a repository. */
static const char *const ground_files[] = { "config", "config.worktree", "commondir", "hooks" };
#define GROUND_CONFIGS 2
#define LARGE (64 * 1024)

/* How much of a path lies above the first `.git` in it. */
static size_t above_git(const char *path)
{
	for (const char *at = path; (at = strcasestr(at, ".git")); at++)
		if (at > path && at[-1] == '/' && (!at[4] || at[4] == '/'))
			return (size_t)(at - path) - 1;
	return 0;
}

typedef int ground_fn(void *arg, const char *ground);

static int each_ground(struct arena *arena, const struct names *names, bool late_too, ground_fn *take, void *arg)
{
	const char *last = "";
	size_t last_length = 0;
	int status = take(arg, "");
	for (size_t i = 0; i < names->count && status == 0; i++) {
		const struct name *name = &names->items[i];
		const char *path = name->path;
		size_t length = name->kind == NAME_PROTECTED && (late_too || !name->late) ? above_git(path) : 0;
		for (size_t end = 1; end <= length && status == 0; end++) {
			bool taken = end <= last_length && !strncmp(last, path, end) && last[end] == '/';
			if (path[end] != '/' || taken)
				continue;
			const char *ground = arena_strndup(arena, path, end);
			status = ground ? take(arg, ground) : -1;
		}
		if (length) {
			last = path;
			last_length = length;
		}
	}
	return status;
}

static const char *in_ground(struct arena *arena, const char *ground, const char *leaf)
{
	return arena_printf(arena, "%s%s%s", ground, *ground ? "/" : "", leaf);
}

static bool has(int root_fd, const char *ground, const char *leaf)
{
	char path[NAMES_ENTRY_SIZE];
	struct names_stat stat;
	return snprintf(path, sizeof(path), "%s%s%s", ground, *ground ? "/" : "", leaf) < (int)sizeof(path) &&
	       names_stat(root_fd, path, &stat);
}

/* As git's is_git_directory() goes by. */
static bool is_repository(int root_fd, const char *ground)
{
	return has(root_fd, ground, "HEAD") &&
	       (has(root_fd, ground, "commondir") || (has(root_fd, ground, "objects") && has(root_fd, ground, "refs")));
}

static bool holds_repository(int root_fd, const char *ground)
{
	return has(root_fd, ground, ".git/HEAD") && has(root_fd, ground, ".git/objects") && has(root_fd, ground, ".git/refs");
}

/* Nobody's configuration is as large; and so many of them are nobody's. */
static bool is_too_much(const struct names_stat *stat, uint64_t deadline_us)
{
	return stat->size > LARGE && names_now_us() > deadline_us;
}

static int record_ground_file(struct recording *recording, const char *path, bool is_config)
{
	struct names_stat stat;
	if (!names_stat(recording->look.tree->root_fd, path, &stat))
		return 0;
	if (S_ISDIR(stat.mode))
		return record_directory(recording, path, true);
	if (is_config && S_ISREG(stat.mode) && is_too_much(&stat, recording->deadline_us))
		return 0;
	return is_config && S_ISREG(stat.mode) ? record_config(recording, path)
	                                       : seen_add(recording->arena, recording->before, path, &stat, NULL);
}

static int record_ground(void *arg, const char *ground)
{
	struct recording *recording = arg;
	int root_fd = recording->look.tree->root_fd;
	if (holds_repository(root_fd, ground) &&
	    seen_add(recording->arena, recording->before, in_ground(recording->arena, ground, ".git/HEAD"), NULL, NULL) < 0)
		return -1;
	for (size_t i = 0; is_repository(root_fd, ground) && i < ARRAY_SIZE(ground_files); i++) {
		const char *path = in_ground(recording->arena, ground, ground_files[i]);
		if (!path || record_ground_file(recording, path, i < GROUND_CONFIGS) < 0)
			return -1;
	}
	return 0;
}

/* Where the root is a `.git`, or lies in one, it is judged as one. */
static bool is_protected(const struct git_tree *tree, const char *path)
{
	char whole[GIT_LOOK_PATH_SIZE];
	git_look_whole_path(tree, path, whole);
	return git_file_is_gits_own(whole) && names_get(tree->names, NAME_PROTECTED, path);
}

/* Nothing keeps such a file from change, and what is harmless is not worth a word. */
static int judge_ground_file(struct check *check, const char *path, bool is_config)
{
	struct names_stat stat;
	bool any;
	if (is_protected(check->look.tree, path) || !names_stat(check->look.tree->root_fd, path, &stat))
		return 0;
	if (S_ISDIR(stat.mode))
		return condemn_hooks(check, path, &any);
	if (is_config && S_ISREG(stat.mode) && is_too_much(&stat, check->deadline_us))
		return condemn(check, path, TOO_MUCH);
	if (is_config && S_ISREG(stat.mode))
		return condemn_config(check, path, &any);
	return seen_is_same(check->before, path, &stat)
		? 0 : condemn(check, path, "would make git use the configuration of another directory");
}

static int judge_ground(void *arg, const char *ground)
{
	struct check *check = arg;
	int root_fd = check->look.tree->root_fd;
	const char *head = in_ground(check->arena, ground, ".git/HEAD");
	if (!head)
		return -1;
	if (seen_find(check->before, head) && has(root_fd, ground, ".git") && !holds_repository(root_fd, ground) &&
	    keep(check, in_ground(check->arena, ground, ".git"), "was a git repository and is none any more; kept") < 0)
		return -1;
	for (size_t i = 0; is_repository(root_fd, ground) && i < ARRAY_SIZE(ground_files); i++) {
		const char *path = in_ground(check->arena, ground, ground_files[i]);
		if (!path || judge_ground_file(check, path, i < GROUND_CONFIGS) < 0)
			return -1;
	}
	return 0;
}

int grounds_record(struct recording *recording)
{
	return each_ground(recording->arena, recording->before->names, false, record_ground, recording);
}

int grounds_judge(struct check *check)
{
	return each_ground(check->arena, check->before->names, true, judge_ground, check);
}

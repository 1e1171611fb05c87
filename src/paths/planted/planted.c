/* Judging what a command planted: see planted.h.
 *
 * One table says how each protected name is written down before and judged after. A name that is the same inode with
 * the same change time as before is not looked into, and names_find() has just asked for both: an unchanged repository
 * costs no call here but one for each hook in it, and those that tell whether it is one. unlock.c opens
 * directories that hide some. */
#include "paths/planted/planted.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "paths/index/look.h"
#include "paths/index/table.h"
#include "paths/planted/judge.h"
#include "paths/planted/progress.h"
#include "paths/planted/record.h"
#include "paths/planted/seen.h"

/* No command that means well leaves as much. */
#define JUDGED_MAX 10000
#define JUDGED_US (2 * 1000 * 1000)
#define RECORDED_US (2 * 1000 * 1000)
#define QUARANTINE_ROOM (16 * 1024 * 1024)      /* for copies: hooks and configurations are small */

/* In a directory of this name, or in a repository that is not called so (NAME_JUDGED). */
#define GIT "/.git/"
#define HG "/.hg/"
#define JJ "/.jj/"

/* By the last component of a name's path, the case of letters aside. */
static const struct row {
	const char *leaf;               /* NULL: any */
	const char *within;             /* only where this is in the path above it; NULL: anywhere */
	record_fn *record;              /* what is no directory and no link; or NULL */
	judge_fn *judge;
} rows[] = {
	{ "hooks", GIT, NULL, judge_hooks },
	{ "config", GIT, record_config, judge_config },
	{ "config.worktree", GIT, record_config, judge_config },
	{ "commondir", GIT, NULL, judge_common },
	{ "gitdir", GIT, NULL, judge_back },
	{ "hgrc", HG, NULL, judge_hgrc },
	{ "hgrc-not-shared", HG, NULL, judge_hgrc },
	{ "sharedpath", HG, NULL, judge_elsewhere },
	{ "config.toml", JJ, NULL, judge_jj },
	{ "workspace-config.toml", JJ, NULL, judge_jj },
	{ "repo", JJ, NULL, judge_elsewhere },
	{ ".git", NULL, record_git_file, judge_git_file },
	{ ".cordon.toml", NULL, NULL, judge_policy },
	/* of agents and editors: door/agent/projects.def */
	{ "settings.json", "/.claude/", NULL, judge_settings },
	{ "settings.local.json", "/.claude/", NULL, judge_settings },
	{ ".mcp.json", NULL, NULL, judge_settings },
	{ "settings.json", "/.gemini/", NULL, judge_settings },
	{ "opencode.json", NULL, NULL, judge_settings },
	{ "opencode.jsonc", NULL, NULL, judge_settings },
	{ ".opencode", NULL, NULL, judge_settings },
	{ "mcp.json", "/.vscode/", NULL, judge_settings },
	{ "tasks.json", "/.vscode/", NULL, judge_settings },
	{ "settings.json", "/.vscode/", NULL, judge_settings },
	{ "mcp.json", "/.cursor/", NULL, judge_settings },
	{ "hooks.json", "/.cursor/", NULL, judge_settings },
	{ "hooks", "/.github/", NULL, judge_settings },
	{ ".codex", NULL, NULL, judge_settings },
	{ ".aider.conf.yml", NULL, NULL, judge_settings },
	{ NULL, NULL, NULL, judge_other },
};

static const struct row *find_row(const struct git_tree *tree, const struct name *name)
{
	char whole[GIT_LOOK_PATH_SIZE];
	const char *slash = strrchr(name->path, '/'), *leaf = slash ? slash + 1 : name->path;
	git_look_whole_path(tree, name->path, whole);
	const struct row *row = rows;
	for (; row->leaf; row++) {
		bool is_there = !row->within || strcasestr(whole, row->within) ||
		                (name->kind == NAME_JUDGED && !strcmp(row->within, GIT));
		if (is_there && !strcasecmp(row->leaf, leaf))
			break;
	}
	return row;
}

bool planted_is_repository(const struct git_tree *tree, const struct name *name)
{
	char path[GIT_LOOK_PATH_SIZE];
	struct names_stat stat;
	if (!name->is_directory)
		return false;
	git_look_whole_path(tree, name->path, path);
	return strcasestr(path, ".git/modules/") &&
	       snprintf(path, sizeof(path), "%s/HEAD", name->path) < (int)sizeof(path) &&
	       names_stat(tree->root_fd, path, &stat);
}

/* ---- Before ------------------------------------------------------------------------------------------------------ */

static int record_name(struct recording *recording, const struct name *name, struct cordon_error *err)
{
	const struct row *row = find_row(recording->look.tree, name);
	int status = 0;
	/* Nothing keeps a repository as it is, nor where it is: what could run in it is never what was there before. */
	if (planted_is_repository(recording->look.tree, name))
		return 0;
	if (name->is_directory)
		status = record_directory(recording, name->path, row->judge == judge_hooks);
	else if (!name->is_link && row->record)
		status = row->record(recording, name->path);
	return status < 0 ? fail_oom(err) : 0;
}

int planted_record(struct arena *arena, const struct git_trees *trees, const struct git_tree *tree,
                   struct planted_before *ret_before, struct cordon_error *err)
{
	const struct names *names = tree->names;
	struct planted_before before = { .names = names, .complete = true };
	struct recording recording = { .arena = arena, .look = { .trees = trees, .tree = tree }, .before = &before };
	recording.deadline_us = names_now_us() + RECORDED_US;
	int status = progress_record(&recording) < 0 ? fail_oom(err) : 0;
	for (size_t i = 0; i < names->count && status == 0; i++) {
		if (names->items[i].kind != NAME_PROTECTED && names->items[i].kind != NAME_JUDGED)
			continue;
		if (names_now_us() > recording.deadline_us) {
			before.complete = false;
			break;
		}
		status = record_name(&recording, &names->items[i], err);
	}
	git_look_end(&recording.look);
	if (status < 0)
		return -1;
	seen_sort(&before);
	*ret_before = before;
	return 0;
}

/* ---- After ------------------------------------------------------------------------------------------------------- */

static int judge(struct check *check, const struct name *name, bool old, struct cordon_error *err)
{
	const struct row *row = find_row(check->look.tree, name);
	bool is_file = !name->is_directory && !name->is_link;
	int status;
	check->of_owner = old;
	if (check->judged++ >= JUDGED_MAX || names_now_us() > check->deadline_us)
		status = condemn(check, name->path, TOO_MUCH);
	else if (!old && is_file && name->links > 1)
		status = condemn(check, name->path, "has a second name by which it can be changed");
	else if (name->kind == NAME_JUDGED && name->is_link && row->judge == judge_other)
		status = judge_link(check, name, old);
	else
		status = row->judge(check, name, old);
	return status < 0 ? fail_oom(err) : 0;
}

static bool is_git_file(const struct name *name)
{
	const char *slash = strrchr(name->path, '/');
	return !strcasecmp(slash ? slash + 1 : name->path, ".git");
}

/* One that is unchanged itself, and yet where it leads is no longer what it was. */
static int look_again(struct check *check, const struct name *name, struct cordon_error *err)
{
	if (name->is_link || check->look.trees->incomplete || !seen_find(check->before, name->path))
		return 0;
	check->of_owner = true;
	/* Nothing of the owner's is condemned because time ran out. */
	if (names_now_us() > check->deadline_us) {
		check->planted.unfinished = true;
		return 0;
	}
	if (git_look_leads_inside(&check->look, name->path))
		return 0;
	return condemn(check, name->path, "no longer leads to a repository that is guarded") < 0 ? fail_oom(err) : 0;
}

/* A directory that is unchanged itself: a file in it may have become one that can run. */
static int look_at_hooks(struct check *check, const struct name *name, const struct name *was, struct cordon_error *err)
{
	bool any;
	if (!name->is_directory || find_row(check->look.tree, name)->judge != judge_hooks)
		return 0;
	if (names_now_us() > check->deadline_us) {
		check->planted.unfinished = true;
		return 0;
	}
	check->of_owner = false;
	check->older_ns = was ? 0 : check->look.tree->names->since_ns;
	int status = condemn_hooks(check, name->path, &any);
	check->older_ns = 0;
	return status < 0 ? fail_oom(err) : 0;
}

/* In turn: what was there before, which must not drown in what is new; then that; then, when all configurations that
 * had to go are gone, the files that lead to them. */
enum turn { TURN_OLD, TURN_NEW, TURN_GIT_FILES, TURN_MAX };

static int take_turn(struct check *check, enum turn turn, const struct name *name, struct cordon_error *err)
{
	const struct name *was = names_get(check->before->names, name->kind, name->path);
	if (turn != (is_git_file(name) ? TURN_GIT_FILES :
	             was               ? TURN_OLD :
	                                 TURN_NEW) ||
	    git_look_is_anothers(&check->look, name))
		return 0;
	/* The owner's, which the search before the command did not come to. */
	if (!was && name->is_older)
		return look_at_hooks(check, name, was, err);
	bool same = was && was->device == name->device && was->inode == name->inode && was->ctime_ns == name->ctime_ns;
	if (!same || planted_is_repository(check->look.tree, name) ||
	    (name->is_directory && seen_entries_changed(check->before, check->look.tree->root_fd, name->path)))
		return judge(check, name, was, err);
	return turn == TURN_GIT_FILES ? look_again(check, name, err) : look_at_hooks(check, name, was, err);
}

int planted_check(struct arena *arena, const struct git_trees *trees, const struct git_tree *tree,
                  const struct planted_before *before, int quarantine_fd, struct planted *ret_planted,
                  struct cordon_error *err)
{
	const struct names *after = tree->names;
	struct check check = { .arena = arena,
		               .look = { .trees = trees, .tree = tree },
		               .quarantine_fd = quarantine_fd,
		               .before = before,
		               .deadline_us = names_now_us() + JUDGED_US,
		               .room = QUARANTINE_ROOM,
		               .owner_room = QUARANTINE_ROOM };
	int status = 0;
	for (enum turn turn = 0; turn < TURN_MAX; turn++)
		for (size_t i = 0; i < after->count && status == 0; i++)
			if (after->items[i].kind == NAME_PROTECTED || after->items[i].kind == NAME_JUDGED)
				status = take_turn(&check, turn, &after->items[i], err);
	if (status == 0 && progress_judge(&check) < 0)
		status = fail_oom(err);
	git_look_end(&check.look);
	if (status == 0)
		*ret_planted = check.planted;
	return status;
}

/* Judging what a command planted: see planted.h.
 *
 * One table says how each protected name is written down before and judged after. A name that is the same inode with the same
 * change time as before is not looked into, and names_find() has just asked for both: an unchanged repository costs no call here
 * but one for each hook in it, and those that tell whether it is one.
 * planted-ground.c does the same for directories that are no protected names, planted-unlock.c opens those that hide some. */
#include "session/planted.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/glob.h"
#include "session/names-look.h"
#include "session/names-table.h"
#include "session/planted-ground.h"
#include "session/planted-judge.h"
#include "session/planted-record.h"
#include "session/planted-seen.h"

/* No command that means well leaves as much. */
#define JUDGED_MAX 10000
#define JUDGED_US (2 * 1000 * 1000)
#define QUARANTINE_ROOM (16 * 1024 * 1024)      /* for copies: hooks and configurations are small */

/* The first row that matches. */
static const struct row {
	const char *glob;
	record_fn *record;              /* what is no directory and no link; or NULL */
	judge_fn *judge;
} rows[] = {
	{ "**/.git/**/hooks", NULL, judge_hooks },
	{ "**/.git/**/config", record_config, judge_config },
	{ "**/.git/**/config.worktree", record_config, judge_config },
	{ "**/.git/**/commondir", NULL, judge_common },
	{ "**/.git/**/gitdir", NULL, judge_back },
	{ "**/.git", record_git_file, judge_git_file },
	{ "**/.cordon.toml", NULL, judge_policy },
	{ "**", NULL, judge_other },
};

/* *globs are compiled when they are first needed. */
static const struct row *find_row(struct arena *arena, struct glob **globs, const struct git_tree *tree, const char *path,
                                  struct cordon_error *err)
{
	char whole[GIT_LOOK_PATH_SIZE];
	if (!*globs) {
		struct glob *compiled = arena_alloc(arena, ARRAY_SIZE(rows) * sizeof(*compiled));
		for (size_t i = 0; compiled && i < ARRAY_SIZE(rows); i++)
			if (glob_compile(arena, rows[i].glob, GLOB_FOLD_CASE, &compiled[i], err) < 0)
				return NULL;
		if (!compiled) {
			fail_oom(err);
			return NULL;
		}
		*globs = compiled;
	}
	size_t i = 0;
	git_look_whole_path(tree, path, whole);
	while (i < ARRAY_SIZE(rows) - 1 && !glob_match(&(*globs)[i], whole))
		i++;
	return &rows[i];
}

bool planted_is_repository(const struct git_tree *tree, const struct name *name)
{
	char path[GIT_LOOK_PATH_SIZE];
	struct names_stat stat;
	if (!name->is_directory)
		return false;
	git_look_whole_path(tree, name->path, path);
	return strcasestr(path, ".git/modules/") &&
	       snprintf(path, sizeof(path), "%s/HEAD", name->path) < (int)sizeof(path) && names_stat(tree->root_fd, path, &stat);
}

/* ---- Before ------------------------------------------------------------------------------------------------------ */

static int record_name(struct recording *recording, const struct name *name, struct cordon_error *err)
{
	const struct row *row = find_row(recording->arena, &recording->globs, recording->look.tree, name->path, err);
	int status = 0;
	if (!row)
		return -1;
	/* Nothing keeps a repository as it is, nor where it is: what could run in it is never what was there before. */
	if (planted_is_repository(recording->look.tree, name))
		return 0;
	if (name->is_directory)
		status = record_directory(recording, name->path, row->judge == judge_hooks);
	else if (!name->is_link && row->record)
		status = row->record(recording, name->path);
	return status < 0 ? fail_oom(err) : 0;
}

int planted_record(struct arena *arena, const struct git_trees *trees, const struct git_tree *tree, uint64_t budget_us,
                   struct planted_before *ret_before, struct cordon_error *err)
{
	const struct names *names = tree->names;
	struct planted_before before = { .names = names, .complete = true };
	struct recording recording = { .arena = arena, .look = { .trees = trees, .tree = tree }, .before = &before };
	uint64_t start_us = names_now_us();
	recording.deadline_us = start_us + JUDGED_US;
	int status = grounds_record(&recording) < 0 ? fail_oom(err) : 0;
	for (size_t i = 0; i < names->count && status == 0; i++) {
		if (names->items[i].kind != NAME_PROTECTED || names->items[i].late)
			continue;
		if (names_now_us() - start_us > budget_us || before.count >= SEEN_MAX) {
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
	const struct row *row = find_row(check->arena, &check->globs, check->look.tree, name->path, err);
	bool is_file = !name->is_directory && !name->is_link;
	int status;
	if (!row)
		return -1;
	if (check->judged++ >= JUDGED_MAX || names_now_us() > check->deadline_us)
		status = condemn(check, name->path, TOO_MUCH);
	else if (!old && is_file && name->links > 1)
		status = condemn(check, name->path, "has a second name by which it can be changed");
	else if (name->kind == NAME_LINK)
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
	if (name->is_link || !seen_find(check->before, name->path))
		return 0;
	bool too_much = names_now_us() > check->deadline_us;
	if (!too_much && git_look_leads_inside(&check->look, name->path))
		return 0;
	return condemn(check, name->path, too_much ? TOO_MUCH : "no longer leads to a repository that is guarded") < 0 ? fail_oom(err) : 0;
}

/* In turn: what was there before, which must not drown in what is new; then that; then, when all configurations that had
 * to go are gone, the files that lead to them. */
enum turn { TURN_OLD, TURN_NEW, TURN_GIT_FILES, TURN_MAX };

static int take_turn(struct check *check, enum turn turn, const struct name *name, struct cordon_error *err)
{
	const struct name *was = names_get(check->before->names, name->kind, name->path);
	if (was && was->late)
		was = NULL;
	if (turn != (is_git_file(name) ? TURN_GIT_FILES : was ? TURN_OLD : TURN_NEW) || git_look_is_anothers(&check->look, name))
		return 0;
	bool same = was && was->device == name->device && was->inode == name->inode && was->ctime_ns == name->ctime_ns;
	if (!same || planted_is_repository(check->look.tree, name) ||
	    (name->is_directory && seen_entries_changed(check->before, check->look.tree->root_fd, name->path)))
		return judge(check, name, was, err);
	return turn == TURN_GIT_FILES ? look_again(check, name, err) : 0;
}

int planted_check(struct arena *arena, const struct git_trees *trees, const struct git_tree *tree,
                  const struct planted_before *before, int quarantine_fd, struct planted *ret_planted, struct cordon_error *err)
{
	const struct names *after = tree->names;
	struct check check = { .arena = arena, .look = { .trees = trees, .tree = tree }, .quarantine_fd = quarantine_fd, .before = before,
	                       .deadline_us = names_now_us() + JUDGED_US, .room = QUARANTINE_ROOM };
	int status = 0;
	for (enum turn turn = 0; turn < TURN_MAX; turn++)
		for (size_t i = 0; i < after->count && status == 0; i++)
			if (after->items[i].kind == NAME_PROTECTED || after->items[i].kind == NAME_LINK)
				status = take_turn(&check, turn, &after->items[i], err);
	if (status == 0 && grounds_judge(&check) < 0)
		status = fail_oom(err);
	git_look_end(&check.look);
	if (status == 0)
		*ret_planted = check.planted;
	return status;
}

/* The end of step 5: what a command left behind under protected names, and the record that it is compared with
 * (paths/planted/judged.h).
 *
 * Every known directory is checked, and changed ones are read again. Directories that the command closed are opened,
 * and directories that only a glob hides are searched. What could not be checked nevertheless becomes a denial that
 * names it, and is checked before the next command. A tree that fails does not keep others from being judged, nor the
 * command, which ran, from having its result. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "paths/trees.h"
#include "paths/trees-judge.h"
#include "session/beneath.h"
#include "paths/index/look.h"
#include "paths/planted/quarantine.h"

/* For opening what is closed, as deep as it nests: more than anything that means well needs. */
#define OPENING_US (2 * 1000 * 1000)
/* For following masked links once more. */
#define LINKS_US (2 * 1000 * 1000)

#define WHAT_MAX 4096

static int tell(struct judging *judging, const char *path, const char *note)
{
	char what[WHAT_MAX + 1];
	snprintf(what, sizeof(what), "%s%s%s", judging->tree->place.path, *path ? "/" : "", path);
	if (judging->earlier)
		note = arena_printf(&judging->arena, "left by an earlier command: %s", note);
	return note ? denials_add(judging->trees->denials, judging->trees->arena, CORDON_WALL_PROTECTED, what, note,
	                          "") :
	              -1;
}

/* The names, in what could be opened. */
static int find_opened(struct judging *judging, struct names_search search, struct arena *arena,
                       struct names *ret_names, struct cordon_error *err)
{
	const struct tree *tree = judging->tree;
	do {
		arena_free(arena);
		search.keep.mounts = judging->trees->facts.mounts(judging->trees->facts.mounts_arg);
		planted_unlock_root(tree->fd);
		if (tree_names_find(judging->trees, arena, tree, &search, ret_names, err) < 0)
			return -1;
	} while (names_now_us() < judging->deadline_us && planted_unlock(tree->fd, &tree->before, ret_names));
	return 0;
}

/* `names` are those that were found. */
static int tell_unseen(struct judging *judging, const struct names *names)
{
	judging->complete &= !names->unfinished;
	if (names->note && tell(judging, "", names->note) < 0)
		return -1;
	if (names->too_many &&
	    tell(judging, "", "more names to be judged than can be: remove what the command made") < 0)
		return -1;
	for (size_t i = 0; i < names->count; i++)
		if (names->items[i].is_closed && !planted_was_covered(&judging->tree->before, &names->items[i]) &&
		    tell(judging, names->items[i].path, "closed by the command, and could not be looked into") < 0)
			return -1;
	return 0;
}

/* What is masked is not judged, and a command may make what a glob would have masked: then protected names are looked
 * for without the masks. */
static int look_behind_masks(struct judging *judging, struct cordon_error *err)
{
	const struct names_search search = { .budget_us = NAMES_COMPLETE };
	struct names *after = &judging->after, all;
	bool fresh = false;
	for (size_t i = 0; i < after->count && after->items[i].kind == NAME_MASKED && !fresh; i++)
		fresh = !planted_was_covered(&judging->tree->before, &after->items[i]);
	if (!fresh)
		return 0;
	if (find_opened(judging, search, &judging->behind, &all, err) < 0)
		return -1;
	size_t kept = 0;
	for (size_t i = 0; i < all.count; i++)
		if (!planted_was_covered(&judging->tree->before, &all.items[i]))
			all.items[kept++] = all.items[i];
	all.count = kept;
	return tell_unseen(judging, &all) < 0 || names_add(&judging->arena, after, &all) < 0 ? fail_oom(err) : 0;
}

/* What is harmful comes first, lest it be left out. */
static int tell_planted(struct judging *judging, const struct planted *planted)
{
	for (int harmful = 1; harmful >= 0; harmful--)
		for (size_t i = 0; i < planted->count; i++)
			if (planted->items[i].harmful == harmful &&
			    (harmful || !judged_is_told(&judging->record, planted->items[i].path)) &&
			    tell(judging, planted->items[i].path, planted->items[i].note) < 0)
				return -1;
	return 0;
}

/* Looks again for names. */
static int find_names(struct judging *judging, struct cordon_error *err)
{
	struct names_search search = { true, trees_keep(judging->trees), NAMES_COMPLETE };
	search.keep.since_ns = judging->since_ns;
	if (find_opened(judging, search, &judging->arena, &judging->after, err) < 0)
		return -1;
	if (tell_unseen(judging, &judging->after) < 0)
		return fail_oom(err);
	return look_behind_masks(judging, err);
}

/* Judges what is new or changed under a protected one. `all` are all trees, `git` is this one. */
static int judge_names(struct judging *judging, const struct git_trees *all, const struct git_tree *git,
                       struct cordon_error *err)
{
	const struct planted_before *before = &judging->record.planted;
	struct planted *planted = &judging->planted;
	if (planted_check(&judging->arena, all, git, before, PLANTED_LOOK, planted, err) < 0)
		return -1;
	if (planted->harmful) {
		const struct trees *trees = judging->trees;
		unsigned dropped = 0;
		auto_close int place = quarantine_open(trees->facts.data_dir, trees->facts.audit_id, &dropped);
		if (planted_check(&judging->arena, all, git, before, place < 0 ? PLANTED_NO_QUARANTINE : place, planted,
		                  err) < 0)
			return -1;
		if (dropped && tell(judging, "", "quarantine was full: the oldest of what it held was removed") < 0)
			return fail_oom(err);
	}
	judging->complete &= !planted->unfinished;
	return tell_planted(judging, planted) < 0 ? fail_oom(err) : 0;
}

static int tell_unjudged(struct judging *judging, const struct cordon_error *err)
{
	char note[sizeof(err->reason) + 64];
	snprintf(note, sizeof(note), "what the command left could not be judged: %s", err->reason);
	judging->complete = false;
	return tell(judging, "", note);
}

int judge_trees(struct judging *all, struct git_tree *items, size_t count, bool incomplete)
{
	const struct git_trees trees = { items, count, incomplete };
	struct cordon_error err = { 0 };
	int status = 0;
	for (size_t i = 0; i < count; i++) {
		all[i].deadline_us = names_now_us() + OPENING_US;
		all[i].complete = true;
		all[i].found = find_names(&all[i], &err) == 0;
		if (!all[i].found && tell_unjudged(&all[i], &err) < 0)
			status = -1;
		items[i] = (struct git_tree){ all[i].tree->fd, all[i].tree->place.path, &all[i].after };
	}
	for (size_t i = 0; i < count; i++)
		if (all[i].found && judge_names(&all[i], &trees, &items[i], &err) < 0 &&
		    tell_unjudged(&all[i], &err) < 0)
			status = -1;
	return status;
}

/* Where nothing holds a link, or another command took that away, the next one does not know what is a secret. */
static int report_lost_links(struct trees *trees)
{
	const struct places *links = &trees->links;
	uint64_t deadline_us = names_now_us() + LINKS_US;
	struct arena arena = { 0 };
	int status = 0;
	for (size_t i = 0; i < links->count && status == 0; i++) {
		const struct place *was = &links->items[i];
		struct place now = { 0 };
		struct strings way;
		bool led = names_now_us() < deadline_us &&
		           beneath_follow(&arena, was->alias, &trees->roots, &now, &way) == 0;
		if (!led || strcmp(now.path, was->path))
			status = denials_add(trees->denials, trees->arena, CORDON_WALL_MASKED, was->alias,
			                        "no longer leads to what it did, which is not masked any more", "");
		arena_free(&arena);
	}
	return status;
}

int trees_judge(struct trees *trees)
{
	size_t count = 0, most = trees->count;
	struct judging *all = arena_alloc(trees->arena, most * sizeof(*all));
	struct git_tree *items = arena_alloc(trees->arena, most * sizeof(*items));
	if (!all || !items)
		return -1;
	for (size_t i = 0; i < most; i++) {
		struct tree *tree = &trees->items[i];
		if (!tree->writable)
			continue;
		planted_forget_replaced(tree->fd, &tree->before);
		all[count++] = (struct judging){ .trees = trees, .tree = tree };
	}
	judge_compare_with(all, count);
	int status = judge_trees(all, items, count, false);
	judge_settle(all, count);
	for (size_t i = 0; i < count; i++)
		judging_free(&all[i]);
	return report_lost_links(trees) < 0 || own_files_judge(trees) < 0 ? -1 : status;
}

/* The record that what a command left is compared with, from the start of a command to its end: see
 * paths/planted/judged.h.
 *
 * The records of all trees that a command may write are locked together, in the order of their names, so that two
 * commands never wait for each other. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "paths/trees-judge.h"
#include "paths/index/contents.h"
#include "paths/planted/quarantine.h"

static int compare_hashes(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* Names that came while the command ran. True: there are some that the record did not have. */
static bool add_made(struct judging *judging)
{
	struct judged_record *record = &judging->record;
	const struct names *after = &judging->after, *before = &judging->tree->before;
	size_t count = record->made_count;
	uint64_t *made = arena_alloc(&judging->arena, (count + after->count + 1) * sizeof(*made));
	if (!made)
		return false;
	if (count)
		memcpy(made, record->made, count * sizeof(*made));
	for (size_t i = 0; i < after->count && count < JUDGED_MADE_MAX; i++) {
		const struct name *name = &after->items[i];
		if (name->kind != NAME_JUDGED && !names_get(before, name->kind, name->path) &&
		    !judged_is_made(record, judging->tree->fd, name))
			made[count++] = judged_hash(judging->tree->fd, name);
	}
	if (count == record->made_count)
		return false;
	qsort(made, count, sizeof(*made), compare_hashes);
	record->made = made;
	record->made_count = count;
	return true;
}

/* What was named as kept, so that a command that runs beside this one does not name it again. */
static bool add_told(struct judging *judging)
{
	struct judged_record *record = &judging->record;
	const struct planted *planted = &judging->planted;
	size_t count = record->told_count;
	uint64_t *told = arena_alloc(&judging->arena, (count + planted->count + 1) * sizeof(*told));
	if (!told)
		return false;
	if (count)
		memcpy(told, record->told, count * sizeof(*told));
	for (size_t i = 0; i < planted->count && count < JUDGED_MADE_MAX; i++)
		if (!planted->items[i].harmful && !judged_is_told(record, planted->items[i].path))
			told[count++] = judged_hash_path(planted->items[i].path);
	if (count == record->told_count)
		return false;
	qsort(told, count, sizeof(*told), compare_hashes);
	record->told = told;
	record->told_count = count;
	return true;
}

/* Those that are gone are forgotten. */
static void drop_made(struct arena *arena, struct judged_record *record, const struct tree *tree)
{
	const struct names *names = &tree->before;
	size_t present = 0, kept = 0;
	uint64_t *hashes = record->made_count ? arena_alloc(arena, (names->count + 1) * sizeof(*hashes)) : NULL;
	if (!hashes)
		return;
	for (size_t i = 0; i < names->count; i++)
		if (names->items[i].kind != NAME_JUDGED)
			hashes[present++] = judged_hash(tree->fd, &names->items[i]);
	qsort(hashes, present, sizeof(*hashes), compare_hashes);
	for (size_t i = 0; i < record->made_count; i++)
		if (present && bsearch(&record->made[i], hashes, present, sizeof(*hashes), compare_hashes))
			record->made[kept++] = record->made[i];
	record->made_count = kept;
}

/* ---- Before a command ------------------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
	return judged_compare((*(struct tree *const *)a)->judged, (*(struct tree *const *)b)->judged);
}

/* The writable trees that have a record, in the order in which they are locked. NULL when memory is short. */
static struct tree **recorded_trees(struct trees *trees, size_t *ret_count)
{
	struct tree **recorded = arena_alloc(trees->arena, (trees->count + 1) * sizeof(struct tree *));
	size_t count = 0;
	for (size_t i = 0; recorded && i < trees->count; i++)
		if (trees->items[i].judged)
			recorded[count++] = &trees->items[i];
	if (count)
		qsort(recorded, count, sizeof(struct tree *), by_name);
	*ret_count = count;
	return recorded;
}

/* A directory that is granted twice has one record. */
static bool is_known(const struct trees *trees, const struct judged *judged)
{
	for (size_t i = 0; i < trees->count; i++) {
		const struct judged *other = trees->items[i].judged;
		if (other && !judged_compare(other, judged))
			return true;
	}
	return false;
}

static int open_records(struct trees *trees, struct cordon_error *err)
{
	for (size_t i = 0; i < trees->count; i++) {
		struct tree *tree = &trees->items[i];
		struct judged *judged;
		/* A directory that is made for one command is searched once. */
		if (!tree->writable || (trees->facts.disposable && tree->fd == trees->facts.workspace_fd))
			continue;
		if (judged_open(trees->facts.data_dir, tree->fd, tree->place.path, &judged, err) < 0)
			return -1;
		if (is_known(trees, judged))
			judged_free(judged);
		else
			tree->judged = judged;
	}
	return 0;
}

/* An earlier command's end was not judged: its cordon died, or there was not the time. */
static int judge_earlier(struct trees *trees, struct tree **recorded, size_t count, struct cordon_error *err)
{
	struct judging *all = arena_alloc(trees->arena, (count + 1) * sizeof(*all));
	struct git_tree *items = arena_alloc(trees->arena, (count + 1) * sizeof(*items));
	size_t pending = 0;
	if (!all || !items)
		return fail_oom(err);
	for (size_t i = 0; i < count; i++) {
		struct judging *judging = &all[pending];
		*judging = (struct judging){ .trees = trees, .tree = recorded[i], .earlier = true };
		if (judged_is_pending(recorded[i]->judged) && judged_is_alone(recorded[i]->judged) &&
		    judged_load(recorded[i]->judged, &judging->kept, &judging->record))
			pending++;
		else
			arena_free(&judging->kept);
	}
	for (size_t i = 0; i < pending; i++)
		all[i].record.planted.names = &all[i].record.names;
	int status = pending ? judge_trees(all, items, pending, true) : 0;
	for (size_t i = 0; i < pending; i++) {
		all[i].tree->unsettled = !all[i].complete;
		judging_free(&all[i]);
	}
	return status < 0 ? fail_oom(err) : 0;
}

int trees_open_records(struct trees *trees, struct cordon_error *err)
{
	size_t count;
	if (trees->facts.dry)
		return 0;
	if (open_records(trees, err) < 0)
		return -1;
	struct tree **recorded = recorded_trees(trees, &count);
	if (!recorded)
		return fail_oom(err);
	for (size_t i = 0; i < count; i++)
		if (judged_lock(recorded[i]->judged, err) < 0)
			return -1;
	return judge_earlier(trees, recorded, count, err);
}

/* What is there now is its owner's, unless a command runs that may have made it. */
static int take_record(struct trees *trees, struct tree *tree, struct cordon_error *err)
{
	struct judged_record record;
	if (tree->unsettled || !judged_is_alone(tree->judged))
		return 0;
	if (!judged_load(tree->judged, trees->arena, &record))
		record = (struct judged_record){ 0 };
	drop_made(trees->arena, &record, tree);
	record.names = tree->before;
	record.planted = tree->planted;
	record.told_count = 0;
	if (judged_store(tree->judged, &record, err) < 0)
		return -1;
	judged_taken(tree->judged);
	return 0;
}

int trees_begin(struct trees *trees, struct cordon_error *err)
{
	if (trees->facts.dry)
		return 0;
	for (size_t i = 0; i < trees->count; i++) {
		struct tree *tree = &trees->items[i];
		if (!tree->judged)
			continue;
		if (take_record(trees, tree, err) < 0 || judged_begin(tree->judged, err) < 0)
			return -1;
		judged_unlock(tree->judged);
	}
	return quarantine_reserve(trees->facts.data_dir, err);
}

void trees_free(struct trees *trees, bool started)
{
	struct cordon_error err;
	if (!trees)
		return;
	for (size_t i = 0; i < trees->count; i++) {
		struct tree *tree = &trees->items[i];
		/* A command that did not start left nothing. */
		if (tree->judged && !started && judged_lock(tree->judged, &err) == 0)
			judged_end(tree->judged, !tree->unsettled);
		judged_free(tree->judged);
		contents_free(tree->contents);
		if (tree->fd != trees->facts.workspace_fd)
			close(tree->fd);
	}
	trees->count = 0;
	cleanup_close(&trees->names.fd);
}

/* ---- After it --------------------------------------------------------------------------------------------------- */

static struct judging *judging_of(struct judging *all, size_t count, const struct tree *tree)
{
	for (size_t i = 0; i < count; i++)
		if (all[i].tree == tree)
			return &all[i];
	return NULL;
}

void judge_compare_with(struct judging *all, size_t count)
{
	size_t recorded = 0;
	struct tree **trees = count ? recorded_trees(all->trees, &recorded) : NULL;
	for (size_t i = 0; i < count; i++)
		all[i].record = (struct judged_record){ .names = all[i].tree->before, .planted = all[i].tree->planted };
	for (size_t i = 0; trees && i < recorded; i++) {
		struct cordon_error err;
		struct judged_record record;
		struct judging *judging = judging_of(all, count, trees[i]);
		judging->locked = judged_lock(trees[i]->judged, &err) == 0;
		judging->since_ns = judging->locked ? judged_since_ns(trees[i]->judged) : 0;
		if (judging->locked && judged_load(trees[i]->judged, &judging->kept, &record))
			judging->record = record;
	}
	for (size_t i = 0; i < count; i++)
		all[i].record.planted.names = &all[i].record.names;
}

void judge_settle(struct judging *all, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct judging *judging = &all[i];
		struct cordon_error err;
		if (!judging->locked)
			continue;
		bool changed = add_made(judging);
		if (!judged_is_alone(judging->tree->judged))
			changed |= add_told(judging);
		/* Where it cannot be written, some is named again. */
		if (changed)
			(void)!judged_store(judging->tree->judged, &judging->record, &err);
		judged_end(judging->tree->judged, judging->complete);
		judged_unlock(judging->tree->judged);
	}
}

void judging_free(struct judging *judging)
{
	arena_free(&judging->arena);
	arena_free(&judging->behind);
	arena_free(&judging->kept);
}

/* Setting an agent up, and undoing it, by a record: see setup.h. */
#include "door/setup/setup.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "base/visible.h"
#include "door/setup/file.h"

/* ---- the record
 * ------------------------------------------------------------------------------------------------------ */

/* An array of objects: path, before, after, edits. NULL: there is none. */
static int read_record(struct arena *arena, const char *path, json_t **ret_files, struct cordon_error *err)
{
	json_t *record;
	if (setup_record(arena, path, &record, err) < 0)
		return -1;
	*ret_files = json_incref(json_object_get(record, "files"));
	json_decref(record);
	return 0;
}

/* ---- one file
 * -------------------------------------------------------------------------------------------------------- */

/* The file without what the record says was written. 1: some of that calls another program now, and stays. */
static int undo_file(struct arena *arena, json_t *recorded, const char *text, const char **ret_text,
                     struct cordon_error *err)
{
	const char *file = json_string_value(json_object_get(recorded, "path"));
	const char *before = json_string_value(json_object_get(recorded, "before")),
		   *after = json_string_value(json_object_get(recorded, "after"));
	json_t *edits = json_object_get(recorded, "edits");
	struct edit edit;
	int stays = 0;
	if (text && after && !strcmp(text, after)) {
		*ret_text = before;
		return 0;
	}
	for (size_t i = json_array_size(edits); i-- > 0;) {
		if (!setup_edit_recorded(json_array_get(edits, i), file, &edit))
			return fail(err, CORDON_E_CONFIG_INVALID, 0, file, "cordon's record of this file is damaged");
		int undone = setup_edit_undo(arena, &edit, before, text, &text, err);
		if (undone < 0 && !*err->subject)
			snprintf(err->subject, sizeof(err->subject), "%s", file);
		if (undone < 0)
			return -1;
		stays |= undone;
	}
	*ret_text = text;
	return stays;
}

static json_t *find_recorded(json_t *files, const char *path)
{
	size_t index;
	json_t *each;
	json_array_foreach(files, index, each) {
		const char *name = json_string_value(json_object_get(each, "path"));
		if (name && !strcmp(name, path))
			return each;
	}
	return NULL;
}

struct change {
	const char *path, *beneath, *now, *then;
};

struct changes {
	struct change items[EDITS_MAX * 2];
	size_t count;
};

static int add_change(struct changes *changes, struct change change, struct cordon_error *err)
{
	if (changes->count == ARRAY_SIZE(changes->items))
		return fail(err, CORDON_E_INTERNAL, 0, change.path, "the record has too many files");
	changes->items[changes->count++] = change;
	return 0;
}

static bool is_changed(const struct change *change)
{
	return !change->now != !change->then || (change->now && strcmp(change->now, change->then) != 0);
}

/* Directories that were made for it, then and now: the innermost first. */
static json_t *made_for(struct arena *arena, const char *path, const char *beneath, json_t *recorded,
                        struct cordon_error *err)
{
	struct strings missing = { 0 };
	size_t index;
	json_t *each, *made = json_array();
	if (setup_missing(arena, path, beneath, &missing, err) < 0) {
		json_decref(made);
		return NULL;
	}
	for (size_t i = 0; i < missing.count; i++)
		json_array_append_new(made, json_string(missing.items[i]));
	json_array_foreach(json_object_get(recorded, "made"), index, each)
		if (!json_string_value(each) || strings_find(&missing, json_string_value(each)) < 0)
			json_array_append(made, each);
	return made;
}

/* What setup made on the way to the files, as far as it is empty. */
static void remove_made(json_t *undone)
{
	size_t index, number;
	json_t *file, *each;
	json_array_foreach(undone, index, file) {
		const char *path = json_string_value(json_object_get(file, "path")),
			   *beneath = setup_beneath_of(file, path);
		json_array_foreach(json_object_get(file, "made"), number, each) {
			const char *directory = json_string_value(each);
			bool is_within = path && directory && path_within(path, directory);
			if (is_within && (!beneath || (strcmp(directory, beneath) && path_within(directory, beneath))))
				setup_remove_directory(directory, beneath);
		}
	}
}

/* All edits of one file; *at is moved behind them. Adds to `files` what is to be recorded. */
static int plan_file(struct arena *arena, const struct plan *plan, size_t *at, json_t *recorded, json_t *files,
                     struct changes *changes, struct cordon_error *err)
{
	const char *path = plan->edits[*at].file, *beneath = plan->edits[*at].beneath, *now, *base, *text;
	if (setup_read(arena, path, beneath, &now, err) < 0)
		return -1;
	base = now;
	if (recorded && undo_file(arena, recorded, now, &base, err) < 0)
		return -1;
	json_t *edits = json_array();
	for (text = base; *at < plan->count && !strcmp(plan->edits[*at].file, path); ++*at) {
		if (setup_edit_apply(arena, &plan->edits[*at], text, &text, err) < 0) {
			json_decref(edits);
			if (!*err->subject)
				snprintf(err->subject, sizeof(err->subject), "%s", path);
			return -1;
		}
		json_array_append_new(edits, setup_edit_to_json(&plan->edits[*at]));
	}
	json_t *made = made_for(arena, path, beneath, recorded, err);
	if (!made) {
		json_decref(edits);
		return -1;
	}
	json_t *entry = json_pack("{s:s, s:s*, s:s?, s:s, s:o, s:o}", "path", path, "beneath", beneath, "before", base,
	                          "after", text, "edits", edits, "made", made);
	if (!entry || json_array_append_new(files, entry) < 0)
		return fail_oom(err);
	return add_change(changes, (struct change){ path, beneath, now, text }, err);
}

/* ---- the whole
 * ------------------------------------------------------------------------------------------------------- */

static int carry_out(struct arena *arena, const struct changes *changes, FILE *out, bool dry_run,
                     struct cordon_error *err)
{
	for (size_t i = 0; i < changes->count; i++) {
		const struct change *change = &changes->items[i];
		if (!is_changed(change))
			continue;
		if (dry_run) {
			setup_diff(out, change->path, change->now, change->then);
			continue;
		}
		if (setup_write(arena, change->path, change->beneath, change->then, err) < 0)
			return -1;
		fputs(!change->then ? "removed " : change->now ? "changed " : "wrote ", out);
		visible_print(out, change->path, strlen(change->path));
		fputc('\n', out);
	}
	return 0;
}

static int undo_recorded(struct arena *arena, json_t *recorded, struct changes *changes, struct cordon_error *err)
{
	const char *path = json_string_value(json_object_get(recorded, "path")),
		   *beneath = setup_beneath_of(recorded, path), *now, *then;
	if (setup_read(arena, path, beneath, &now, err) < 0)
		return -1;
	int undone = undo_file(arena, recorded, now, &then, err);
	return undone < 0 || add_change(changes, (struct change){ path, beneath, now, then }, err) < 0 ? -1 : undone;
}

static int check_recorded(json_t *files, struct cordon_error *err)
{
	size_t index;
	json_t *each;
	json_array_foreach(files, index, each) {
		const char *path = json_string_value(json_object_get(each, "path"));
		if (!path || *path != '/' || (json_object_get(each, "beneath") && !setup_beneath_of(each, path)))
			return fail(err, CORDON_E_CONFIG_INVALID, 0, NULL,
			            "cordon's record of what it wrote is damaged");
	}
	return 0;
}

/* What an earlier setup wrote and this one does not. Adds to `undone` what was. */
static int undo_rest(struct arena *arena, json_t *old, json_t *files, json_t *undone, struct changes *changes,
                     struct cordon_error *err)
{
	size_t index;
	json_t *each;
	if (check_recorded(old, err) < 0)
		return -1;
	json_array_foreach(old, index, each) {
		if (find_recorded(files, json_string_value(json_object_get(each, "path"))))
			continue;
		if (undo_recorded(arena, each, changes, err) < 0)
			return -1;
		json_array_append(undone, each);
	}
	return 0;
}

static int write_record(struct arena *arena, const char *path, const struct plan *plan, json_t *files,
                        struct cordon_error *err)
{
	json_t *record = json_pack("{s:i, s:s, s:b, s:s, s:O}", "version", 1, "agent", agents[plan->agent].name,
	                           "mcp_only", plan->mcp_only, "program", plan->program, "files", files);
	auto_free char *text = record ? json_dumps(record, JSON_INDENT(1)) : NULL;
	json_decref(record);
	return text ? setup_write(arena, path, NULL, text, err) : fail_oom(err);
}

static int set_up(struct arena *arena, const struct plan *plan, const struct setup_options *options, const char *record,
                  json_t *old, FILE *out, struct cordon_error *err)
{
	struct changes changes = { 0 };
	json_t *files = json_array(), *undone = json_array();
	int result = 0;
	for (size_t at = 0; at < plan->count && result == 0;)
		result = plan_file(arena, plan, &at, find_recorded(old, plan->edits[at].file), files, &changes, err);
	if (result == 0)
		result = undo_rest(arena, old, files, undone, &changes, err);
	bool changed = false;
	for (size_t i = 0; i < changes.count; i++)
		changed |= is_changed(&changes.items[i]);
	if (result == 0 && !options->dry_run && (changed || !old))
		result = write_record(arena, record, plan, files, err);
	if (result == 0 && !options->dry_run && plan->tmp)
		result = agent_tmp_make(plan->tmp, err);
	if (result == 0)
		result = carry_out(arena, &changes, out, options->dry_run, err);
	if (result == 0 && !options->dry_run)
		remove_made(undone);
	json_decref(undone);
	json_decref(files);
	if (result == 0 && !changed)
		fprintf(out, "nothing to change\n");
	return result;
}

static void say_of(FILE *out, const char *before, json_t *recorded, const char *after)
{
	const char *path = json_string_value(json_object_get(recorded, "path"));
	fputs(before, out);
	visible_print(out, path, strlen(path));
	fprintf(out, "%s\n", after);
}

/* Only of files whose entries could not be undone. */
static int keep_record(struct arena *arena, const char *path, json_t *kept, struct cordon_error *err)
{
	json_t *record;
	if (!json_array_size(kept))
		return setup_write(arena, path, NULL, NULL, err);
	if (setup_record(arena, path, &record, err) < 0)
		return -1;
	json_object_set(record, "files", kept);
	auto_free char *text = json_dumps(record, JSON_INDENT(1));
	json_decref(record);
	return text ? setup_write(arena, path, NULL, text, err) : fail_oom(err);
}

/* Each file by itself; *ret_first is the first reason why one could not be, and 1 is returned then. */
static int undo_each(struct arena *arena, json_t *old, json_t *undone, json_t *kept, struct changes *changes, FILE *out,
                     struct cordon_error *ret_first)
{
	size_t index;
	json_t *each;
	json_array_foreach(old, index, each) {
		struct cordon_error err;
		int result = undo_recorded(arena, each, changes, &err);
		if (result < 0 && !json_array_size(kept))
			*ret_first = err;
		if (result < 0)
			say_of(out, "kept ", each, ": cordon's entries in it cannot be undone; its record is kept");
		else if (result > 0)
			say_of(out, "", each, ": an entry that setup wrote was changed to something else, and stays");
		json_array_append(result < 0 ? kept : undone, each);
	}
	return json_array_size(kept) > 0;
}

static int undo(struct arena *arena, const struct setup_options *options, const char *record, json_t *old, FILE *out,
                struct cordon_error *err)
{
	struct changes changes = { 0 };
	struct cordon_error first;
	if (!old) {
		fprintf(out, "nothing to undo: this agent was not set up\n");
		return 0;
	}
	if (check_recorded(old, err) < 0)
		return -1;
	json_t *undone = json_array(), *kept = json_array();
	bool left = undo_each(arena, old, undone, kept, &changes, out, &first);
	int result = carry_out(arena, &changes, out, options->dry_run, err);
	if (result == 0 && !options->dry_run) {
		remove_made(undone);
		result = keep_record(arena, record, kept, err);
	}
	json_decref(undone);
	json_decref(kept);
	if (result == 0 && left) {
		*err = first;
		return -1;
	}
	return result;
}

int setup_agent(struct arena *arena, enum agent_id agent, const struct setup_options *options,
                const struct setup_paths *paths, FILE *out, struct cordon_error *err)
{
	struct plan plan = { 0 };
	json_t *old = NULL;
	const char *record = setup_record_path(arena, agent, paths->home);
	if (!record)
		return fail_oom(err);
	if (read_record(arena, record, &old, err) < 0 ||
	    (!options->undo && plan_make(arena, agent, options->mcp_only, paths, &plan, err) < 0)) {
		json_decref(old);
		return -1;
	}
	int result = 0;
	if (options->undo)
		result = undo(arena, options, record, old, out, err);
	else if (!plan.is_by_hand)
		result = set_up(arena, &plan, options, record, old, out, err);
	if (result == 0 && !options->undo && plan.is_by_hand)
		fprintf(out, "%s\n", plan.covered);
	else if (result == 0 && !options->undo)
		fprintf(out, "in cordon: %s\nnot in cordon: %s\n", plan.covered, plan.open);
	plan_free(&plan);
	json_decref(old);
	return result;
}

/* ---- for a copy of the settings
 * ---------------------------------------------------------------------------------------- */

json_t *setup_written(struct arena *arena, const char *agent, const char *home)
{
	struct cordon_error err;
	json_t *files = NULL;
	enum agent_id id = agent_named(agent);
	const char *record = id == AGENT_MAX ? NULL : setup_record_path(arena, id, home);
	return record && read_record(arena, record, &files, &err) == 0 ? files : NULL;
}

const char *setup_without(struct arena *arena, json_t *written, const char *path, const char *text)
{
	struct cordon_error err;
	json_t *recorded = find_recorded(written, path);
	const char *rest = text;
	return recorded && undo_file(arena, recorded, text, &rest, &err) < 0 ? NULL : rest;
}

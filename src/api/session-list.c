/* Sessions, public calls: one shown, all listed. Neither makes or changes anything. */
#include "api/session-json.h"

#include <stdlib.h>
#include <string.h>

#include "api/policy.h"
#include "base/json.h"
#include "session/session-row.h"
#include "walk.h"

int cordon_session_show(struct cordon *cordon, const char *id, char **ret_json, struct cordon_error *err)
{
	struct arena arena = { 0 };
	struct session_record record;
	const struct config *config;
	bool found = false;
	if (call_check(err, cordon, id, ret_json) < 0 || policy_take(cordon, id, &config, err) < 0)
		return -1;
	int result = registry_read(&arena, cordon->data_dir, id, &record, &found, err);
	if (result == 0 && !found)
		result = registry_missing(id, err);
	if (result == 0)
		result = session_take_whole(cordon, config, &arena, &record, ret_json, err);
	config_unref(config);
	arena_free(&arena);
	return result;
}

struct listing {
	struct arena arena;
	struct session_record *records;         /* without an id: damaged, and `workspace` is its directory */
	size_t count, capacity;
	const char *data_dir;
	bool failed;
};

static int copy_text(struct arena *arena, const char *text, const char **ret_text)
{
	*ret_text = text ? arena_strdup(arena, text) : NULL;
	return *ret_text || !text ? 0 : -1;
}

/* What is listed of it. */
static int copy_record(struct arena *arena, const struct session_record *record, struct session_record *copy)
{
	*copy = (struct session_record){ .state = record->state, .grant_count = record->grant_count,
	                                 .denial_count = record->denial_count, .is_newer = record->is_newer,
	                                 .idle_expiry_s = record->idle_expiry_s };
	return copy_text(arena, record->id, &copy->id) < 0 || copy_text(arena, record->why, &copy->why) < 0 ||
	       copy_text(arena, record->workspace, &copy->workspace) < 0 ||
	       copy_text(arena, record->own_root, &copy->own_root) < 0 ||
	       copy_text(arena, record->created, &copy->created) < 0 ||
	       copy_text(arena, record->labels, &copy->labels) < 0 ||
	       copy_text(arena, record->changed, &copy->changed) < 0 ? -1 : 0;
}

static int add_listed(void *arg, const struct session_record *record, const char *name)
{
	struct listing *listing = arg;
	if (listing->count == listing->capacity) {
		size_t capacity = listing->capacity ? 2 * listing->capacity : 64;
		struct session_record *grown = realloc(listing->records, capacity * sizeof(*grown));
		listing->failed = !grown;
		if (!grown)
			return 1;
		listing->records = grown;
		listing->capacity = capacity;
	}
	struct session_record *copy = &listing->records[listing->count];
	const struct session_record damaged = { .created = "", .changed = "",
		.workspace = record ? NULL : arena_printf(&listing->arena, "%s/sessions/%s", listing->data_dir, name) };
	listing->failed = copy_record(&listing->arena, record ? record : &damaged, copy) < 0;
	listing->count += !listing->failed;
	return listing->failed;
}

/* The newest first, the damaged last. */
static int by_age(const void *a, const void *b)
{
	const struct session_record *first = a, *second = b;
	int order = strcmp(second->created, first->created);
	return order || !first->id || !second->id ? order : strcmp(first->id, second->id);
}

/* Of what a newer version made only this is known; it can be ended and removed. */
static void write_newer(struct json *json, const struct cordon *cordon, struct arena *arena,
                        const struct session_record *record)
{
	json_object_begin(json);
	json_key_string(json, "id", record->id);
	json_key_string(json, "state", "newer");
	session_write_workspace(json, cordon, arena, record);
	json_object_end(json);
}

static void end_if_idle(const struct cordon *cordon, struct arena *arena, struct session_record *record)
{
	struct cordon_error untold;
	struct session_record ended;
	bool is_over = false, found;
	if (record->state != SESSION_ENDED && session_is_idle(cordon->data_dir, record->id, record->idle_expiry_s) &&
	    session_row_end_idle(cordon->ledger, cordon->data_dir, record->id, &is_over, &untold) == 0 && is_over &&
	    registry_read(arena, cordon->data_dir, record->id, &ended, &found, &untold) == 0 && found)
		*record = ended;
}

static void write_listing(struct json *json, const struct cordon *cordon, struct listing *listing)
{
	json_object_begin(json);
	json_key(json, "sessions");
	json_array_begin(json);
	for (size_t i = 0; i < listing->count; i++) {
		const struct session_record *record = &listing->records[i];
		if (record->id && record->is_newer) {
			write_newer(json, cordon, &listing->arena, record);
			continue;
		}
		if (record->id) {
			end_if_idle(cordon, &listing->arena, &listing->records[i]);
			session_write_summary(json, cordon, &listing->arena, &listing->records[i]);
			continue;
		}
		json_object_begin(json);
		json_key_string(json, "id", NULL);
		json_key_string(json, "state", "damaged");
		json_key_string(json, "directory", listing->records[i].workspace);
		json_object_end(json);
	}
	json_array_end(json);
	json_object_end(json);
}

int cordon_session_list(struct cordon *cordon, char **ret_json, struct cordon_error *err)
{
	if (call_check(err, cordon, ret_json) < 0 || policy_check(cordon, err) < 0)
		return -1;
	struct listing listing = { .data_dir = cordon->data_dir };
	struct json json;
	int result = registry_list(cordon->data_dir, add_listed, &listing, err);
	if (result == 0 && listing.failed)
		result = fail_oom(err);
	if (result == 0) {
		if (listing.count)
			qsort(listing.records, listing.count, sizeof(*listing.records), by_age);
		json_init(&json);
		write_listing(&json, cordon, &listing);
		result = session_take_json(&json, ret_json, err);
	}
	free(listing.records);
	arena_free(&listing.arena);
	return result;
}

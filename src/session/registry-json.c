/* A session's record as text: see registry-json.h. The reader takes what this version writes and nothing else: a record
 * that says more, or says it otherwise, may mean less freedom than would be read out of it. */
#include <jansson.h>

#include "session/registry-json.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "policy/capability-json.h"

#define VERSION 1

const char *const session_state_names[] = { "active", "paused", "ended" };
_Static_assert(ARRAY_SIZE(session_state_names) == SESSION_STATE_MAX, "every state has a name");

/* ---- writing ---------------------------------------------------------------------------------------------------- */

static void write_grant(struct json *json, const struct session_grant *grant)
{
	json_object_begin(json);
	json_key_string(json, "card", grant->card);
	json_key_string(json, "hash", grant->hash);
	json_key_string(json, "time", grant->time);
	json_key(json, "set");
	capability_write_json(json, &grant->set);
	json_key(json, "places");
	places_write_json(json, &grant->places);
	json_object_end(json);
}

static void write_denial(struct json *json, const struct session_denial *denial)
{
	json_object_begin(json);
	json_key_string(json, "hash", denial->hash);
	json_key_string(json, "reason", denial->reason);
	json_key_string(json, "time", denial->time);
	json_object_end(json);
}

char *record_write(const struct session_record *record)
{
	struct json json;
	json_init(&json);
	json_object_begin(&json);
	json_key_uint(&json, "version", VERSION);
	json_key_string(&json, "id", record->id);
	json_key_string(&json, "state", session_state_names[record->state]);
	json_key_string(&json, "why", record->why);
	json_key_path(&json, "workspace", record->workspace);
	json_key_path(&json, "own_root", record->own_root);
	json_key_string(&json, "created", record->created);
	json_key_string(&json, "changed", record->changed);
	json_key(&json, "baseline");
	if (record->has_baseline)
		capability_write_json(&json, &record->baseline);
	else
		json_nil(&json);
	json_key(&json, "grants");
	json_array_begin(&json);
	for (size_t i = 0; i < record->grant_count; i++)
		write_grant(&json, &record->grants[i]);
	json_array_end(&json);
	json_key(&json, "denials");
	json_array_begin(&json);
	for (size_t i = 0; i < record->denial_count; i++)
		write_denial(&json, &record->denials[i]);
	json_array_end(&json);
	json_key_uint(&json, "denied_in_a_row", record->denied_in_a_row);
	json_object_end(&json);
	return json_take(&json);
}

/* ---- reading: each returns 0, or -1 where it is something else or memory is short -------------------------------- */

static int read_text(struct arena *arena, const json_t *value, bool may_be_null, const char **ret_text)
{
	if (may_be_null && json_is_null(value)) {
		*ret_text = NULL;
		return 0;
	}
	*ret_text = json_is_string(value) ? arena_strdup(arena, json_string_value(value)) : NULL;
	return *ret_text ? 0 : -1;
}

static int read_path(struct arena *arena, const json_t *value, const char **ret_path)
{
	*ret_path = json_is_null(value) ? NULL : path_read_json(arena, value);
	return *ret_path || json_is_null(value) ? 0 : -1;
}

static int read_state(const json_t *value, enum session_state *ret_state)
{
	for (int state = 0; json_is_string(value) && state < SESSION_STATE_MAX; state++)
		if (!strcmp(session_state_names[state], json_string_value(value))) {
			*ret_state = state;
			return 0;
		}
	return -1;
}

static int read_grant(struct arena *arena, const json_t *object, struct session_grant *grant)
{
	return json_object_size(object) == 5 && read_text(arena, json_object_get(object, "card"), false, &grant->card) == 0 &&
	       read_text(arena, json_object_get(object, "hash"), false, &grant->hash) == 0 &&
	       read_text(arena, json_object_get(object, "time"), false, &grant->time) == 0 &&
	       capability_read_json(arena, json_object_get(object, "set"), &grant->set) == 0 &&
	       places_read_json(arena, json_object_get(object, "places"), &grant->places) == 0 ? 0 : -1;
}

static int read_denial(struct arena *arena, const json_t *object, struct session_denial *denial)
{
	return json_object_size(object) == 3 && read_text(arena, json_object_get(object, "hash"), false, &denial->hash) == 0 &&
	       read_text(arena, json_object_get(object, "reason"), true, &denial->reason) == 0 &&
	       read_text(arena, json_object_get(object, "time"), false, &denial->time) == 0 ? 0 : -1;
}

static int read_answers(struct arena *arena, const json_t *object, struct session_record *record)
{
	const json_t *grants = json_object_get(object, "grants"), *denials = json_object_get(object, "denials");
	uint64_t in_a_row;
	if (!json_is_array(grants) || !json_is_array(denials) ||
	    !number_read_json(json_object_get(object, "denied_in_a_row"), &in_a_row) || in_a_row > UINT32_MAX)
		return -1;
	record->denied_in_a_row = (unsigned)in_a_row;
	record->grant_count = json_array_size(grants);
	record->grants = arena_alloc(arena, record->grant_count * sizeof(*record->grants));
	record->denial_count = json_array_size(denials);
	record->denials = arena_alloc(arena, record->denial_count * sizeof(*record->denials));
	if (!record->grants || !record->denials)
		return -1;
	for (size_t i = 0; i < record->grant_count; i++)
		if (read_grant(arena, json_array_get(grants, i), &record->grants[i]) < 0)
			return -1;
	for (size_t i = 0; i < record->denial_count; i++)
		if (read_denial(arena, json_array_get(denials, i), &record->denials[i]) < 0)
			return -1;
	return 0;
}

#define KEYS 12

static int read_object(struct arena *arena, const json_t *object, struct session_record *record)
{
	const json_t *baseline = json_object_get(object, "baseline");
	if (json_object_size(object) != KEYS || read_text(arena, json_object_get(object, "id"), false, &record->id) < 0 ||
	    read_state(json_object_get(object, "state"), &record->state) < 0 ||
	    read_text(arena, json_object_get(object, "why"), true, &record->why) < 0 ||
	    read_path(arena, json_object_get(object, "workspace"), &record->workspace) < 0 ||
	    read_path(arena, json_object_get(object, "own_root"), &record->own_root) < 0 ||
	    read_text(arena, json_object_get(object, "created"), false, &record->created) < 0 ||
	    read_text(arena, json_object_get(object, "changed"), false, &record->changed) < 0 ||
	    read_answers(arena, object, record) < 0)
		return -1;
	record->has_baseline = !json_is_null(baseline);
	return record->has_baseline ? capability_read_json(arena, baseline, &record->baseline) : 0;
}

int record_read(struct arena *arena, const char *text, size_t length, struct session_record *ret_record,
                const char **ret_why)
{
	struct session_record record = { 0 };
	json_error_t wrong;
	uint64_t version;
	json_t *object = json_loadb(text, length, JSON_REJECT_DUPLICATES, &wrong);
	int result = -1;
	if (!object)
		*ret_why = arena_printf(arena, "it is not JSON: %s (line %d)", wrong.text, wrong.line);
	else if (!number_read_json(json_object_get(object, "version"), &version))
		*ret_why = "it does not say which version it has";
	else if (version != VERSION)
		*ret_why = "it was written by another version of cordon";
	else if (read_object(arena, object, &record) < 0)
		*ret_why = "it is not what cordon writes";
	else
		result = 0;
	json_decref(object);
	if (result == 0)
		*ret_record = record;
	return result;
}

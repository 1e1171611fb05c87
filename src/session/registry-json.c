/* A session's record as text: see registry-json.h. The reader takes what this version writes and nothing else: a record
 * that says more, or says it otherwise, may mean less freedom than would be read out of it; unless its writer says by
 * `reader` that it does not (record_version_read()). What it says more is kept when it is written again. */
#include <jansson.h>

#include "session/registry-json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "policy/capability-json.h"
#include "session/record-version.h"

#define VERSION 2
#define VERSION_FIRST 1

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

/* Published ports came with the second version: the first would have to take them for damage. */
static unsigned version_of(const struct session_record *record)
{
	bool publishes = record->has_baseline && record->baseline.publish.count;
	for (size_t i = 0; i < record->grant_count; i++)
		publishes |= record->grants[i].set.publish.count > 0;
	return publishes ? VERSION : VERSION_FIRST;
}

/* Older versions read a record without these members, which change nothing for one that ignores them. */
static void write_more(struct json *json, const struct session_record *record)
{
	if (!record->labels && !record->idle_expiry_s)
		return;
	json_key_uint(json, "reader", version_of(record));
	if (record->labels) {
		json_key(json, "labels");
		json_verbatim(json, record->labels);
	}
	if (record->idle_expiry_s)
		json_key_uint(json, "idle_expiry_s", record->idle_expiry_s);
}

static char *write_known(const struct session_record *record)
{
	struct json json;
	json_init(&json);
	json_object_begin(&json);
	json_key_uint(&json, "version", version_of(record));
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
	write_more(&json, record);
	json_object_end(&json);
	return json_take(&json);
}

static const json_t *find_same(const json_t *list, const char *key, const json_t *object)
{
	size_t i;
	json_t *each;
	json_array_foreach(list, i, each)
		if (json_equal(json_object_get(each, key), json_object_get(object, key)))
			return each;
	return NULL;
}

/* To each of ours, what the same one of theirs says more. */
static void keep_more(const json_t *theirs, const char *key, const json_t *ours)
{
	size_t i;
	json_t *each;
	json_array_foreach(ours, i, each) {
		const json_t *same = find_same(theirs, key, each);
		if (json_is_object(same))
			json_object_update_missing(each, (json_t *)(uintptr_t)same);
	}
}

/* What we do not know of a set, and so have not changed. */
static void keep_unknown(json_t *theirs, json_t *ours)
{
	const char *name;
	json_t *value;
	json_object_foreach(theirs, name, value)
		if (json_is_object(ours) && !capability_knows(name))
			json_object_set(ours, name, value);
}

static void keep_greater(const json_t *theirs, json_t *ours, const char *name)
{
	const json_t *before = json_object_get(theirs, name);
	if (before && json_integer_value(before) >= json_integer_value(json_object_get(ours, name)))
		json_object_del(ours, name);
}

/* Known members are ours, the others, the version and the reader stay theirs. Of a newer record only what an end
 * changes is ours. */
static json_t *merge(const struct session_record *record, json_t *ours)
{
	static const char *const of_newer[] = { "state", "why", "changed" };
	json_t *theirs = json_loads(record->before, 0, NULL);
	if (!json_is_object(theirs))
		return theirs;
	for (size_t i = 0; i < ARRAY_SIZE(of_newer) && record->is_newer; i++)
		json_object_set(theirs, of_newer[i], json_object_get(ours, of_newer[i]));
	if (record->is_newer)
		return theirs;
	keep_more(json_object_get(theirs, "grants"), "card", json_object_get(ours, "grants"));
	keep_more(json_object_get(theirs, "denials"), "hash", json_object_get(ours, "denials"));
	keep_unknown(json_object_get(theirs, "baseline"), json_object_get(ours, "baseline"));
	/* It may need a newer reader by now. */
	keep_greater(theirs, ours, "version");
	keep_greater(theirs, ours, "reader");
	json_object_del(theirs, "labels");
	json_object_del(theirs, "idle_expiry_s");
	json_object_update(theirs, ours);
	return theirs;
}

char *record_write(const struct session_record *record)
{
	char *text = write_known(record);
	if (!text || !record->before)
		return text;
	json_t *ours = json_loads(text, 0, NULL), *whole = ours ? merge(record, ours) : NULL;
	free(text);
	text = whole ? json_dumps(whole, JSON_COMPACT) : NULL;
	json_decref(ours);
	json_decref(whole);
	return text;
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

static bool has_members(const json_t *object, size_t count, bool open)
{
	return open ? json_object_size(object) >= count : json_object_size(object) == count;
}

static int read_grant(struct arena *arena, const json_t *object, bool open, struct session_grant *grant)
{
	return has_members(object, 5, open) &&
	                       read_text(arena, json_object_get(object, "card"), false, &grant->card) == 0 &&
	                       read_text(arena, json_object_get(object, "hash"), false, &grant->hash) == 0 &&
	                       read_text(arena, json_object_get(object, "time"), false, &grant->time) == 0 &&
	                       capability_read_json(arena, json_object_get(object, "set"), open, &grant->set) == 0 &&
	                       places_read_json(arena, json_object_get(object, "places"), &grant->places) == 0 ? 0 : -1;
}

static int read_denial(struct arena *arena, const json_t *object, bool open, struct session_denial *denial)
{
	return has_members(object, 3, open) &&
	                       read_text(arena, json_object_get(object, "hash"), false, &denial->hash) == 0 &&
	                       read_text(arena, json_object_get(object, "reason"), true, &denial->reason) == 0 &&
	                       read_text(arena, json_object_get(object, "time"), false, &denial->time) == 0 ? 0 : -1;
}

static int read_answers(struct arena *arena, const json_t *object, bool open, struct session_record *record)
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
		if (read_grant(arena, json_array_get(grants, i), open, &record->grants[i]) < 0)
			return -1;
	for (size_t i = 0; i < record->denial_count; i++)
		if (read_denial(arena, json_array_get(denials, i), open, &record->denials[i]) < 0)
			return -1;
	return 0;
}

static int read_more(struct arena *arena, const json_t *object, struct session_record *record)
{
	const json_t *labels = json_object_get(object, "labels"), *idle = json_object_get(object, "idle_expiry_s");
	const char *name;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)labels, name, value)
		if (!json_is_string(value))
			return -1;
	if ((labels && !json_is_object(labels)) || (idle && !number_read_json(idle, &record->idle_expiry_s)))
		return -1;
	char *text = labels ? json_dumps(labels, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
	record->labels = text ? arena_strdup(arena, text) : NULL;
	free(text);
	return !labels || record->labels ? 0 : -1;
}

/* What is needed of a record of a newer version to end and to remove its session. */
static int read_newer(struct arena *arena, const json_t *object, struct session_record *record)
{
	record->is_newer = true;
	record->created = record->changed = "";
	(void)!read_state(json_object_get(object, "state"), &record->state);
	return read_text(arena, json_object_get(object, "id"), false, &record->id) < 0 ||
	                       read_path(arena, json_object_get(object, "workspace"), &record->workspace) < 0 ||
	                       read_path(arena, json_object_get(object, "own_root"), &record->own_root) < 0
	               ? -1 : 0;
}

#define KEYS 12

static int read_object(struct arena *arena, const json_t *object, bool open, struct session_record *record)
{
	const json_t *baseline = json_object_get(object, "baseline");
	if ((!open && json_object_size(object) != KEYS) ||
	    read_text(arena, json_object_get(object, "id"), false, &record->id) < 0 ||
	    read_state(json_object_get(object, "state"), &record->state) < 0 ||
	    read_text(arena, json_object_get(object, "why"), true, &record->why) < 0 ||
	    read_path(arena, json_object_get(object, "workspace"), &record->workspace) < 0 ||
	    read_path(arena, json_object_get(object, "own_root"), &record->own_root) < 0 ||
	    read_text(arena, json_object_get(object, "created"), false, &record->created) < 0 ||
	    read_text(arena, json_object_get(object, "changed"), false, &record->changed) < 0 ||
	    read_answers(arena, object, open, record) < 0 || (open && read_more(arena, object, record) < 0))
		return -1;
	record->has_baseline = !json_is_null(baseline);
	return record->has_baseline ? capability_read_json(arena, baseline, open, &record->baseline) : 0;
}

int record_read(struct arena *arena, const char *text, size_t length, struct session_record *ret_record,
                const char **ret_why)
{
	struct session_record record = { 0 };
	json_error_t wrong;
	json_t *object = json_loadb(text, length, JSON_REJECT_DUPLICATES, &wrong);
	enum record_version version = record_version_read(object, VERSION);
	int result = -1;
	if (!object)
		*ret_why = arena_printf(arena, "it is not JSON: %s (line %d)", wrong.text, wrong.line);
	else if (version == RECORD_NO_VERSION)
		*ret_why = "it does not say which version it has";
	else if (version == RECORD_NEWER && read_newer(arena, object, &record) < 0)
		*ret_why = "it was written by a newer version of cordon, which can use it";
	else if (version != RECORD_NEWER && read_object(arena, object, version == RECORD_OPEN, &record) < 0)
		*ret_why = "it is not what cordon writes";
	else
		result = 0;
	json_decref(object);
	if (result == 0 && version != RECORD_EXACT && !(record.before = arena_strndup(arena, text, length))) {
		*ret_why = NULL;
		return -1;
	}
	if (result == 0)
		*ret_record = record;
	return result;
}

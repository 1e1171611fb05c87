/* A job's record as text: see jobs.h. One row per field, for writing and reading alike; the reader takes what this
 * version writes and nothing else. */
#include <jansson.h>

#include "session/jobs.h"

#include <limits.h>
#include <string.h>

#include "base/json.h"
#include "session/record-version.h"

#define VERSION 1

const char *const job_state_names[] = { "running", "ended", "lost", "newer" };
_Static_assert(ARRAY_SIZE(job_state_names) == JOB_STATE_MAX, "every state has a name");

enum kind { TEXT, TEXT_OR_NULL, UNSIGNED, INTEGER, INTEGER_OF_ENDED, BOOLEAN, KIND_MAX };

static const struct field {
	const char *key;
	enum kind kind;
	size_t offset;
} fields[] = {
#define FIELD(kind, name) { #name, kind, offsetof(struct job_record, name) }
	FIELD(TEXT, id),
	FIELD(TEXT, session),
	FIELD(TEXT, started),
	FIELD(TEXT_OR_NULL, ended),
	FIELD(UNSIGNED, pid),
	FIELD(UNSIGNED, timeout_ms),
	FIELD(INTEGER_OF_ENDED, exit_code),
	FIELD(INTEGER, signal),
	FIELD(BOOLEAN, timed_out),
	FIELD(BOOLEAN, oom_killed),
	FIELD(BOOLEAN, killed),
	FIELD(TEXT_OR_NULL, limit_hit),
	FIELD(TEXT_OR_NULL, note),
	FIELD(UNSIGNED, duration_ms),
#undef FIELD
};
#define OTHERS 3        /* the version, the state and the command */

/* ---- writing ---------------------------------------------------------------------------------------------------- */

static void write_field(struct json *json, const struct field *field, const struct job_record *record)
{
	const void *at = (const char *)record + field->offset;
	json_key(json, field->key);
	switch (field->kind) {
	case TEXT:
	case TEXT_OR_NULL:
		json_text(json, *(const char *const *)at);
		break;
	case UNSIGNED:
		json_uint(json, *(const uint64_t *)at);
		break;
	case INTEGER:
	case INTEGER_OF_ENDED:
		if (field->kind == INTEGER || record->state == JOB_ENDED)
			json_int(json, *(const int *)at);
		else
			json_nil(json);
		break;
	case BOOLEAN:
		json_bool(json, *(const bool *)at);
		break;
	case KIND_MAX:
		break;
	}
}

void job_record_members(struct json *json, const struct job_record *record)
{
	json_key_string(json, "state", job_state_names[record->state]);
	json_key_strings(json, "command", record->command.items, record->command.count);
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		write_field(json, &fields[i], record);
}

char *job_record_write(const struct job_record *record)
{
	struct json json;
	json_init(&json);
	json_object_begin(&json);
	json_key_uint(&json, "version", VERSION);
	/* Of no matter to readers before it was there. */
	if (record->shares) {
		json_key_uint(&json, "reader", VERSION);
		json_key_bool(&json, "shares", true);
	}
	job_record_members(&json, record);
	json_object_end(&json);
	return json_take(&json);
}

/* ---- reading: each returns 0, or -1 where it is something else or memory is short -------------------------------- */

static int read_text(struct arena *arena, const json_t *value, bool may_be_null, const char **ret_text)
{
	if (may_be_null && json_is_null(value))
		return 0;
	*ret_text = json_is_string(value) ? arena_strdup(arena, json_string_value(value)) : NULL;
	return *ret_text ? 0 : -1;
}

static int read_integer(const json_t *value, bool may_be_null, int *ret_integer)
{
	if (may_be_null && json_is_null(value))
		return 0;
	if (!json_is_integer(value) || json_integer_value(value) < -1 || json_integer_value(value) > INT_MAX)
		return -1;
	*ret_integer = (int)json_integer_value(value);
	return 0;
}

static int read_field(struct arena *arena, const struct field *field, const json_t *value, struct job_record *record)
{
	void *at = (char *)record + field->offset;
	switch (field->kind) {
	case TEXT:
	case TEXT_OR_NULL:
		return read_text(arena, value, field->kind == TEXT_OR_NULL, at);
	case UNSIGNED:
		if (!json_is_integer(value) || json_integer_value(value) < 0)
			return -1;
		*(uint64_t *)at = (uint64_t)json_integer_value(value);
		return 0;
	case INTEGER:
	case INTEGER_OF_ENDED:
		return read_integer(value, field->kind == INTEGER_OF_ENDED && record->state != JOB_ENDED, at);
	case BOOLEAN:
		*(bool *)at = json_is_true(value);
		return json_is_boolean(value) ? 0 : -1;
	case KIND_MAX:
		break;
	}
	return -1;
}

static int read_command(struct arena *arena, const json_t *value, struct strings *ret_command)
{
	if (!json_is_array(value) || !json_array_size(value))
		return -1;
	for (size_t i = 0; i < json_array_size(value); i++) {
		const char *word = NULL;
		if (read_text(arena, json_array_get(value, i), false, &word) < 0 ||
		    strings_add(arena, ret_command, word) < 0)
			return -1;
	}
	return 0;
}

static int read_state(const json_t *value, enum job_state *ret_state)
{
	for (int state = 0; json_is_string(value) && state < JOB_LOST; state++)
		if (!strcmp(job_state_names[state], json_string_value(value))) {
			*ret_state = state;
			return 0;
		}
	return -1;
}

int job_record_read(struct arena *arena, const char *text, size_t length, struct job_record *ret_record)
{
	struct job_record record = { 0 };
	json_t *object = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
	enum record_version version = record_version_read(object, VERSION);
	bool exact = version == RECORD_EXACT && json_object_size(object) == ARRAY_SIZE(fields) + OTHERS;
	int result = exact || version == RECORD_OPEN ? 0 : -1;
	if (result == 0)
		result = read_state(json_object_get(object, "state"), &record.state);
	if (result == 0)
		result = read_command(arena, json_object_get(object, "command"), &record.command);
	for (size_t i = 0; result == 0 && i < ARRAY_SIZE(fields); i++)
		result = read_field(arena, &fields[i], json_object_get(object, fields[i].key), &record);
	record.shares = json_is_true(json_object_get(object, "shares"));
	json_decref(object);
	/* One that has ended says when. */
	if (result < 0 || !id_time_ms(record.id) || (record.state == JOB_ENDED) != (record.ended != NULL))
		return -1;
	*ret_record = record;
	return 0;
}

int job_record_read_newer(struct arena *arena, const char *text, size_t length, struct job_record *ret_record)
{
	struct job_record record = { .state = JOB_NEWER, .started = "" };
	json_t *object = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
	int result = record_version_read(object, VERSION) != RECORD_NEWER ||
	                             read_text(arena, json_object_get(object, "id"), false, &record.id) < 0 ||
	                             read_text(arena, json_object_get(object, "session"), false, &record.session) < 0 ||
	                             !id_time_ms(record.id) ? -1 : 0;
	json_decref(object);
	if (result == 0)
		*ret_record = record;
	return result;
}

/* Questions and answers as text: see approvals.h. One row per field. The reader takes what the writer writes and
 * nothing else: whatever is otherwise was not written by cordon, and must not approve anything. */
#include <jansson.h>

#include "approval/approvals.h"

#include <string.h>

#include "base/json.h"
#include "base/visible.h"
#include "policy/capability-json.h"
#include "session/record-version.h"

#define VERSION 1

const char *const approval_outcome_names[] = {
	"once", "session", "denied", "timeout", "cancelled", "abandoned", "void"
};
_Static_assert(ARRAY_SIZE(approval_outcome_names) == APPROVAL_OUTCOME_MAX, "every outcome has a name");

enum kind { TEXT, TEXT_OR_NULL, NUMBER };

struct field {
	const char *name;
	enum kind kind;
	size_t offset;
};

static const struct field question_fields[] = {
#define FIELD(kind, field) { #field, kind, offsetof(struct approval_question, field) }
	FIELD(TEXT, session), FIELD(TEXT, audit_id), FIELD(TEXT, time), FIELD(TEXT, tool), FIELD(TEXT, program),
	FIELD(TEXT_OR_NULL, rule), FIELD(TEXT, hash), FIELD(TEXT, content),
	FIELD(NUMBER, timeout_ms), FIELD(NUMBER, pid),
#undef FIELD
}, answer_fields[] = {
#define FIELD(kind, field) { #field, kind, offsetof(struct approval_answer, field) }
	FIELD(TEXT, hash), FIELD(TEXT, reason), FIELD(TEXT, time),
#undef FIELD
}, by_fields[] = {
#define FIELD(kind, field) { #field, kind, offsetof(struct approval_by, field) }
	FIELD(TEXT, door), FIELD(TEXT_OR_NULL, terminal), FIELD(NUMBER, uid), FIELD(NUMBER, pid),
#undef FIELD
};

static void write_fields(struct json *json, const struct field *fields, size_t count, const void *value)
{
	for (size_t i = 0; i < count; i++) {
		const void *at = (const char *)value + fields[i].offset;
		json_key(json, fields[i].name);
		if (fields[i].kind == NUMBER)
			number_write_json(json, *(const uint64_t *)at);
		else
			json_text(json, *(const char *const *)at);
	}
}

static int read_fields(struct arena *arena, const json_t *object, const struct field *fields, size_t count, void *value)
{
	for (size_t i = 0; i < count; i++) {
		void *at = (char *)value + fields[i].offset;
		const json_t *member = json_object_get(object, fields[i].name);
		if (fields[i].kind == NUMBER) {
			if (!number_read_json(member, at))
				return -1;
		} else if (json_is_string(member)) {
			const char *copy = arena_strdup(arena, json_string_value(member));
			if (!copy)
				return -1;
			memcpy(at, &copy, sizeof(copy));
		} else if (fields[i].kind != TEXT_OR_NULL || !json_is_null(member)) {
			return -1;
		}
	}
	return 0;
}

static bool has_members(const json_t *object, enum record_version version, size_t count)
{
	return version == RECORD_OPEN ? json_object_size(object) >= count :
	                                version == RECORD_EXACT && json_object_size(object) == count;
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

char *approval_question_write(const struct approval_question *question)
{
	struct json json;
	json_init(&json);
	json_object_begin(&json);
	json_key_uint(&json, "version", VERSION);
	json_key_string(&json, "id", question->id);
	write_fields(&json, question_fields, ARRAY_SIZE(question_fields), question);
	json_key_uint(&json, "denials_to_pause", question->denials_to_pause);
	json_key(&json, "excess");
	capability_write_json(&json, &question->excess);
	json_key(&json, "places");
	places_write_json(&json, &question->places);
	json_object_end(&json);
	return json_take(&json);
}

char *approval_describe(const struct approval_question *question)
{
	struct json json;
	json_init(&json);
	json_object_begin(&json);
	json_key_string(&json, "id", question->id);
	json_key_string(&json, "session", question->session);
	json_key_string(&json, "audit_id", question->audit_id);
	json_key_string(&json, "asked", question->time);
	json_key_uint(&json, "timeout_ms", question->timeout_ms);
	json_key_uint(&json, "pid", question->pid);
	json_key_string(&json, "hash", question->hash);
	json_key(&json, "content");
	json_verbatim(&json, question->content);
	json_object_end(&json);
	auto_free char *text = json_take(&json);
	return text ? visible_json(text) : NULL;
}

static int read_question(struct arena *arena, const json_t *object, struct approval_question *question)
{
	const char *id = json_string_value(json_object_get(object, "id"));
	enum record_version version = record_version_read(object, VERSION);
	uint64_t denials;
	if (!has_members(object, version, ARRAY_SIZE(question_fields) + 5) || !id || strlen(id) != ID_SIZE - 1 ||
	    read_fields(arena, object, question_fields, ARRAY_SIZE(question_fields), question) < 0 ||
	    !number_read_json(json_object_get(object, "denials_to_pause"), &denials) || denials > UINT32_MAX ||
	    capability_read_json(arena, json_object_get(object, "excess"), version == RECORD_OPEN, &question->excess) <
	            0 ||
	    places_read_json(arena, json_object_get(object, "places"), &question->places) < 0)
		return -1;
	memcpy(question->id, id, ID_SIZE);
	question->denials_to_pause = (unsigned)denials;
	return 0;
}

int approval_question_read(struct arena *arena, const char *text, size_t length, struct approval_question *ret_question)
{
	struct approval_question question = { 0 };
	json_t *object = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
	int result = read_question(arena, object, &question);
	json_decref(object);
	if (result == 0)
		*ret_question = question;
	return result;
}

int approval_question_read_newer(struct arena *arena, const char *text, size_t length,
                                 struct approval_question *ret_question)
{
	struct approval_question question = {
		.content = "{\"text\":\"asked by a newer version of cordon, which can show it\"}"
	};
	json_t *object = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
	const char *id = json_string_value(json_object_get(object, "id")),
		   *hash = json_string_value(json_object_get(object, "hash")),
		   *session = json_string_value(json_object_get(object, "session"));
	for (size_t i = 0; i < ARRAY_SIZE(question_fields); i++) {
		const char **at = (void *)((char *)&question + question_fields[i].offset);
		if (question_fields[i].kind == TEXT && !*at)
			*at = "";
	}
	bool newer = record_version_read(object, VERSION) == RECORD_NEWER && id && strlen(id) == ID_SIZE - 1 && hash;
	if (newer) {
		memcpy(question.id, id, ID_SIZE);
		question.hash = arena_strdup(arena, hash);
		question.session = arena_strdup(arena, session ? session : "");
	}
	json_decref(object);
	if (!newer || !question.hash || !question.session)
		return -1;
	*ret_question = question;
	return 0;
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

void approval_by_write(struct json *json, const struct approval_by *by)
{
	json_object_begin(json);
	write_fields(json, by_fields, ARRAY_SIZE(by_fields), by);
	json_object_end(json);
}

char *approval_answer_write(const struct approval_answer *answer)
{
	struct json json;
	json_init(&json);
	json_object_begin(&json);
	json_key_uint(&json, "version", VERSION);
	json_key_string(&json, "answer", approval_outcome_names[answer->outcome]);
	write_fields(&json, answer_fields, ARRAY_SIZE(answer_fields), answer);
	json_key(&json, "by");
	approval_by_write(&json, &answer->by);
	json_object_end(&json);
	return json_take(&json);
}

static int read_outcome(const json_t *value, enum approval_outcome *ret_outcome)
{
	for (int outcome = 0; json_is_string(value) && outcome < APPROVAL_VOID; outcome++)
		if (!strcmp(approval_outcome_names[outcome], json_string_value(value))) {
			*ret_outcome = outcome;
			return 0;
		}
	return -1;
}

static int read_answer(struct arena *arena, const json_t *object, struct approval_answer *answer)
{
	const json_t *by = json_object_get(object, "by");
	enum record_version version = record_version_read(object, VERSION);
	return has_members(object, version, ARRAY_SIZE(answer_fields) + 3) &&
	       has_members(by, version, ARRAY_SIZE(by_fields)) &&
	       read_outcome(json_object_get(object, "answer"), &answer->outcome) == 0 &&
	       read_fields(arena, object, answer_fields, ARRAY_SIZE(answer_fields), answer) == 0 &&
	       read_fields(arena, by, by_fields, ARRAY_SIZE(by_fields), &answer->by) == 0 ? 0 : -1;
}

int approval_answer_read(struct arena *arena, const char *text, size_t length, struct approval_answer *ret_answer)
{
	struct approval_answer answer = { 0 };
	json_t *object = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
	int result = read_answer(arena, object, &answer);
	json_decref(object);
	if (result == 0)
		*ret_answer = answer;
	return result;
}

/* The table of methods as data, and as JSON Schema: see methods.h. */
#include "api/methods.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "cordon-internal.h"

#define NEEDED true
#define MAY false
#define QUICK METHOD_QUICK
#define READS METHOD_READS
#define STREAMS METHOD_STREAMS
#define WAITS METHOD_WAITS
#define DESTROYS METHOD_DESTROYS
#define AGAIN METHOD_AGAIN
#define TEXT(name, needed, most, summary) { (name), METHOD_TEXT, (needed), (most), NULL, (summary) }
#define BYTES(name, needed, most, summary) { (name), METHOD_BYTES, (needed), (most), NULL, (summary) }
#define PATH(name, needed, most, summary) { (name), METHOD_PATH, (needed), (most), NULL, (summary) }
#define COUNT(name, needed, most, summary) { (name), METHOD_COUNT, (needed), (most), NULL, (summary) }
#define FLAG(name, needed, most, summary) { (name), METHOD_FLAG, (needed), (most), NULL, (summary) }
#define LIST(name, needed, most, summary) { (name), METHOD_LIST, (needed), (most), NULL, (summary) }
#define WORDS(name, needed, most, summary) { (name), METHOD_WORDS, (needed), (most), NULL, (summary) }
#define SETTINGS(name, needed, most, summary) { (name), METHOD_SETTINGS, (needed), (most), NULL, (summary) }
#define CHOICE(name, needed, values, summary) { (name), METHOD_CHOICE, (needed), 0, (values), (summary) }
#define METHOD(name, handler, flags, summary, result, ...) { (name), (flags), (summary), (result), { __VA_ARGS__ } },

#include "api/shapes.def"

const struct method methods[] = {
#include "api/methods.def"
};
const size_t method_count = ARRAY_SIZE(methods);

#define NOTICE(name, after, summary, shape) { (name), (after), (summary), (shape) },
#define EVENT(name, summary, shape)
const struct notice notices[] = {
#include "api/notices.def"
};
#undef NOTICE
#undef EVENT
#define NOTICE(name, after, summary, shape)
#define EVENT(name, summary, shape) { (name), NULL, (summary), (shape) },
const struct notice events[] = {
#include "api/notices.def"
};
const size_t notice_count = ARRAY_SIZE(notices), event_count = ARRAY_SIZE(events);

const struct method *method_find(const char *name, const char **ret_nearest)
{
	const char *names[ARRAY_SIZE(methods)];
	for (size_t i = 0; i < method_count; i++) {
		if (!strcmp(methods[i].name, name))
			return &methods[i];
		names[i] = methods[i].name;
	}
	if (ret_nearest)
		*ret_nearest = text_nearest(name, names, method_count);
	return NULL;
}

/* ---- as JSON Schema -------------------------------------------------------------------------------------------- */

static void write_choice(struct json *json, const char *values)
{
	json_key(json, "enum");
	json_array_begin(json);
	for (const char *at = values; *at; at += strspn(at, " ")) {
		size_t length = strcspn(at, " ");
		json_bytes(json, at, length);
		at += length;
	}
	json_array_end(json);
}

static void write_limit(struct json *json, const struct method_param *param)
{
	switch (param->type) {
	case METHOD_TEXT:
	case METHOD_BYTES:
	case METHOD_PATH:
		json_key_int(json, "maxLength", param->most);
		break;
	case METHOD_COUNT:
		json_key_int(json, "minimum", 0);
		json_key_int(json, "maximum", param->most);
		break;
	case METHOD_LIST:
	case METHOD_WORDS:
		json_key(json, "items");
		json_object_begin(json);
		json_key_string(json, "type", "string");
		json_object_end(json);
		json_key_int(json, "maxItems", param->most);
		break;
	case METHOD_SETTINGS:
		json_key_int(json, "maxProperties", param->most);
		break;
	case METHOD_CHOICE:
		write_choice(json, param->values);
		break;
	case METHOD_FLAG:
		break;
	}
}

bool method_param_is_bytes(const struct method_param *param)
{
	return param->type == METHOD_BYTES || param->type == METHOD_PATH || param->type == METHOD_WORDS;
}

static void write_encoded(struct json *json, const struct method_param *param)
{
	char name[64];
	snprintf(name, sizeof(name), "%s_base64", param->name);
	json_key(json, name);
	json_object_begin(json);
	if (param->type == METHOD_WORDS) {
		json_key_string(json, "type", "array");
		json_key_int(json, "maxItems", param->most);
		json_key(json, "items");
		json_object_begin(json);
	}
	json_key_string(json, "type", "string");
	json_key_string(json, "contentEncoding", "base64");
	if (param->type == METHOD_WORDS)
		json_object_end(json);
	else
		json_key_int(json, "maxLength", param->most / 3 * 4 + 4);
	json_object_end(json);
}

static void write_param(struct json *json, const struct method_param *param)
{
	static const char *const types[] = {
		[METHOD_TEXT] = "string",   [METHOD_BYTES] = "string",    [METHOD_PATH] = "string",
		[METHOD_COUNT] = "integer", [METHOD_FLAG] = "boolean",    [METHOD_LIST] = "array",
		[METHOD_WORDS] = "array",   [METHOD_SETTINGS] = "object", [METHOD_CHOICE] = "string",
	};
	json_key(json, param->name);
	json_object_begin(json);
	json_key_string(json, "type", types[param->type]);
	write_limit(json, param);
	json_key_string(json, "description", param->summary);
	json_object_end(json);
	if (method_param_is_bytes(param))
		write_encoded(json, param);
}

/* What is needed in one of two forms. */
static void write_either(struct json *json, const struct method *method)
{
	char name[64];
	json_key(json, "allOf");
	json_array_begin(json);
	for (const struct method_param *param = method->params; param->name; param++) {
		if (!param->needed || !method_param_is_bytes(param))
			continue;
		snprintf(name, sizeof(name), "%s_base64", param->name);
		json_object_begin(json);
		json_key(json, "oneOf");
		json_array_begin(json);
		for (int i = 0; i < 2; i++) {
			json_object_begin(json);
			json_key_strings(json, "required", (const char *const[]){ i ? name : param->name }, 1);
			json_object_end(json);
		}
		json_array_end(json);
		json_object_end(json);
	}
	json_array_end(json);
}

static void write_params(struct json *json, const struct method *method)
{
	json_object_begin(json);
	json_key_string(json, "type", "object");
	json_key(json, "properties");
	json_object_begin(json);
	for (const struct method_param *param = method->params; param->name; param++)
		write_param(json, param);
	json_object_end(json);
	json_key(json, "required");
	json_array_begin(json);
	for (const struct method_param *param = method->params; param->name; param++)
		if (param->needed && !method_param_is_bytes(param))
			json_text(json, param->name);
	json_array_end(json);
	write_either(json, method);
	json_key_bool(json, "additionalProperties", false);
	json_object_end(json);
}

/* ---- shapes (shapes.def) --------------------------------------------------------------------------------------- */

static const char *write_shape(struct json *json, const char *at);

struct shape_type {
	const char *name, *type;
};

static const struct shape_type *type_at(const char *at)
{
	static const struct shape_type types[] = {
		{ "text", "string" },  { "bytes", "string" }, { "int", "integer" },
		{ "bool", "boolean" }, { "list", "array" },   { "object", "object" }
	};
	size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyz");
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (strlen(types[i].name) == length && !strncmp(types[i].name, at, length))
			return &types[i];
	return NULL;
}

static void write_type(struct json *json, const struct shape_type *type, bool may_miss)
{
	if (may_miss)
		json_key_strings(json, "type", (const char *const[]){ type->type, "null" }, 2);
	else
		json_key_string(json, "type", type->type);
}

/* What is in a list or an object. Returns what comes after it. */
static const char *write_inner(struct json *json, const struct shape_type *type, const char *at)
{
	bool is_list = !strcmp(type->name, "list");
	if (*at == '(') {
		const struct shape_type *inner = type_at(at + 1);
		json_key(json, "items");
		json_object_begin(json);
		write_type(json, inner, false);
		json_object_end(json);
		return strchr(at, ')') + 1;
	}
	if (is_list) {
		json_key(json, "items");
		json_object_begin(json);
		json_key_string(json, "type", "object");
	}
	at = write_shape(json, at + 1) + 1;
	if (is_list)
		json_object_end(json);
	return at;
}

/* "type", with what is in it. */
static const char *write_value(struct json *json, const char *at)
{
	const struct shape_type *type = type_at(at);
	at += strlen(type->name);
	bool may_miss = *at == '?';
	at += may_miss;
	json_object_begin(json);
	write_type(json, type, may_miss);
	if (*at == '(' || *at == '{')
		at = write_inner(json, type, at);
	json_object_end(json);
	return at;
}

static bool may_miss(const char *at)
{
	at += strcspn(at, " ") + 1;
	return at[strspn(at, "abcdefghijklmnopqrstuvwxyz")] == '?';
}

/* Where the member after this one begins, or what ends them all. */
static const char *next_member(const char *at)
{
	size_t depth = 0;
	for (; *at && (depth || (*at != ',' && *at != '}')); at++)
		depth += (*at == '{' || *at == '(') - (size_t)(*at == '}' || *at == ')');
	return at + strspn(at, ", ");
}

/* "name type, name type", to the end or to a brace, which is returned. */
static const char *write_shape(struct json *json, const char *shape)
{
	const char *at = shape;
	json_key(json, "properties");
	json_object_begin(json);
	while (*at && *at != '}') {
		char name[64];
		size_t length = strcspn(at, " ");
		snprintf(name, sizeof(name), "%.*s", (int)length, at);
		json_key(json, name);
		at = write_value(json, at + length + 1);
		at += strspn(at, ", ");
	}
	json_object_end(json);
	json_key(json, "required");
	json_array_begin(json);
	for (const char *each = shape; each < at; each = next_member(each))
		if (!may_miss(each))
			json_bytes(json, each, strcspn(each, " "));
	json_array_end(json);
	return at;
}

static void write_object(struct json *json, const char *shape)
{
	json_object_begin(json);
	json_key_string(json, "type", "object");
	write_shape(json, shape);
	json_object_end(json);
}

/* ---- all of it ------------------------------------------------------------------------------------------------- */

static void write_method(struct json *json, const struct method *method)
{
	json_object_begin(json);
	json_key_string(json, "name", method->name);
	json_key_string(json, "summary", method->summary);
	json_key_bool(json, "quick", method->flags & METHOD_QUICK);
	json_key_bool(json, "reads_only", method->flags & METHOD_READS);
	json_key_bool(json, "streams", method->flags & METHOD_STREAMS);
	json_key_bool(json, "waits", method->flags & METHOD_WAITS);
	json_key_bool(json, "destructive", method->flags & METHOD_DESTROYS);
	json_key_bool(json, "idempotent", method->flags & (METHOD_READS | METHOD_AGAIN));
	json_key(json, "params");
	write_params(json, method);
	json_key(json, "result");
	write_object(json, method->result);
	json_object_end(json);
}

static void write_codes(struct json *json)
{
	static const struct {
		int number;
		const char *name, *meaning;
		bool retriable;
	} codes[] = {
#define CORDON_CLASS(number, id, name, retriable, meaning) { number, name, meaning, retriable },
#include "cordon-codes.def"
#undef CORDON_CLASS
	};
	json_key(json, "errors");
	json_array_begin(json);
	for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
		json_object_begin(json);
		json_key_int(json, "code", codes[i].number);
		json_key_string(json, "class", codes[i].name);
		json_key_bool(json, "retriable", codes[i].retriable);
		json_key_string(json, "meaning", codes[i].meaning);
		json_object_end(json);
	}
	json_array_end(json);
}

static void write_notices(struct json *json, const char *key, const struct notice *list, size_t count)
{
	json_key(json, key);
	json_array_begin(json);
	for (size_t i = 0; i < count; i++) {
		json_object_begin(json);
		json_key_string(json, list == events ? "event" : "name", list[i].name);
		if (list[i].after)
			json_key_string(json, "after", list[i].after);
		json_key_string(json, "summary", list[i].summary);
		json_key(json, list == events ? "members" : "params");
		write_object(json, list[i].shape);
		json_object_end(json);
	}
	json_array_end(json);
}

void methods_write(struct json *json)
{
	json_object_begin(json);
	json_key_string(json, "$schema", "https://json-schema.org/draft/2020-12/schema");
	json_key_string(json, "title", "cordon");
	json_key_string(json, "version", CORDON_VERSION);
	json_key_int(json, "api", CORDON_API);
	json_key_int(json, "protocol", METHOD_PROTOCOL);
	json_key(json, "methods");
	json_array_begin(json);
	for (size_t i = 0; i < method_count; i++)
		write_method(json, &methods[i]);
	json_array_end(json);
	write_notices(json, "notices", notices, notice_count);
	write_notices(json, "events", events, event_count);
	write_codes(json);
	json_object_end(json);
}

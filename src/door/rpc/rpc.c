/* JSON-RPC: see rpc.h. */
#include "door/rpc/rpc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* False: it is neither text nor a whole number, or too long. */
static bool take_id(json_t *id, char ret_id[RPC_ID_MAX])
{
	if (!json_is_string(id) && !json_is_integer(id))
		return false;
	auto_free char *text = json_dumps(id, JSON_ENCODE_ANY | JSON_COMPACT);
	if (!text || strlen(text) >= RPC_ID_MAX)
		return false;
	memcpy(ret_id, text, strlen(text) + 1);
	return true;
}

static bool is_plain_text(const json_t *value)
{
	return json_is_string(value) && strlen(json_string_value(value)) == json_string_length(value);
}

static enum rpc_code take_call(struct rpc_call *call, const char **ret_why)
{
	json_t *id = json_object_get(call->whole, "id"), *params = json_object_get(call->whole, "params");
	const char *version = json_string_value(json_object_get(call->whole, "jsonrpc"));
	call->wants_answer = id != NULL;
	if (id && !take_id(id, call->id))
		*ret_why = "the id must be a string or a whole number, and not long";
	else if (!version || strcmp(version, "2.0"))
		*ret_why = "jsonrpc must be \"2.0\"";
	else if (!is_plain_text(json_object_get(call->whole, "method")))
		*ret_why = "the method is missing";
	else if (params && !json_is_object(params))
		*ret_why = "the parameters must be an object";
	else if (!params && json_object_set_new(call->whole, "params", json_object()) < 0)
		*ret_why = "memory is short";
	else {
		call->method = json_string_value(json_object_get(call->whole, "method"));
		call->params = json_object_get(call->whole, "params");
		return RPC_OK;
	}
	return RPC_NO_REQUEST;
}

json_t *rpc_parse_answer(const char *line, size_t length)
{
	json_t *whole = json_is_shallow(line, length, RPC_DEPTH_MAX)
	               ? json_loadb(line, length, JSON_REJECT_DUPLICATES, NULL) : NULL;
	if (json_is_object(whole) && !json_object_get(whole, "method") &&
	    (json_object_get(whole, "result") || json_object_get(whole, "error")))
		return whole;
	json_decref(whole);
	return NULL;
}

/* How many keys the outermost object has, also those that are there twice. */
static size_t count_keys(const char *line, size_t length)
{
	size_t depth = 0, count = 0;
	bool in_string = false;
	for (size_t i = 0; i < length; i++) {
		if (line[i] == '"')
			in_string = !in_string;
		else if (in_string)
			i += line[i] == '\\';
		else if (line[i] == ':')
			count += depth == 1;
		else if (line[i] == '{' || line[i] == '[')
			depth++;
		else if (line[i] == '}' || line[i] == ']')
			depth--;
	}
	return count;
}

/* What a key that is there twice was meant to say is not known; which call it is about may be. */
static enum rpc_code refuse_duplicates(const char *line, size_t length, struct rpc_call *call, const char **ret_why)
{
	json_t *whole = json_loadb(line, length, JSON_ALLOW_NUL, NULL);
	bool is_object = json_is_object(whole);
	if (is_object) {
		*ret_why = "a key is there twice";
		if (count_keys(line, length) == json_object_size(whole))
			take_id(json_object_get(whole, "id"), call->id);
	}
	json_decref(whole);
	return is_object ? RPC_NO_REQUEST : RPC_NOT_JSON;
}

enum rpc_code rpc_parse(const char *line, size_t length, struct rpc_call *ret_call, const char **ret_why)
{
	struct rpc_call call = { .id = "null", .wants_answer = true, .length = length };
	enum rpc_code code = RPC_NOT_JSON;
	*ret_why = "this is not JSON, or nested too deeply";
	if (json_is_shallow(line, length, RPC_DEPTH_MAX))
		call.whole = json_loadb(line, length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	if (call.whole) {
		*ret_why = "a call must be an object";
		code = json_is_object(call.whole) ? take_call(&call, ret_why) : RPC_NO_REQUEST;
	} else if (json_is_shallow(line, length, RPC_DEPTH_MAX)) {
		code = refuse_duplicates(line, length, &call, ret_why);
	}
	if (code != RPC_OK) {
		json_decref(call.whole);
		call.whole = call.params = NULL;
		call.method = NULL;
		call.wants_answer = true;
	}
	*ret_call = call;
	return code;
}

/* ---- parameters -------------------------------------------------------------------------------------------------- */

static bool is_of_type(json_t *value, enum rpc_type type)
{
	size_t i;
	json_t *each;
	switch (type) {
	case RPC_TEXT:
		return is_plain_text(value);
	case RPC_FLAG:
		return json_is_boolean(value);
	case RPC_COUNT:
		return json_is_integer(value) && json_integer_value(value) >= 0;
	case RPC_TEXTS:
		json_array_foreach(value, i, each)
			if (!is_plain_text(each))
				return false;
		return json_is_array(value);
	case RPC_OBJECT:
		return json_is_object(value);
	case RPC_TEXT_OR_NUMBER:
		return is_plain_text(value) || json_is_integer(value);
	}
	return false;
}

static int bad(struct cordon_error *err, const char *name, const char *what)
{
	fail(err, CORDON_E_INVALID_REQUEST, 0, name, "the parameter %s %s", name, what);
	return fail_boundary(err, "request");
}

int rpc_check(json_t *params, const struct rpc_param *known, struct cordon_error *err)
{
	static const char *const whats[] = {
		[RPC_TEXT] = "must be text, without a NUL in it", [RPC_FLAG] = "must be true or false",
		[RPC_COUNT] = "must be a whole number, and not below 0", [RPC_TEXTS] = "must be a list of texts",
		[RPC_OBJECT] = "must be an object", [RPC_TEXT_OR_NUMBER] = "must be text or a whole number",
	};
	const char *name;
	json_t *value;
	json_object_foreach(params, name, value) {
		const struct rpc_param *param = known;
		while (param->name && strcmp(param->name, name))
			param++;
		if (!param->name)
			return bad(err, name, "is none of this method");
		if (!is_of_type(value, param->type))
			return bad(err, name, whats[param->type]);
		if (param->members && rpc_check(value, param->members, err) < 0)
			return -1;
	}
	for (; known->name; known++)
		if (known->is_needed && !json_object_get(params, known->name))
			return bad(err, known->name, "is missing");
	return 0;
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

static void begin(struct json *json)
{
	json_init(json);
	json_object_begin(json);
	json_key_string(json, "jsonrpc", "2.0");
}

void rpc_result_begin(struct json *json, const char *id)
{
	begin(json);
	json_key(json, "id");
	json_verbatim(json, id);
	json_key(json, "result");
}

void rpc_notice_begin(struct json *json, const char *method)
{
	begin(json);
	json_key_string(json, "method", method);
	json_key(json, "params");
}

char *rpc_end(struct json *json, size_t *ret_length)
{
	json_object_end(json);
	size_t length = json->length;
	char *text = json_take(json);
	if (!text)
		return NULL;
	text[length] = '\n'; /* in place of the NUL: a line has a length */
	*ret_length = length + 1;
	return text;
}

char *rpc_error(const char *id, enum rpc_code code, const char *message, const struct cordon_error *err,
                size_t *ret_length)
{
	struct json json;
	begin(&json);
	json_key(&json, "id");
	json_verbatim(&json, id);
	json_key(&json, "error");
	json_object_begin(&json);
	json_key_int(&json, "code", code);
	json_key_string(&json, "message", message);
	if (err) {
		json_key(&json, "data");
		error_write_json(&json, err);
	}
	json_object_end(&json);
	return rpc_end(&json, ret_length);
}

/* JSON-RPC: see rpc.h. */
#include "door/rpc/rpc.h"

#include <sodium/utils.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"

/* What is nested deeper is not parsed at all: the parser recurses. Brackets in strings do not count. */
static bool is_shallow(const char *line, size_t length)
{
	size_t depth = 0;
	bool in_string = false;
	for (size_t i = 0; i < length; i++) {
		if (in_string && line[i] == '\\') {
			i++;
		} else if (in_string) {
			in_string = line[i] != '"';
		} else if (line[i] == '"') {
			in_string = true;
		} else if (line[i] == '{' || line[i] == '[') {
			if (++depth > RPC_DEPTH_MAX)
				return false;
		} else if ((line[i] == '}' || line[i] == ']') && depth) {
			depth--;
		}
	}
	return true;
}

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

static enum rpc_code take_call(struct rpc_call *call, const char **ret_why)
{
	json_t *id = json_object_get(call->whole, "id"), *params = json_object_get(call->whole, "params");
	const char *version = json_string_value(json_object_get(call->whole, "jsonrpc"));
	call->wants_answer = id != NULL;
	if (id && !take_id(id, call->id))
		*ret_why = "the id must be a string or a whole number, and not long";
	else if (!version || strcmp(version, "2.0"))
		*ret_why = "jsonrpc must be \"2.0\"";
	else if (!(call->method = json_string_value(json_object_get(call->whole, "method"))))
		*ret_why = "the method is missing";
	else if (params && !json_is_object(params))
		*ret_why = "the parameters must be an object";
	else if (!params && json_object_set_new(call->whole, "params", json_object()) < 0)
		*ret_why = "memory is short";
	else {
		call->params = json_object_get(call->whole, "params");
		return RPC_OK;
	}
	return RPC_NO_REQUEST;
}

json_t *rpc_parse_answer(const char *line, size_t length)
{
	json_t *whole = is_shallow(line, length) ? json_loadb(line, length, JSON_REJECT_DUPLICATES, NULL) : NULL;
	if (json_is_object(whole) && !json_object_get(whole, "method") &&
	    (json_object_get(whole, "result") || json_object_get(whole, "error")))
		return whole;
	json_decref(whole);
	return NULL;
}

enum rpc_code rpc_parse(const char *line, size_t length, struct rpc_call *ret_call, const char **ret_why)
{
	struct rpc_call call = { .id = "null", .wants_answer = true };
	enum rpc_code code = RPC_NOT_JSON;
	json_error_t where;
	*ret_why = "this is not JSON, or nested too deeply";
	if (is_shallow(line, length))
		call.whole = json_loadb(line, length, JSON_REJECT_DUPLICATES, &where);
	if (call.whole) {
		*ret_why = "a call must be an object";
		code = json_is_object(call.whole) ? take_call(&call, ret_why) : RPC_NO_REQUEST;
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

/* ---- parameters ---------------------------------------------------------------------------------------------------- */

static bool is_of_type(json_t *value, enum rpc_type type)
{
	size_t i;
	json_t *each;
	switch (type) {
	case RPC_TEXT:
		return json_is_string(value);
	case RPC_FLAG:
		return json_is_boolean(value);
	case RPC_COUNT:
		return json_is_integer(value) && json_integer_value(value) >= 0;
	case RPC_TEXTS:
		json_array_foreach(value, i, each)
			if (!json_is_string(each))
				return false;
		return json_is_array(value);
	case RPC_OBJECT:
		return json_is_object(value);
	case RPC_TEXT_OR_NUMBER:
		return json_is_string(value) || json_is_integer(value);
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
		[RPC_TEXT] = "must be text", [RPC_FLAG] = "must be true or false",
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

/* ---- answers ------------------------------------------------------------------------------------------------------- */

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

char *rpc_error(const char *id, enum rpc_code code, const char *message, const struct cordon_error *err, size_t *ret_length)
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

/* ---- bytes --------------------------------------------------------------------------------------------------------- */

void rpc_bytes(struct json *json, const char *data, size_t length)
{
	if (utf8_valid(data, length) && !memchr(data, '\0', length)) {
		json_key(json, "text");
		json_bytes(json, data, length);
		return;
	}
	size_t size = sodium_base64_encoded_len(length, sodium_base64_VARIANT_ORIGINAL);
	auto_free char *text = malloc(size);
	if (text)
		sodium_bin2base64(text, size, (const unsigned char *)data, length, sodium_base64_VARIANT_ORIGINAL);
	else
		json->failed = true;
	json_key_string(json, "base64", text);
}

bool rpc_take_bytes(json_t *params, char **ret_data, size_t *ret_length)
{
	json_t *text = json_object_get(params, "text"), *base64 = json_object_get(params, "base64");
	json_t *given = text ? text : base64;
	if ((text && base64) || !json_is_string(given))
		return false;
	size_t length = json_string_length(given), used = 0;
	char *data = malloc(length + 1);
	if (!data)
		return false;
	if (text)
		memcpy(data, json_string_value(text), used = length);
	else if (sodium_base642bin((unsigned char *)data, length, json_string_value(base64), length, NULL, &used, NULL,
	                           sodium_base64_VARIANT_ORIGINAL) < 0) {
		free(data);
		return false;
	}
	*ret_data = data;
	*ret_length = used;
	return true;
}

/* cordon_call(): one entrance to every method of the table, which checks what it is given. What is passed over could
 * be what a caller relies on: a parameter that is not in the table is refused. */
#include "api/call.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "walk.h"

#define METHOD(name, handler, flags, summary, result, ...) call_##handler,
static int (*const handlers[])(struct call *call, struct cordon_error *err) = {
#include "api/methods.def"
};
#undef METHOD

/* ---- checking -------------------------------------------------------------------------------------------------- */

static int bad(struct cordon_error *err, const char *name, const char *what)
{
	fail(err, CORDON_E_INVALID_REQUEST, 0, name, "the parameter %s %s", name, what);
	fail_remedy(err, "see docs/PROTOCOL.md, or the method rpc.discover");
	return fail_boundary(err, "call");
}

static bool is_choice(const char *values, const char *value)
{
	size_t length = strlen(value);
	for (const char *at = values; *at; at += strspn(at, " ")) {
		size_t each = strcspn(at, " ");
		if (each == length && !strncmp(at, value, length))
			return true;
		at += each;
	}
	return false;
}

static bool is_plain_text(const json_t *value)
{
	return json_is_string(value) && strlen(json_string_value(value)) == json_string_length(value);
}

static bool are_texts(const json_t *list)
{
	size_t i;
	json_t *each;
	json_array_foreach(list, i, each)
		if (!is_plain_text(each))
			return false;
	return json_is_array(list);
}

static int check_value(const struct method_param *param, const json_t *value, struct cordon_error *err)
{
	char what[200];
	switch (param->type) {
	case METHOD_TEXT:
	case METHOD_PATH:
		if (!is_plain_text(value))
			return bad(err, param->name, "must be text, without a NUL in it");
		break;
	case METHOD_BYTES:
		if (!json_is_string(value))
			return bad(err, param->name, "must be text");
		break;
	case METHOD_CHOICE:
		snprintf(what, sizeof(what), "must be one of: %s", param->values);
		return is_plain_text(value) && is_choice(param->values, json_string_value(value))
		               ? 0 : bad(err, param->name, what);
	case METHOD_COUNT:
		snprintf(what, sizeof(what), "must be a whole number from 0 to %lld", (long long)param->most);
		return json_is_integer(value) && json_integer_value(value) >= 0 &&
		                       json_integer_value(value) <= param->most ? 0 : bad(err, param->name, what);
	case METHOD_FLAG:
		return json_is_boolean(value) ? 0 : bad(err, param->name, "must be true or false");
	case METHOD_LIST:
	case METHOD_WORDS:
		if (!are_texts(value))
			return bad(err, param->name, "must be a list of texts, without a NUL in them");
		break;
	case METHOD_SETTINGS:
		if (!json_is_object(value))
			return bad(err, param->name, "must be an object");
		break;
	}
	size_t size = json_is_string(value) ? json_string_length(value) :
	              json_is_array(value)  ? json_array_size(value) :
	                                      json_object_size(value);
	snprintf(what, sizeof(what), "must be no longer than %lld", (long long)param->most);
	return size <= (uint64_t)param->most ? 0 : bad(err, param->name, what);
}

/* Whether this is NAME_base64 of a parameter of bytes. */
static bool is_base64_of(const struct method_param *param, const char *name)
{
	size_t length = strlen(param->name);
	return method_param_is_bytes(param) && !strncmp(name, param->name, length) && !strcmp(name + length, "_base64");
}

static json_t *decode(const json_t *encoded)
{
	size_t i;
	json_t *each, *list;
	if (!json_is_array(encoded))
		return value_from_base64(encoded);
	list = json_array();
	json_array_foreach(encoded, i, each)
		if (json_array_append_new(list, value_from_base64(each)) < 0) {
			json_decref(list);
			return NULL;
		}
	return list;
}

/* What is given as base64 is given as what it says. */
static int take_exact(const struct method_param *param, json_t *params, struct cordon_error *err)
{
	char name[64];
	snprintf(name, sizeof(name), "%s_base64", param->name);
	const json_t *encoded = method_param_is_bytes(param) ? json_object_get(params, name) : NULL;
	if (!encoded)
		return 0;
	if (json_object_get(params, param->name))
		return bad(err, param->name, "is given twice, as text and as base64");
	json_t *exact = decode(encoded);
	if (!exact)
		return bad(err, name, "is not base64");
	int result = check_value(param, exact, err);
	if (result == 0 && json_object_set_nocheck(params, param->name, exact) < 0)
		result = fail_oom(err);
	json_decref(exact);
	json_object_del(params, name);
	return result;
}

static int check_one(const struct method *method, const char *name, const json_t *value, struct cordon_error *err)
{
	for (const struct method_param *param = method->params; param->name; param++) {
		if (!strcmp(param->name, name))
			return check_value(param, value, err);
		if (is_base64_of(param, name))
			return param->type == METHOD_WORDS
			               ? are_texts(value) && json_array_size(value) <= (uint64_t)param->most
			       : is_plain_text(value) && json_string_length(value) <= (uint64_t)param->most / 3 * 4 + 4
			               ? 0
			               : bad(err, name, "must be base64, and not too long");
	}
	return bad(err, name, "is none of this method");
}

int call_params_check(const struct method *method, json_t *params, struct cordon_error *err)
{
	const char *name;
	json_t *value;
	if (!json_is_object(params))
		return bad(err, method->name, "must be a JSON object, with each key once");
	json_object_foreach(params, name, value)
		if (check_one(method, name, value, err) < 0)
			return -1;
	for (const struct method_param *param = method->params; param->name; param++) {
		if (take_exact(param, params, err) < 0)
			return -1;
		if (param->needed && !json_object_get(params, param->name))
			return bad(err, param->name, "is missing");
	}
	return 0;
}

json_t *call_params_read(const char *params)
{
	if (!params)
		return json_object();
	return json_is_shallow(params, strlen(params), METHOD_DEPTH_MAX)
	               ? json_loads(params, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL) : NULL;
}

/* ---- parameters ------------------------------------------------------------------------------------------------ */

const char *call_text(const struct call *call, const char *name)
{
	return json_string_value(json_object_get(call->params, name));
}

uint64_t call_count(const struct call *call, const char *name, uint64_t otherwise)
{
	const json_t *given = json_object_get(call->params, name);
	return given ? (uint64_t)json_integer_value(given) : otherwise;
}

bool call_flag(const struct call *call, const char *name)
{
	return json_is_true(json_object_get(call->params, name));
}

const void *call_bytes(const struct call *call, const char *name, size_t *ret_length)
{
	const json_t *bytes = json_object_get(call->params, name);
	*ret_length = json_string_length(bytes);
	return json_string_value(bytes);
}

int call_list(const struct call *call, const char *name, const char ***ret_list, struct cordon_error *err)
{
	const json_t *list = json_object_get(call->params, name);
	size_t i;
	json_t *each;
	const char **texts = calloc(json_array_size(list) + 1, sizeof(*texts));
	if (!texts)
		return fail_oom(err);
	json_array_foreach(list, i, each)
		texts[i] = json_string_value(each);
	*ret_list = texts;
	return 0;
}

int call_take(struct call *call, json_t *tree, struct cordon_error *err)
{
	call->result = tree;
	return tree ? 0 : fail_oom(err);
}

int call_take_text(struct call *call, char *text, struct cordon_error *err)
{
	json_t *tree = value_parse(text);
	free(text);
	return call_take(call, tree, err);
}

int call_signal(const char *name)
{
	static const struct {
		const char *name;
		int number;
	} signals[] = {
		{ "HUP", SIGHUP },   { "INT", SIGINT },   { "QUIT", SIGQUIT }, { "ABRT", SIGABRT },
		{ "KILL", SIGKILL }, { "USR1", SIGUSR1 }, { "USR2", SIGUSR2 }, { "PIPE", SIGPIPE },
		{ "ALRM", SIGALRM }, { "TERM", SIGTERM }, { "CONT", SIGCONT }, { "STOP", SIGSTOP },
		{ "TSTP", SIGTSTP }, { "TTIN", SIGTTIN }, { "TTOU", SIGTTOU }, { "WINCH", SIGWINCH },
	};
	if (!strncmp(name, "SIG", 3))
		name += 3;
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		if (!strcmp(signals[i].name, name))
			return signals[i].number;
	return 0;
}

/* ---- the request ----------------------------------------------------------------------------------------------- */

static int set_one(struct cordon_request *request, const char *key, const json_t *value, struct cordon_error *err);

/* KEY_base64, for a path that is not UTF-8. */
static int set_exact(struct cordon_request *request, const char *key, size_t length, const json_t *value,
                     struct cordon_error *err)
{
	char plain[64];
	auto_tree json_t *exact = is_plain_text(value) && length < sizeof(plain) ? value_from_base64(value) : NULL;
	snprintf(plain, sizeof(plain), "%.*s", (int)length, key);
	return exact ? set_one(request, plain, exact, err) : bad(err, key, "must be base64, or a list of these");
}

static int set_one(struct cordon_request *request, const char *key, const json_t *value, struct cordon_error *err)
{
	static const char suffix[] = "_base64";
	char number[32];
	size_t length = strlen(key), end = sizeof(suffix) - 1;
	if (length > end && !strcmp(key + length - end, suffix))
		return set_exact(request, key, length - end, value, err);
	if (json_is_boolean(value))
		return cordon_request_set(request, key, json_is_true(value) ? "true" : "false", err);
	if (json_is_integer(value)) {
		snprintf(number, sizeof(number), "%lld", (long long)json_integer_value(value));
		return cordon_request_set(request, key, number, err);
	}
	if (!is_plain_text(value))
		return bad(err, key, "must be text, a number, true or false, or a list of these");
	/* Of the other paths the library demands it; this one it would look for in this process's own directory. */
	if (!strcmp(key, "manifest") && *json_string_value(value) != '/')
		return bad(err, key, "must be an absolute path");
	return cordon_request_set(request, key, json_string_value(value), err);
}

static int set_all(struct cordon_request *request, const json_t *settings, struct cordon_error *err)
{
	const char *key;
	json_t *value, *each;
	size_t i;
	json_object_foreach((json_t *)(uintptr_t)settings, key, value) {
		if (!json_is_array(value) && set_one(request, key, value, err) < 0)
			return -1;
		json_array_foreach(value, i, each)
			if (set_one(request, key, each, err) < 0)
				return -1;
	}
	return 0;
}

/* A call that gives no environment gets nothing of this process's but HOME, by which the user's toolchains are
 * found. */
static int set_home(struct cordon_request *request, struct cordon_error *err)
{
	const char *home = getenv("HOME");
	auto_free char *variable = NULL;
	if (home && asprintf(&variable, "HOME=%s", home) < 0)
		return fail_oom(err);
	return cordon_request_environment(request, (const char *const[]){ variable, NULL }, err);
}

static int set_command(const struct call *call, struct cordon_request *request, struct cordon_error *err)
{
	auto_free const char **argv = NULL, **environment = NULL;
	if (call_list(call, "argv", &argv, err) < 0 || cordon_request_command(request, argv, err) < 0)
		return -1;
	if (!json_object_get(call->params, "environment"))
		return set_home(request, err);
	return call_list(call, "environment", &environment, err) < 0
	               ? -1 : cordon_request_environment(request, environment, err);
}

int call_settings_request(const struct call *call, const char *name, struct cordon_request **ret_request,
                          struct cordon_error *err)
{
	struct cordon_request *request = NULL;
	if (cordon_request_new(&request, err) < 0)
		return -1;
	if (set_home(request, err) < 0 || set_all(request, json_object_get(call->params, name), err) < 0) {
		cordon_request_unref(request);
		return -1;
	}
	*ret_request = request;
	return 0;
}

int call_request(const struct call *call, bool with_command, struct cordon_request **ret_request,
                 struct cordon_error *err)
{
	struct cordon_request *request = NULL;
	if (cordon_request_new(&request, err) < 0)
		return -1;
	if (set_all(request, json_object_get(call->params, "settings"), err) == 0 &&
	    (!with_command || set_command(call, request, err) == 0)) {
		*ret_request = request;
		return 0;
	}
	cordon_request_unref(request);
	return -1;
}

/* ---- the public call ------------------------------------------------------------------------------------------- */

static int find(const char *name, const struct method **ret_method, struct cordon_error *err)
{
	const char *nearest;
	*ret_method = method_find(name, &nearest);
	if (*ret_method)
		return 0;
	fail(err, CORDON_E_NOT_FOUND, 0, name, "there is no such method");
	fail_boundary(err, "call");
	return nearest ? fail_remedy(err, "did you mean %s?", nearest) :
	                 fail_remedy(err, "rpc.discover lists those that there are");
}

int cordon_call(struct cordon *cordon, const char *method, const char *params, struct cordon_value **ret_result,
                struct cordon_error *err)
{
	struct call call = { .cordon = cordon };
	if (call_check(err, cordon, method, ret_result) < 0 || handle_check(cordon, err) < 0 ||
	    find(method, &call.method, err) < 0)
		return -1;
	auto_tree json_t *given = call_params_read(params);
	call.params = given;
	if (call_params_check(call.method, given, err) < 0 || handlers[call.method - methods](&call, err) < 0) {
		json_decref(call.result);
		return -1;
	}
	return value_take(call.result ? call.result : json_object(), ret_result, err);
}

/* Refusals as a model can use them. A grant is an option of the command line to a person; the model has a tool to ask
 * with, and is told what to call it with. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "door/mcp/mcp-run.h"

#define ASK "ask for it with the tool request_capability"
#define DO_WITHOUT "do without it, or tell the user that cordon refuses it"
#define TELL "tell the user, who can do something about it"

/* Settings that request_capability can ask for, and its parameters. */
static const struct {
	const char *setting, *parameter;
} rows[] = { { "read", "fs_read" }, { "write", "fs_write" }, { "net", "hosts" } };

/* To be released; NULL: the tool cannot ask for this. */
static json_t *arguments_of(const char *grant)
{
	char key[32];
	const char *value = grant && *grant ? error_grant(grant, key, sizeof(key)) : NULL;
	for (size_t i = 0; value && i < ARRAY_SIZE(rows); i++)
		if (!strcmp(rows[i].setting, key))
			return json_pack("{s:[s]}", rows[i].parameter, value);
	return NULL;
}

void mcp_put_denial(struct json *json, const char *what, const char *wall, const char *note, const char *grant)
{
	json_t *arguments = arguments_of(grant);
	auto_free char *text = arguments ? json_dumps(arguments, JSON_COMPACT) : NULL;
	json_decref(arguments);
	json_object_begin(json);
	json_key_string(json, "what", what);
	json_key_string(json, "wall", wall);
	json_key_string(json, "note", note ? note : "");
	if (text) {
		json_key(json, "request_capability");
		json_verbatim(json, text);
	}
	json_object_end(json);
}

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));
	return text ? text : "";
}

bool mcp_reword_denials(json_t *denials)
{
	size_t index;
	json_t *denial;
	bool failed = false;
	json_array_foreach(denials, index, denial) {
		json_t *arguments = arguments_of(text_of(denial, "grant"));
		json_object_del(denial, "grant");
		if (arguments)
			failed |= json_object_set_new(denial, "request_capability", arguments) < 0;
	}
	return !failed;
}

/* Words of the command line are of no use to a model that has no such command. Whoever asks for what was not granted is
 * told to do without it; whoever asks for what is not there is told nothing more. */
static const char *remedy_of(const json_t *error, int os_errno)
{
	const char *class = text_of(error, "class"), *remedy = text_of(error, "remediation");
	bool is_denied = os_errno != ENOENT && os_errno != ENOTDIR &&
	                 (!strcmp(class, cordon_class_name(CORDON_E_CAPABILITY_DENIED)) ||
	                  !strcmp(class, cordon_class_name(CORDON_E_PROGRAM_NOT_ALLOWED)));
	bool is_for_people = strstr(remedy, "cordon ") || strstr(remedy, "--");
	if (*remedy && !is_for_people)
		return remedy;
	return is_denied ? DO_WITHOUT : is_for_people ? TELL : "";
}

bool mcp_reword_error(json_t *error, int os_errno, bool may_ask)
{
	json_t *arguments = may_ask ? arguments_of(text_of(error, "grant")) : NULL;
	json_t *remedy = json_string(arguments ? ASK : remedy_of(error, os_errno));
	bool failed = !error || json_object_set_new(error, "remediation", remedy) < 0;
	json_object_del(error, "grant");
	json_object_del(error, "setting");
	if (arguments)
		failed |= json_object_set_new(error, "request_capability", arguments) < 0;
	return !failed;
}

/* `{"error":{…}}`, to be released; NULL when memory is short. What nobody was asked for can be asked for; but not once
 * more by the tool that asks. */
static json_t *error_tree(const struct mcp_call *call, const struct cordon_error *err)
{
	auto_free char *text = cordon_error_json(err);
	json_t *whole = text ? json_loads(text, 0, NULL) : NULL;
	bool may_ask = call->tool->run != mcp_request_capability;
	if (mcp_reword_error(json_object_get(whole, "error"), err->os_errno, may_ask))
		return whole;
	json_decref(whole);
	return NULL;
}

char *mcp_error_json(const struct mcp_call *call, const struct cordon_error *err)
{
	json_t *whole = error_tree(call, err);
	char *text = whole ? json_dumps(whole, JSON_COMPACT) : NULL;
	json_decref(whole);
	return text;
}

void mcp_put_error(struct json *json, const struct mcp_call *call, const struct cordon_error *err)
{
	json_t *whole = error_tree(call, err);
	auto_free char *text = whole ? json_dumps(json_object_get(whole, "error"), JSON_COMPACT) : NULL;
	json_decref(whole);
	json->failed |= !text;
	json_key(json, "error");
	json_verbatim(json, text ? text : "null");
}

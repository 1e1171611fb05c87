/* `cordon session update`, and the labels of a session: by the library's method of that name. */
#include "door/cli/session-update.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "door/cli/json-read.h"
#include "door/cli/request.h"
#include "door/cli/session-text.h"

/* NAME=VALUE; with an empty value, where `may_remove`, it is taken away. */
static int add_label(json_t *labels, const char *word, bool may_remove, struct cordon_error *err)
{
	const char *equals = strchr(word, '=');
	if (!equals || equals == word) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, word, "--label needs a name and a value");
		return fail_remedy(err, "write --label NAME=VALUE");
	}
	auto_free char *name = strndup(word, (size_t)(equals - word));
	json_t *value = may_remove && !equals[1] ? json_null() : json_string(equals + 1);
	if (!value)
		return fail(err, CORDON_E_INVALID_REQUEST, 0, word, "a label must be UTF-8");
	return !name || json_object_set_new(labels, name, value) < 0 ? fail_oom(err) : 0;
}

int cli_session_labels(const struct options *options, bool may_remove, json_t **ret_labels, struct cordon_error *err)
{
	auto_json json_t *labels = json_object();
	for (size_t i = 0; i < options->given_count; i++)
		if (!strcmp(options->given[i].option->name, "label") &&
		    add_label(labels, options->given[i].value, may_remove, err) < 0)
			return -1;
	*ret_labels = json_incref(labels);
	return 0;
}

static int set_idle(json_t *params, const char *word, struct cordon_error *err)
{
	uint64_t ms = 0;
	if (!word)
		return 0;
	if (strcmp(word, "never") != 0 && (!text_parse_duration(word, &ms) || ms < 1000)) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, word, "--idle-expiry is a time of a second at least, or never");
		return fail_remedy(err, "write it as 90s, 30m or 12h");
	}
	json_object_set_new(params, "idle_expiry_s", json_integer((json_int_t)(ms / 1000)));
	return 0;
}

static void set_revoked(json_t *params, const struct options *options)
{
	json_t *list = json_array();
	for (size_t i = 0; i < options->given_count; i++)
		if (!strcmp(options->given[i].option->name, "revoke"))
			json_array_append_new(list, json_string(options->given[i].value));
	if (json_array_size(list))
		json_object_set(params, "revoke", list);
	json_decref(list);
}

static int call(struct cordon *cordon, const char *method, json_t *params, char **ret_json, struct cordon_error *err)
{
	struct cordon_value *value;
	auto_free char *text = json_dumps(params, JSON_COMPACT);
	if (!text)
		return fail_oom(err);
	if (cordon_call(cordon, method, text, &value, err) < 0)
		return -1;
	*ret_json = cordon_value_json(value, "");
	cordon_value_unref(value);
	return *ret_json ? 0 : fail_oom(err);
}

int cli_session_update(struct cordon *cordon, const struct options *options, const char *id, bool grants,
                       char **ret_json, struct cordon_error *err)
{
	auto_json json_t *params = json_pack("{s:s}", "id", id);
	json_t *labels = NULL, *grant = NULL;
	if (!params)
		return fail(err, CORDON_E_INVALID_REQUEST, 0, id, "session: the id is not UTF-8");
	if (cli_session_labels(options, true, &labels, err) < 0)
		return -1;
	if (json_object_size(labels))
		json_object_set(params, "labels", labels);
	json_decref(labels);
	if (set_idle(params, options_value(options, "idle-expiry"), err) < 0 ||
	    (grants && request_grants(options, &grant, err) < 0))
		return -1;
	if (json_object_size(grant))
		json_object_set(params, "grant", grant);
	json_decref(grant);
	set_revoked(params, options);
	return call(cordon, "session.update", params, ret_json, err);
}

int cli_session_list(struct cordon *cordon, const struct options *options, char **ret_json, struct cordon_error *err)
{
	json_t *labels = NULL;
	if (cli_session_labels(options, false, &labels, err) < 0)
		return -1;
	auto_json json_t *params = json_pack("{s:o}", "labels", labels);
	return call(cordon, "session.list", params, ret_json, err);
}

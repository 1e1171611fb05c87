/* The groups of hosts, for people and programs: config/groups.h as JSON. */
#include "api/policy.h"
#include "base/json.h"
#include "config/groups.h"
#include "walk.h"

static void write_texts(struct json *json, const char *key, const struct strings *texts)
{
	json_key(json, key);
	json_array_begin(json);
	for (size_t i = 0; i < texts->count; i++)
		json_text(json, texts->items[i]);
	json_array_end(json);
}

static int write_groups(struct json *json, const struct group_facts *facts, struct cordon_error *err)
{
	struct strings names;
	if (groups_names(facts, &names) < 0)
		return fail_oom(err);
	json_object_begin(json);
	json_key(json, "groups");
	json_array_begin(json);
	for (size_t i = 0; i < names.count; i++) {
		struct group group;
		if (groups_find(facts, names.items[i], &group, err) < 0)
			return -1;
		json_object_begin(json);
		json_key_string(json, "name", group.name);
		json_key_string(json, "help", group.help);
		write_texts(json, "hosts", &group.hosts);
		write_texts(json, "sources", &group.sources);
		json_object_end(json);
	}
	json_array_end(json);
	json_object_end(json);
	return 0;
}

int cordon_net_list(struct cordon *cordon, char **ret_json, struct cordon_error *err)
{
	const struct config *config;
	struct arena arena = { 0 };
	struct json json;
	if (call_check(err, cordon, ret_json) < 0 || policy_take(cordon, NULL, &config, err) < 0)
		return -1;
	const struct group_facts facts = { &arena, config, request_variable(NULL, "HOME"), request_environment(NULL) };
	json_init(&json);
	int result = write_groups(&json, &facts, err);
	char *text = json_take(&json);
	if (result == 0 && !text)
		result = fail_oom(err);
	if (result == 0)
		*ret_json = text;
	else
		free(text);
	config_unref(config);
	arena_free(&arena);
	return result;
}

/* `cordon cache`: one row per action. */
#include <stdio.h>

#include "door/cli/action.h"
#include "door/cli/json-read.h"
#include "door/cli/report.h"

static void print_untrusted(const char *label, const char *text)
{
	fputs(label, stdout);
	report_untrusted(stdout, text);
}

static void print_layer(const json_t *layer)
{
	const char *session = json_read_text(layer, "session");
	print_untrusted(*session ? "  session " : "  workspace ",
	                *session ? session : json_read_text(layer, "workspace"));
	printf("  %ld KiB%s\n", (json_read_number(layer, "bytes") + 1023) / 1024,
	       json_read_true(layer, "in_use") ? ", in use" : "");
}

static void print_list(const json_t *json)
{
	const json_t *caches = json_object_get(json, "caches"), *layers = json_object_get(json, "layers");
	puts(json_array_size(caches) ? "caches of this home, readable inside:" :
	                               "no package cache was found under the home directory");
	for JSON_EACH(cache, caches) {
		printf("  %-14s ", json_read_text(cache, "name"));
		print_untrusted("", json_read_text(cache, "host"));
		printf("  at %s\n", json_read_text(cache, "inside"));
	}
	puts(json_array_size(layers) ? "written by commands, kept apart from them:" :
	                               "nothing that commands wrote to them is kept");
	for JSON_EACH(layer, layers)
		print_layer(layer);
}

static int act_list(struct cordon *cordon, const struct options *options, const char *operand, struct cordon_error *err)
{
	auto_free char *json = NULL;
	(void)operand;
	if (cordon_cache_list(cordon, &json, err) < 0)
		return -1;
	json_read_say(json, options_flag(options, "json"), print_list);
	return 0;
}

static void print_cleared(const json_t *json)
{
	long in_use = json_read_number(json, "in_use");
	if (in_use)
		printf("%ld left as they are, because a command uses them\n", in_use);
}

static int act_clear(struct cordon *cordon, const struct options *options, const char *operand,
                     struct cordon_error *err)
{
	auto_free char *json = NULL;
	(void)operand;
	const char *workspace = options_value(options, "workspace");
	auto_free char *real = workspace ? realpath(workspace, NULL) : NULL;
	if (cordon_cache_clear(cordon, options_value(options, "session"), real ? real : workspace, &json, err) < 0)
		return -1;
	json_read_say(json, options_flag(options, "json"), print_cleared);
	return 0;
}

int cli_cache(char **words)
{
	static const struct action actions[] = {
		{ "list", NULL, false, NULL, act_list },
		{ "clear", NULL, false, "session workspace", act_clear },
	};
	return action_run(COMMAND_CACHE, actions, ARRAY_SIZE(actions), words);
}

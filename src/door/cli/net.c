/* `cordon net`: the groups of hosts that --net takes by name. */
#include <stdio.h>
#include <string.h>

#include "door/cli/action.h"
#include "door/cli/json-read.h"
#include "door/cli/report.h"

static void print_texts(const char *before, const json_t *texts)
{
	for JSON_EACH(text, texts) {
		printf("%s", before);
		report_untrusted(stdout, json_string_value(text));
		putchar('\n');
	}
}

static void print_groups(const json_t *json)
{
	for JSON_EACH(group, json_object_get(json, "groups")) {
		const char *help = json_read_text(group, "help");
		const json_t *hosts = json_object_get(group, "hosts"), *sources = json_object_get(group, "sources");
		printf("%s%s%s\n", json_read_text(group, "name"), *help ? ": " : "", help);
		print_texts("  ", hosts);
		if (!json_array_size(hosts))
			puts("  (none is configured on this machine)");
		print_texts("  by ", sources);
	}
}

static int act_list(struct cordon *cordon, const struct options *options, const char *operand, struct cordon_error *err)
{
	auto_free char *text = NULL;
	(void)operand;
	if (cordon_net_list(cordon, &text, err) < 0)
		return -1;
	json_read_say(text, options_flag(options, "json"), print_groups);
	return 0;
}

int cli_net(char **words)
{
	static const struct action actions[] = {
		{ "list", NULL, false, NULL, act_list },
	};
	return action_run(COMMAND_NET, actions, ARRAY_SIZE(actions), words);
}

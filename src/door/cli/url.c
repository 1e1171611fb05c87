/* `cordon url`: may it be fetched on an agent's behalf? */
#include <stdio.h>
#include <string.h>

#include "door/cli/action.h"
#include "door/cli/json-read.h"
#include "door/cli/report.h"

static void print_answer(const json_t *json, const char *url)
{
	const json_t *addresses = json_object_get(json, "addresses");
	bool allowed = json_read_true(json, "allowed");
	int widest = 0;
	for JSON_EACH(one, addresses) {
		int length = (int)strlen(json_read_text(one, "address"));
		widest = length > widest ? length : widest;
	}
	printf("%s: ", allowed ? "allowed" : "refused");
	report_untrusted(stdout, url);
	putchar('\n');
	bool is_said = allowed;
	for JSON_EACH(address, addresses) {
		const char *why = json_read_text(address, "why");
		is_said |= *why != '\0';
		printf("  %-*s  %s%s\n", widest, json_read_text(address, "address"), *why ? "refused: " : "allowed",
		       why);
	}
	if (!is_said)
		printf("  %s\n", json_read_text(json, "why"));
}

static int act_check(struct cordon *cordon, const struct options *options, const char *url, struct cordon_error *err)
{
	auto_free char *text = NULL;
	bool allowed = false;
	if (cordon_url_check(cordon, url, &text, &allowed, err) < 0)
		return -1;
	auto_json json_t *json = json_read(text);
	if (options_flag(options, "json"))
		puts(text);
	else
		print_answer(json, url);
	return allowed ? 0 : 1;
}

int cli_url(char **words)
{
	static const struct action actions[] = {
		{ "check", "the URL", false, NULL, act_check },
	};
	return action_run(COMMAND_URL, actions, ARRAY_SIZE(actions), words);
}

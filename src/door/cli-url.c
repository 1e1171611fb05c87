/* `cordon url`: may it be fetched on an agent's behalf? */
#include <stdio.h>
#include <string.h>

#include "door/action.h"
#include "door/json-indent.h"
#include "door/json-look.h"
#include "door/report.h"

struct text {
	char bytes[512];
};
#define TEXT(object, key) json_look_text(json_look_member(object, key), (struct text){ 0 }.bytes, sizeof(struct text))
#define EACH(element, array) (const char *element = json_look_first(array); element; element = json_look_next(element))

static void print_answer(const char *json, const char *url)
{
	const char *addresses = json_look_member(json, "addresses");
	bool allowed = json_look_true(json_look_member(json, "allowed"));
	int widest = 0;
	for EACH(one, addresses) {
		int length = (int)strlen(TEXT(one, "address"));
		widest = length > widest ? length : widest;
	}
	printf("%s: ", allowed ? "allowed" : "refused");
	report_untrusted(stdout, url);
	putchar('\n');
	bool is_said = allowed;
	for EACH(address, addresses) {
		const char *why = TEXT(address, "why");
		is_said |= *why != '\0';
		printf("  %-*s  %s%s\n", widest, TEXT(address, "address"), *why ? "refused: " : "allowed", why);
	}
	if (!is_said)
		printf("  %s\n", TEXT(json, "why"));
}

static int act_check(struct cordon *cordon, const struct options *options, const char *url, struct cordon_error *err)
{
	auto_free char *json = NULL;
	bool allowed = false;
	if (cordon_url_check(cordon, url, &json, &allowed, err) < 0)
		return -1;
	if (options_flag(options, "json"))
		json_indent(stdout, json, true);
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

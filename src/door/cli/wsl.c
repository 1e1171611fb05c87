/* `cordon wsl`: the distro of cordon's own on Windows. */
#include <stdio.h>
#include <string.h>

#include "door/cli/action.h"
#include "door/cli/json-read.h"
#include "door/cli/report.h"

static int act_setup(struct cordon *cordon, const struct options *options, const char *archive,
                     struct cordon_error *err)
{
	char path[CLI_PATH_SIZE], program[CLI_PATH_SIZE];
	const char *named = options->operand_count > 3 ? options->operands[3] : NULL;
	if (cli_absolute(archive, NULL, path, err) < 0 || (named && cli_absolute(named, NULL, program, err) < 0))
		return -1;
	return cordon_wsl_setup(cordon, path, options->operands[2], named ? program : NULL, err);
}

static int act_status(struct cordon *cordon, const struct options *options, const char *unused,
                      struct cordon_error *err)
{
	auto_free char *text = NULL;
	bool holds = false;
	(void)unused;
	if (cordon_wsl_status(cordon, &text, &holds, err) < 0)
		return -1;
	auto_json json_t *json = json_read(text);
	if (options_flag(options, "json")) {
		puts(text);
		return holds ? 0 : 1;
	}
	for JSON_EACH(check, json_object_get(json, "checks")) {
		printf("%-9s %-5s ", json_read_text(check, "name"), json_read_true(check, "holds") ? "holds" : "no");
		report_untrusted(stdout, json_read_text(check, "found"));
		putchar('\n');
	}
	return holds ? 0 : 1;
}

/* What is removed is not to be had back, so its name is typed. */
static int act_reset(struct cordon *cordon, const struct options *options, const char *unused, struct cordon_error *err)
{
	auto_free char *text = NULL;
	char name[128] = "";
	bool holds;
	(void)options;
	(void)unused;
	if (cordon_wsl_status(cordon, &text, &holds, err) < 0)
		return -1;
	fputs("cordon: everything in the distro is removed with it. Its name, to go on: ", stderr);
	fflush(stderr);
	if (!fgets(name, sizeof(name), stdin))
		name[0] = '\0';
	name[strcspn(name, "\r\n")] = '\0';
	return cordon_wsl_reset(cordon, name, err);
}

int cli_wsl(char **words)
{
	static const struct action actions[] = {
		{ "setup", "the archive\nits SHA-256\n", false, NULL, act_setup },
		{ "status", NULL, false, NULL, act_status },
		{ "reset", NULL, false, NULL, act_reset },
	};
	return action_run(COMMAND_WSL, actions, ARRAY_SIZE(actions), words);
}

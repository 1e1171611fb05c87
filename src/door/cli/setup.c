/* `cordon setup`: see door/setup/setup.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "door/cli/cli.h"
#include "door/cli/report.h"
#include "door/cli/self.h"
#include "door/cli/shell.h"
#include "door/setup/setup.h"

static int set_up(const struct options *options, struct arena *arena, struct cordon_error *err)
{
	const char *name = options->operand_count ? options->operands[0] : NULL;
	const struct setup_options wanted = { .undo = options_flag(options, "undo"),
		                              .dry_run = options_flag(options, "dry-run"),
		                              .mcp_only = options_flag(options, "mcp-only") };
	struct setup_paths paths = { .home = getenv("HOME") };
	char here[CLI_PATH_SIZE];
	enum agent_id agent = name ? agent_named(name) : AGENT_MAX;
	if (agent == AGENT_MAX || agent == AGENT_OTHER) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, name,
		     name ? "cordon does not know this agent" : "no agent was named");
		return fail_remedy(err, "one of claude, codex, gemini, opencode, goose, vscode, cursor");
	}
	if (!paths.home || *paths.home != '/')
		return fail(err, CORDON_E_INVALID_REQUEST, 0, "HOME", "is not set to a path from /");
	if (cli_absolute(".", NULL, here, err) < 0 || self_path(arena, &paths.cordon, err) < 0)
		return -1;
	/* To undo is possible also where cordon lies no more as it did. */
	if (!wanted.undo && self_beside(arena, SHELL_NAME, &paths.shell, err) < 0)
		return -1;
	paths.here = here;
	return setup_agent(arena, agent, &wanted, &paths, stdout, err);
}

int cli_setup(char **words)
{
	struct options options;
	struct cordon_error err = { 0 };
	struct arena arena = { 0 };
	int status;
	if (!cli_options(COMMAND_SETUP, words, 1, &options, &status))
		return status;
	status = 0;
	if (set_up(&options, &arena, &err) < 0) {
		report_error(&err, false);
		status = STATUS_REFUSED;
	}
	options_free(&options);
	arena_free(&arena);
	return status;
}

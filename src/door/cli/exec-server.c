/* `cordon exec-server`: the session, and the server (door/exec/exec.h). */
#include "base/arena.h"
#include "base/error.h"
#include "door/agent/agent.h"
#include "door/cli/agent.h"
#include "door/cli/cli.h"
#include "door/cli/report.h"
#include "door/exec/exec.h"

static int serve(const struct options *options, struct arena *arena, struct cordon_error *err)
{
	struct agent_caller caller = { .agent = AGENT_CODEX, .id = options_value(options, "agent-id") };
	const char *workspace = options_value(options, "workspace"), *session;
	struct cordon *cordon = NULL;
	char path[CLI_PATH_SIZE], cwd[CLI_PATH_SIZE];
	if (cli_absolute(".", NULL, cwd, err) < 0 || (workspace && cli_absolute(workspace, NULL, path, err) < 0) ||
	    cli_open_for(options, false, &cordon, err) < 0)
		return -1;
	caller.workspace = workspace ? path : NULL;
	int result = agent_profile_of(arena, agents[caller.agent].name, &caller.profile, err);
	if (result == 0)
		result = agent_session(arena, cordon, &caller, &session, err);
	if (result == 0)
		result = exec_serve(cordon, session, cwd, err);
	cordon_unref(cordon);
	return result;
}

int cli_exec_server(char **words)
{
	struct options options;
	struct cordon_error err;
	struct arena arena = { 0 };
	int status;
	if (!cli_options(COMMAND_EXEC_SERVER, words, 0, &options, &status))
		return status;
	status = 0;
	if (serve(&options, &arena, &err) < 0) {
		report_error_to(stderr, &err, false);
		status = STATUS_REFUSED;
	}
	options_free(&options);
	arena_free(&arena);
	return status;
}

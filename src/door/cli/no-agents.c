/* Where agents cannot be set up, have cordon for no shell, and start no server but that of MCP: each of these is refused.
 * Agents take the exit status 2 of a hook for a refusal, and some of them take any other failure for consent. */
#include "door/cli/cli.h"
#include "door/cli/missing.h"
#include "door/cli/report.h"
#include "door/cli/shell.h"
#include "door/setup/setup.h"

#define ELSEWHERE "run the agent on Linux, or in a Linux machine"

int cli_agent(char **words)
{
	(void)words;
	return missing_command(COMMAND_AGENT, ELSEWHERE, STATUS_REFUSED);
}

int cli_setup(char **words)
{
	(void)words;
	return missing_command(COMMAND_SETUP, ELSEWHERE, STATUS_REFUSED);
}

int cli_hook(char **words)
{
	(void)words;
	return missing_command(COMMAND_HOOK, ELSEWHERE, STATUS_USAGE);
}

int cli_shell(char **words)
{
	(void)words;
	return missing_command(COMMAND_SHELL, ELSEWHERE, STATUS_REFUSED);
}

int cli_exec_server(char **words)
{
	(void)words;
	return missing_command(COMMAND_EXEC_SERVER, ELSEWHERE, STATUS_REFUSED);
}

json_t *setup_look(struct arena *arena, const char *home, const char *here)
{
	(void)arena;
	(void)home;
	(void)here;
	return json_array();
}

bool shell_is_meant(char *const *words)
{
	return words[0] && words[0][0] == '-' && words[0][1] == 'c' && !words[0][2];
}

int shell_by_name(int count, char **words)
{
	(void)count;
	(void)words;
	return missing_command(COMMAND_SHELL, ELSEWHERE, STATUS_REFUSED);
}

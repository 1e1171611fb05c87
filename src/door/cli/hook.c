/* `cordon hook`: what an agent asks on standard input, the answer on standard output (door/agent/hook.h). Agents take
 * exit status 2 for a refusal, and some of them take any other failure for consent: whatever goes wrong here ends with
 * 2. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "door/agent/hook.h"
#include "door/cli/cli.h"
#include "door/cli/report.h"
#include "door/cli/self.h"

#define PATIENCE_S 5            /* for the input, which an agent writes at once */

static void end_refusing(int signal)
{
	(void)signal;
	_exit(STATUS_USAGE);
}

static void refuse_at_signals(void)
{
	static const int ends[] = { SIGALRM, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE, SIGSEGV, SIGBUS,
		                    SIGABRT, SIGILL,  SIGFPE, SIGSYS, SIGXCPU, SIGXFSZ, SIGUSR1, SIGUSR2 };
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		signal(ends[i], end_refusing);
}

static int read_input(char **ret_text, size_t *ret_length, struct cordon_error *err)
{
	auto_free char *text = NULL;
	size_t length = 0, capacity = 0;
	for (ssize_t got = 1; got != 0;) {
		if (capacity - length < 4096) {
			char *larger = length > HOOK_INPUT_MAX ? NULL : realloc(text, capacity = capacity * 2 + 65536);
			if (!larger)
				return fail(err, CORDON_E_INVALID_REQUEST, 0, "standard input",
				            "what the agent asks is too long");
			text = larger;
		}
		got = read(STDIN_FILENO, text + length, capacity - length);
		if (got < 0 && errno != EINTR)
			return fail(err, CORDON_E_INVALID_REQUEST, errno, "standard input",
			            "what the agent asks cannot be read");
		length += got > 0 ? (size_t)got : 0;
	}
	*ret_text = text;
	*ret_length = length;
	text = NULL;
	return 0;
}

static int write_answer(const char *line, struct cordon_error *err)
{
	size_t length = line ? strlen(line) : 0;
	if (!line)
		return fail_oom(err);
	for (ssize_t written; length; line += written, length -= (size_t)written)
		if ((written = write(STDOUT_FILENO, line, length)) < 0)
			return fail(err, CORDON_E_INTERNAL, errno, "standard output", "the answer cannot be written");
	return 0;
}

/* Agents tell their hooks, in the environment, where they were started. */
static const char *project_directory(void)
{
	static const char *const names[] = { "GEMINI_PROJECT_DIR", "CLAUDE_PROJECT_DIR" };
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *value = getenv(names[i]);
		if (value && *value == '/')
			return value;
	}
	return NULL;
}

static int answer(const struct options *options, struct arena *arena, struct cordon_error *err)
{
	const char *named = options_value(options, "agent"), *text = NULL;
	struct hook_facts facts = { .agent = named ? agent_named(named) : AGENT_MAX };
	auto_free char *input = NULL;
	size_t length = 0;
	if (named && facts.agent == AGENT_MAX)
		return fail(err, CORDON_E_INVALID_REQUEST, 0, named, "cordon does not know this agent");
	if (self_path(arena, &facts.shell, err) < 0 || read_input(&input, &length, err) < 0)
		return -1;
	const char *project = project_directory();
	facts.project = project ? agent_workspace(arena, project) : NULL;
	if (hook_answer(arena, input, length, &facts, &text, err) < 0)
		return -1;
	return write_answer(arena_printf(arena, "%s\n", text), err);
}

int cli_hook(char **words)
{
	struct options options;
	struct cordon_error err;
	struct arena arena = { 0 };
	int status;
	refuse_at_signals();
	alarm(PATIENCE_S);
	if (!cli_options(COMMAND_HOOK, words, 0, &options, &status))
		return status;
	if (answer(&options, &arena, &err) < 0) {
		report_error(&err, false);
		status = STATUS_USAGE;
	}
	options_free(&options);
	arena_free(&arena);
	return status;
}

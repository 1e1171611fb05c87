/* `cordon shell`, `cordon -c SCRIPT` and the program's other name, cordon-shell: the shell of an agent. What it is
 * given goes to bash as it is, inside, in the session of the agent's conversation (door/agent/agent.h); nothing looks
 * at the script. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "door/agent/agent.h"
#include "door/agent/agent-tmp.h"
#include "door/cli/agent.h"
#include "door/cli/cli.h"
#include "door/cli/report.h"
#include "door/cli/shell.h"
#include "door/rpc/client-ref.h"

#define BASH "/bin/bash"

/* The words of `cordon run`: they grow in an arena. */
struct words {
	struct arena arena;
	struct strings list;
	struct agent_tmp tmp;
	bool failed;
};

static void add(struct words *words, const char *word)
{
	words->failed |= !word || strings_add(&words->arena, &words->list, word) < 0;
}

static void add_option(struct words *words, const char *name, const char *value)
{
	add(words, arena_printf(&words->arena, "--%s=%s", name, value));
}

static void pass_variables(struct words *words, enum agent_id agent)
{
	const char *at = agents[agent].pass_variables;
	for (size_t length; (length = strcspn(at, " ")); at += length + (at[length] == ' '))
		add_option(words, "pass-env", arena_printf(&words->arena, "%.*s", (int)length, at));
}

/* What the ledger has of it. */
static void add_client_ref(struct words *words, const struct options *options, const struct agent_caller *caller)
{
	static const char *const ids[] = { "agent", "session_id", NULL };
	const char *given = options_value(options, "client-ref"), *variable = agents[caller->agent].id_variable;
	const char *id = caller->id || !variable ? caller->id : getenv(variable);
	if (given) {
		add_option(words, "client-ref", given);
		return;
	}
	json_t *known =
		id && *id ? json_pack("{s:s, s:s}", "agent", agents[caller->agent].name, "session_id", id) : NULL;
	auto_free char *ref = client_ref_make(known, ids);
	json_decref(known);
	if (ref)
		add_option(words, "client-ref", ref);
}

static int choose_caller(const struct options *options, struct words *words, struct agent_caller *ret_caller,
                         struct cordon_error *err)
{
	const char *agent = options_value(options, "agent"), *workspace = options_value(options, "workspace");
	char path[CLI_PATH_SIZE];
	struct agent_caller caller = { .agent = agent ? agent_named(agent) : agent_here(),
		                       .id = options_value(options, "agent-id"),
		                       .config = options_value(options, "config") };
	if (caller.agent == AGENT_MAX) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, agent, "cordon does not know this agent");
		return fail_remedy(err, "see cordon help shell; leave --agent out for any other");
	}
	if (workspace) {
		if (cli_absolute(workspace, NULL, path, err) < 0)
			return -1;
		caller.workspace = arena_strdup(&words->arena, path);
	}
	*ret_caller = caller;
	return 0;
}

static int make_words(const struct options *options, struct words *words, struct cordon_error *err)
{
	struct agent_caller caller = { 0 };
	struct cordon *cordon = NULL;
	const char *session = NULL;
	char cwd[CLI_PATH_SIZE];
	if (choose_caller(options, words, &caller, err) < 0 || cli_absolute(".", NULL, cwd, err) < 0 ||
	    cli_open(options, &cordon, err) < 0)
		return -1;
	int result = agent_profile_of(&words->arena, agents[caller.agent].name, &caller.profile, err);
	if (result == 0)
		result = agent_session(&words->arena, cordon, &caller, &session, err);
	if (result == 0)
		result = agent_tmp_begin(&words->arena, cordon, caller.agent, session, &words->tmp, err);
	cordon_unref(cordon);
	if (result < 0)
		return -1;
	add_option(words, "session", session);
	add_option(words, "cwd", cwd);
	if (caller.config)
		add_option(words, "config", caller.config);
	pass_variables(words, caller.agent);
	add_client_ref(words, options, &caller);
	add(words, "--");
	add(words, BASH);
	for (size_t i = 0; i < options->operand_count; i++)
		add(words, options->operands[i]);
	return words->failed ? fail_oom(err) : 0;
}

int cli_shell(char **given)
{
	struct options options;
	struct cordon_error err;
	struct words words = { 0 };
	int status;
	if (!cli_options(COMMAND_SHELL, given, SIZE_MAX, &options, &status))
		return status;
	if (make_words(&options, &words, &err) < 0) {
		report_error(&err, false);
		status = STATUS_REFUSED;
	} else {
		status = cli_run((char **)words.list.items);
		agent_tmp_end(&words.tmp);
	}
	options_free(&options);
	arena_free(&words.arena);
	return status;
}

/* What bash takes before the script: -c, -l -i -c, -lc. */
bool shell_is_meant(char *const *words)
{
	for (; *words && (*words)[0] == '-' && (*words)[1] && strspn(*words + 1, "cileux") == strlen(*words + 1);
	     words++)
		if (strchr(*words, 'c'))
			return words[1] != NULL;
	return false;
}

int shell_by_name(int count, char **words)
{
	static char dashes[] = "--", flag[] = "-c", end[] = "--";
	struct arena arena = { 0 };
	char **all = arena_alloc(&arena, ((size_t)count + 4) * sizeof(*all));
	struct cordon_error err;
	if (!all) {
		fail_oom(&err);
		report_error(&err, false);
		return STATUS_REFUSED;
	}
	all[0] = dashes;
	all[1] = flag;
	all[2] = end;
	memcpy(all + (count == 1 ? 3 : 1), words, (size_t)count * sizeof(*all));
	int status = cli_shell(all);
	arena_free(&arena);
	return status;
}

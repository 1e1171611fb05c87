/* `cordon agent`: a whole agent inside, by its profile (door/agent/profile.h), in a session of its own for this
 * workspace. It is `cordon run` in that session, with what the agent brings along before and its login after
 * (door/agent/bring.h). */
#include "door/cli/agent.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "door/agent/agent.h"
#include "door/agent/bring.h"
#include "door/agent/inside.h"
#include "door/cli/cli.h"
#include "door/cli/json-read.h"
#include "door/cli/report.h"
#include "door/cli/run.h"
#include "door/cli/self.h"
#include "door/setup/setup.h"

#define SETTINGS_MAX 512
#define WHOLE "whole"           /* in the place of a conversation's id */

struct start {
	struct arena *arena;
	const struct options *options;
	struct agent_found found;
	struct agent_setting settings[SETTINGS_MAX];
	size_t setting_count;
	struct strings words;           /* of cordon run */
	const char *session, *workspace, *cwd, *home, *inside;
	bool failed;
};

static void add(struct start *start, const char *key, const char *value)
{
	start->failed |= !value || start->setting_count == SETTINGS_MAX;
	if (!start->failed)
		start->settings[start->setting_count++] = (struct agent_setting){ key, value };
}

static void add_word(struct start *start, const char *word)
{
	start->failed |= !word || strings_add(start->arena, &start->words, word) < 0;
}

static void add_option(struct start *start, const char *name, const char *value)
{
	add_word(start, arena_printf(start->arena, "--%s=%s", name, value));
}

/* ---- what it may reach ------------------------------------------------------------------------------------------- */

static bool is_everywhere(const char *path)
{
	static const char *const places[] = { "/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/nix/store" };
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (path_within(path, places[i]))
			return true;
	return false;
}

/* A program that lies where commands do not look: the file, and of a package of node's all packages beside it. */
static void add_program(struct start *start)
{
	static const char packages[] = "/node_modules/";
	uncleared char real[PATH_MAX];
	const char *program = start->found.program;
	if (!realpath(program, real) || (is_everywhere(real) && is_everywhere(program)))
		return;
	char *inner = strstr(real, packages);
	add(start, "read", program);
	if (inner) {
		inner[sizeof(packages) - 2] = '\0';
		add(start, "read", arena_strdup(start->arena, real));
	}
}

/* As far as they exist. */
static void add_paths(struct start *start, const char *key, const struct strings *list)
{
	for (size_t i = 0; i < list->count; i++) {
		const char *path = list->items[i];
		if (path[0] == '~')
			path = arena_printf(start->arena, "%s%s", start->home, path + 1);
		if (!path || access(path, F_OK) == 0)
			add(start, key, path);
	}
}

static void add_profile(struct start *start)
{
	const struct agent_profile *profile = &start->found.profile;
	add_program(start);
	add_paths(start, "read", &profile->read);
	add_paths(start, "write", &profile->write);
	for (size_t i = 0; i < profile->hosts.count; i++)
		add(start, "net", profile->hosts.items[i]);
}

/* What belongs to each command goes with the command, the rest to the session. */
static int add_given(struct start *start, struct cordon_error *err)
{
	static const char *const of_command[] = { "env", "pass-env", "secrets" };
	char path[CLI_PATH_SIZE];
	for (size_t i = 0; i < start->options->given_count; i++) {
		const struct option_given *given = &start->options->given[i];
		const char *name = given->option->name, *value = given->value;
		bool is_path = given->option->completion == COMPLETE_FILE ||
		               given->option->completion == COMPLETE_DIRECTORY,
		     with_command = false;
		if (given->option->actor != OPTION_REQUEST || !strcmp(name, "workspace"))
			continue;
		for (size_t j = 0; j < ARRAY_SIZE(of_command); j++)
			with_command |= !strcmp(name, of_command[j]);
		if (is_path && cli_absolute(value, NULL, path, err) < 0)
			return -1;
		if (with_command)
			add_option(start, name, value);
		else
			add(start, name, is_path ? arena_strdup(start->arena, path) : value);
	}
	return start->failed ? fail(err, CORDON_E_INVALID_REQUEST, 0, start->found.name,
	                            "there are too many settings, or memory is short")
	                     : 0;
}

/* ---- the session ------------------------------------------------------------------------------------------------- */

static int choose_place(struct start *start, struct cordon_error *err)
{
	const char *named = options_value(start->options, "workspace");
	char path[CLI_PATH_SIZE];
	start->home = getenv("HOME");
	if (!start->home || *start->home != '/')
		return fail(err, CORDON_E_INVALID_REQUEST, 0, "HOME", "is not set to a path from /");
	if (cli_absolute(".", NULL, path, err) < 0)
		return -1;
	start->cwd = arena_strdup(start->arena, path);
	if (named && cli_absolute(named, NULL, path, err) < 0)
		return -1;
	start->workspace = !start->cwd ? NULL
	                   : named     ? path_normalise(start->arena, path)
	                               : agent_workspace(start->arena, start->cwd);
	if (!start->workspace)
		return fail_oom(err);
	if (!path_within(start->cwd, start->workspace))
		start->cwd = start->workspace;
	return 0;
}

static int open_session(struct start *start, struct cordon_error *err)
{
	const struct agent_caller caller = {
		.agent = AGENT_OTHER,
		.profile = &start->found.profile,
		.whole = start->found.name,
		.settings = start->settings,
		.setting_count = start->setting_count,
		.id = WHOLE,
		.workspace = start->workspace,
	};
	struct cordon *cordon = NULL;
	if (cli_open(start->options, &cordon, err) < 0)
		return -1;
	int result = agent_session(start->arena, cordon, &caller, &start->session, err);
	if (result == 0)
		result = inside_home(start->arena, cordon, start->session, &start->inside, err);
	cordon_unref(cordon);
	return result;
}

/* ---- the run ----------------------------------------------------------------------------------------------------- */

static void add_terminal(struct start *start)
{
	if (run_gives_terminals())
		add_word(start, "--tty");
	else
		fprintf(stderr, "cordon: commands have no terminal on this system: %s starts without one\n",
		        start->found.profile.title);
}

static void make_words(struct start *start)
{
	const struct agent_profile *profile = &start->found.profile;
	const char *config = options_value(start->options, "config");
	bool json = options_flag(start->options, "json");
	for (size_t i = 0; i < profile->variables.count; i++)
		add_option(start, "pass-env", profile->variables.items[i]);
	for (size_t i = 0; i < profile->set_count; i++)
		add_option(start, "env",
		           arena_printf(start->arena, "%s=%s", profile->set[i].name, profile->set[i].value));
	for (size_t i = 0; i < profile->toolchains.count; i++)
		add_option(start, "toolchain", profile->toolchains.items[i]);
	add_option(start, "session", start->session);
	add_option(start, "cwd", start->cwd);
	if (config)
		add_option(start, "config", config);
	if (json)
		add_word(start, "--json");
	else if (profile->terminal && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && isatty(STDERR_FILENO))
		add_terminal(start);
	add_word(start, "--");
	add_word(start, start->found.program);
	for (size_t i = 1; i < start->options->operand_count; i++)
		add_word(start, start->options->operands[i]);
}

struct written {
	struct arena *arena;
	json_t *files;
};

static const char *without_setup(void *arg, const char *path, const char *text)
{
	const struct written *written = arg;
	return setup_without(written->arena, written->files, path, text);
}

static int run(struct start *start, int *ret_status, struct cordon_error *err)
{
	struct written written = { start->arena, setup_written(start->arena, start->found.name, start->home) };
	struct bring bring = {
		.arena = start->arena,
		.profile = &start->found.profile,
		.home = start->home,
		.inside = start->inside,
		.remarks = stderr,
		.without_setup = written.files ? without_setup : NULL,
		.arg = &written,
	};
	int result = bring_in(&bring, err);
	fflush(stderr);
	json_decref(written.files);
	if (result == 0) {
		bring_watch(&bring);
		*ret_status = cli_run((char **)start->words.items);
		bring_back(&bring);
	}
	bring_free(&bring);
	return result;
}

static int start_agent(struct start *start, int *ret_status, struct cordon_error *err)
{
	if (agent_find(start->arena, start->options->operands[0], &start->found, err) < 0)
		return -1;
	if (!start->found.program) {
		fail(err, CORDON_E_PROGRAM_NOT_FOUND, 0, start->found.profile.program,
		     "%s is not installed: no directory of PATH has this program", start->found.profile.title);
		return fail_remedy(err, "install it, or add its directory to PATH");
	}
	if (choose_place(start, err) < 0)
		return -1;
	add_profile(start);
	if (add_given(start, err) < 0 || open_session(start, err) < 0)
		return -1;
	make_words(start);
	return start->failed ? fail_oom(err) : run(start, ret_status, err);
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static int carry_out(const struct options *options, struct arena *arena, int *ret_status, struct cordon_error *err)
{
	const char *first = options->operand_count ? options->operands[0] : "";
	bool json = options_flag(options, "json"), is_list = !strcmp(first, "list"), is_show = !strcmp(first, "show");
	size_t wanted = is_list ? 1 : is_show ? 2 : SIZE_MAX;
	*ret_status = 0;
	if (!*first || (is_show && options->operand_count < 2)) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, NULL, "no agent was named");
		return fail_remedy(err, "see cordon agent list");
	}
	if (options->operand_count > wanted)
		return fail(err, CORDON_E_INVALID_REQUEST, 0, options->operands[wanted],
		            "cordon agent %s takes no such argument", first);
	if (is_list)
		return agent_list(arena, json, err);
	if (is_show)
		return agent_show(arena, options->operands[1], json, err);
	struct start *start = arena_alloc(arena, sizeof(*start));
	if (!start)
		return fail_oom(err);
	start->arena = arena;
	start->options = options;
	return start_agent(start, ret_status, err);
}

int cli_agent(char **words)
{
	struct options options;
	struct cordon_error err;
	struct arena arena = { 0 };
	int status;
	if (!cli_options(COMMAND_AGENT, words, SIZE_MAX, &options, &status))
		return status;
	if (carry_out(&options, &arena, &status, &err) < 0) {
		report_error(&err, options_flag(&options, "json"));
		status = STATUS_REFUSED;
	}
	options_free(&options);
	arena_free(&arena);
	return status;
}

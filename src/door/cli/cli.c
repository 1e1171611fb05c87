/* The beginning of every command: words in, options out, or a refusal in the form that was asked for. */
#include "door/cli/cli.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/path-given.h"
#include "door/cli/json-read.h"
#include "door/cli/report.h"
#include "door/rpc/ask.h"

static int fail_operand(const struct options *options, enum command_id command, size_t max, struct cordon_error *err)
{
	fail(err, CORDON_E_INVALID_REQUEST, 0, options->operands[max], "cordon %s takes no such argument",
	     commands[command].name);
	return fail_remedy(err, "see cordon help %s", commands[command].name);
}

int cli_absolute(const char *named, const char *here, char ret_path[CLI_PATH_SIZE], struct cordon_error *err)
{
	uncleared char current[PATH_MAX], room[CLI_PATH_SIZE];
	const char *why, *given = path_given(named, room, sizeof(room), &why);
	if (!given)
		return fail(err, CORDON_E_INVALID_REQUEST, 0, named, "%s", why);
	named = given;
	if (named[0] == '~' && (named[1] == '/' || !named[1])) {
		here = getenv("HOME");
		if (!here || *here != '/') {
			fail(err, CORDON_E_INVALID_REQUEST, 0, named,
			     "HOME is not set to a path from /, so ~ means nothing");
			return fail_remedy(err, "write the path from / on, or set HOME");
		}
		named = named[1] && named[2] ? named + 2 : ".";
	} else if (*named == '/')
		here = "";
	else if (!here && !(here = getcwd(current, sizeof(current)))) {
		fail(err, CORDON_E_INVALID_REQUEST, errno, named, "the current directory has no name");
		return fail_remedy(err, "go to a directory that exists, or name another from /");
	}
	bool beneath = strcmp(named, ".") != 0;
	if ((size_t)snprintf(ret_path, CLI_PATH_SIZE, "%s%s%s", here, *here && beneath ? "/" : "",
	                     beneath ? named : "") >= CLI_PATH_SIZE)
		return fail(err, CORDON_E_INVALID_REQUEST, ENAMETOOLONG, named, "the path is too long");
	return 0;
}

int cli_open_for(const struct options *options, bool one_command, struct cordon **ret_cordon, struct cordon_error *err)
{
	const char *config = options_value(options, "config");
	if (config && !*config) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, "--config", "the name of the file is empty");
		return fail_remedy(err, "name a file, or leave the option out");
	}
	const char *host = options_value(options, "host");
	auto_json json_t *daemon = host ? ask_daemon(host, "status", NULL) : NULL;
	if (host && !json_read_text(daemon, "data_dir")[0]) {
		fail(err, CORDON_E_NOT_FOUND, 0, host, "host: no daemon of this user answers there");
		return fail_remedy(err, "start one: cordon serve");
	}
	const struct cordon_options wanted = { .config = config, .one_command = one_command,
		                               .data_dir = host ? json_read_text(daemon, "data_dir") : NULL };
	return cordon_open(&wanted, ret_cordon, err);
}

int cli_open(const struct options *options, struct cordon **ret_cordon, struct cordon_error *err)
{
	return cli_open_for(options, true, ret_cordon, err);
}

bool cli_options(enum command_id command, char **words, size_t operands_max, struct options *ret_options,
                 int *ret_status)
{
	bool starts_program = command == COMMAND_RUN || command == COMMAND_PROFILE || command == COMMAND_SHELL ||
	                      command == COMMAND_AGENT ||
	                      (command == COMMAND_JOB && *words && !strcmp(*words, "start"));
	struct options options = { 0 };
	struct cordon_error err;
	int status = starts_program ? STATUS_REFUSED : STATUS_USAGE;
	if (options_parse(command, words, &options, &err) < 0) {
		report_error(&err, options_want_json(words));
	} else if (options_flag(&options, "help")) {
		cli_print_help(command);
		status = 0;
	} else if (options.operand_count > operands_max) {
		fail_operand(&options, command, operands_max, &err);
		report_error(&err, options_flag(&options, "json"));
	} else {
		*ret_options = options;
		return true;
	}
	options_free(&options);
	*ret_status = status;
	return false;
}

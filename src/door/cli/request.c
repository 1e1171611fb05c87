/* Hands the options to the library, row by row, under the names they have in the table. */
#include "door/cli/request.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "door/cli/cli.h"

/* A person who types `cordon run` means the project they stand in. A session has a workspace of its own. */
static int set_workspace(struct cordon_request *request, const struct options *options, const char *here,
                         bool here_by_default, struct cordon_error *err)
{
	char path[CLI_PATH_SIZE];
	if (options_value(options, "workspace") || !here_by_default)
		return 0;
	return cli_absolute(".", here, path, err) < 0 || cordon_request_set(request, "workspace", path, err) < 0
	               ? -1 : cordon_request_set(request, "find-top", "true", err);
}

/* A path is relative to the caller's directory; but --cwd is beneath the workspace. */
static int find_value(const struct option_given *given, const char *here, char path[CLI_PATH_SIZE],
                      const char **ret_value, struct cordon_error *err)
{
	const struct option *option = given->option;
	const char *value = given->value;
	bool is_path = option->completion == COMPLETE_FILE || option->completion == COMPLETE_DIRECTORY;
	bool from_workspace = !strcmp(option->name, "cwd") && *value != '~';
	*ret_value = value;
	if (!is_path || !*value || from_workspace)
		return 0;
	*ret_value = path;
	return cli_absolute(value, here, path, err);
}

static int set_option(struct cordon_request *request, const struct option_given *given, const char *here,
                      struct cordon_error *err)
{
	char path[CLI_PATH_SIZE];
	const char *value;
	return find_value(given, here, path, &value, err) < 0 ? -1 :
	               cordon_request_set(request, given->option->name, value, err);
}

int request_grants(const struct options *options, json_t **ret_grants, struct cordon_error *err)
{
	char path[CLI_PATH_SIZE];
	json_t *grants = json_object();
	for (size_t i = 0; i < options->given_count; i++) {
		const struct option_given *given = &options->given[i];
		const char *value;
		if (given->option->actor != OPTION_REQUEST)
			continue;
		json_t *list = json_object_get(grants, given->option->name);
		if (!list && json_object_set_new(grants, given->option->name, list = json_array()) < 0)
			list = NULL;
		int found = find_value(given, NULL, path, &value, err);
		if (found < 0 || json_array_append_new(list, json_string(value)) < 0) {
			json_decref(grants);
			return found < 0 ? -1 : fail(err, CORDON_E_INVALID_REQUEST, 0, value, "this is not UTF-8");
		}
	}
	*ret_grants = grants;
	return 0;
}

static int set_command(struct cordon_request *request, const struct options *options, struct cordon_error *err)
{
	const char *line = options_value(options, "c");
	if (!line) {
		if (options->operand_count)
			return cordon_request_command(request, options->operands, err);
		fail(err, CORDON_E_INVALID_REQUEST, 0, NULL, "no command was given");
		return fail_remedy(err, "add it after --, as in: -- ls -l");
	}
	auto_free const char **words = calloc(options->operand_count + 4, sizeof(*words));
	if (!words)
		return fail_oom(err);
	words[0] = "/bin/sh";
	words[1] = "-c";
	words[2] = line;
	for (size_t i = 0; i < options->operand_count; i++)
		words[3 + i] = options->operands[i];
	return cordon_request_command(request, words, err);
}

static int fill(struct cordon_request *request, const struct options *options, const char *here, bool with_command,
                struct cordon_error *err)
{
	for (size_t i = 0; i < options->given_count; i++) {
		const struct option_given *given = &options->given[i];
		/* A session that is to be made has its id by another way. */
		if (given->option->actor == OPTION_REQUEST &&
		    (with_command || strcmp(given->option->name, "session")) &&
		    set_option(request, given, here, err) < 0)
			return -1;
	}
	if (set_workspace(request, options, here, with_command && !options_value(options, "session"), err) < 0)
		return -1;
	return with_command ? set_command(request, options, err) : 0;
}

static int build(const struct options *options, const char *here, bool with_command,
                 struct cordon_request **ret_request, struct cordon_error *err)
{
	struct cordon_request *request;
	if (cordon_request_new(&request, err) < 0)
		return -1;
	if (fill(request, options, here, with_command, err) < 0) {
		cordon_request_unref(request);
		return -1;
	}
	*ret_request = request;
	return 0;
}

int request_build(const struct options *options, const char *here, struct cordon_request **ret_request,
                  struct cordon_error *err)
{
	return build(options, here, true, ret_request, err);
}

int request_settings(const struct options *options, struct cordon_request **ret_request, struct cordon_error *err)
{
	return build(options, NULL, false, ret_request, err);
}

int request_session_settings(const struct options *options, struct cordon_request **ret_request,
                             struct cordon_error *err)
{
	struct cordon_request *request;
	if (build(options, NULL, false, &request, err) < 0)
		return -1;
	if (!options_value(options, "workspace") && set_workspace(request, options, NULL, true, err) < 0) {
		cordon_request_unref(request);
		return -1;
	}
	*ret_request = request;
	return 0;
}

static int fill_all(struct cordon_request *request, const struct options *options, struct cordon_error *err)
{
	for (size_t i = 0; i < options->given_count; i++)
		if (options->given[i].option->actor == OPTION_REQUEST &&
		    set_option(request, &options->given[i], NULL, err) < 0)
			return -1;
	return set_workspace(request, options, NULL, !options_value(options, "session"), err);
}

int request_file_settings(const struct options *options, struct cordon_request **ret_request, struct cordon_error *err)
{
	struct cordon_request *request;
	if (cordon_request_new(&request, err) < 0)
		return -1;
	if (fill_all(request, options, err) < 0) {
		cordon_request_unref(request);
		return -1;
	}
	*ret_request = request;
	return 0;
}

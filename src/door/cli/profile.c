/* `cordon profile`: the walls that run would raise, as JSON. Nothing is started and nothing created. */
#include <stdio.h>

#include "door/cli/cli.h"
#include "door/cli/json-read.h"
#include "door/cli/report.h"
#include "door/cli/request.h"

static int print_profile(const struct options *options, struct cordon_error *err)
{
	struct cordon *cordon = NULL;
	struct cordon_request *request = NULL;
	auto_free char *json = NULL;
	/* As `run` would have it with the same options. */
	const char *plain = options_flag(options, "session") ? "false" : "true";
	int failed = request_build(options, NULL, &request, err) < 0 ||
	             cordon_request_set(request, "plain", plain, err) < 0 || cli_open(options, &cordon, err) < 0 ||
	             cordon_profile(cordon, request, &json, err) < 0;
	if (!failed)
		json_read_print(json, options_flag(options, "json"));
	cordon_request_unref(request);
	cordon_unref(cordon);
	return failed ? -1 : 0;
}

int cli_profile(char **words)
{
	struct options options;
	struct cordon_error err;
	int status;
	if (!cli_options(COMMAND_PROFILE, words, SIZE_MAX, &options, &status))
		return status;
	status = 0;
	if (print_profile(&options, &err) < 0) {
		report_error(&err, options_flag(&options, "json"));
		status = report_error_status(&err);
	}
	options_free(&options);
	return status;
}

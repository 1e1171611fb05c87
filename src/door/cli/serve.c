/* `cordon serve`: options, and the daemon (door/daemon/server.h). */
#include "base/error.h"
#include "base/text.h"
#include "cordon-internal.h"
#include "door/cli/cli.h"
#include "door/cli/report.h"
#include "door/daemon/server.h"

static int read_options(const struct options *options, struct serve_options *ret_options, struct cordon_error *err)
{
	const char *idle = options_value(options, "idle");
	*ret_options = (struct serve_options){ .config = options_value(options, "config") };
	if (!idle || (text_parse_duration(idle, &ret_options->idle_ms) && ret_options->idle_ms))
		return 0;
	fail(err, CORDON_E_INVALID_REQUEST, 0, idle, "idle: must be a time such as 60s or 5m");
	return fail_remedy(err, "see cordon help serve");
}

int cli_serve(char **words)
{
	struct options options;
	struct serve_options wanted;
	struct cordon_error err;
	int status;
	if (!cli_options(COMMAND_SERVE, words, 0, &options, &status))
		return status;
	status = 0;
	if (read_options(&options, &wanted, &err) < 0 || serve_run(&wanted, &err) < 0) {
		report_error(&err, options_flag(&options, "json"));
		status = STATUS_REFUSED;
	}
	options_free(&options);
	return status;
}

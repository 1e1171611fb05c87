/* Where there is no daemon: `cordon run` carries everything out itself, and what needs one is refused. */
#include <sys/utsname.h>

#include "base/error.h"
#include "door/cli/cli.h"
#include "door/cli/missing.h"
#include "door/cli/report.h"
#include "door/cli/run-remote.h"
#include "door/rpc/ask.h"

int missing_command(enum command_id command, const char *remedy, int status)
{
	struct cordon_error err;
	struct utsname system = { 0 };
	uname(&system);
	fail(&err, CORDON_E_INVALID_REQUEST, 0, commands[command].name, "cordon %s is not there on %.40s",
	     commands[command].name, system.sysname);
	fail_remedy(&err, "%s", remedy);
	report_error_to(stderr, &err, false);
	return status;
}

int cli_serve(char **words)
{
	(void)words;
	return missing_command(COMMAND_SERVE, "cordon run works without a daemon", STATUS_REFUSED);
}

int cli_rpc(char **words)
{
	(void)words;
	return missing_command(COMMAND_RPC, "use cordon run --json", STATUS_REFUSED);
}

json_t *ask_daemon(const char *host, const char *method, const char *id)
{
	(void)host;
	(void)method;
	(void)id;
	return NULL;
}

/* ---- a daemon, for cordon run ------------------------------------------------------------------------------------ */

bool remote_open(struct run *run, const char *command, const struct options *options, char **words)
{
	(void)run;
	(void)command;
	(void)options;
	(void)words;
	return false;
}

bool remote_declined(const struct run *run)
{
	(void)run;
	return true;
}

void remote_raise_kept(struct run *run)
{
	(void)run;
}

int remote_finish(struct run *run, int *ret_status, struct cordon_error *err)
{
	(void)run;
	(void)ret_status;
	return fail(err, CORDON_E_INTERNAL, 0, NULL, "there is no daemon");
}

void remote_close(struct run *run)
{
	(void)run;
}

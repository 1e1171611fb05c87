/* Where no process can be left behind to follow a job. */
#include <sys/utsname.h>

#include "base/error.h"
#include "door/cli/cli.h"
#include "door/cli/job-start.h"
#include "door/cli/report.h"

int job_start_here(struct run *run, const struct options *options)
{
	struct cordon_error err;
	struct utsname system = { 0 };
	(void)run;
	uname(&system);
	fail(&err, CORDON_E_INVALID_REQUEST, 0, "job start",
	     "cordon job start is not there on %.40s: nothing stays to follow the job", system.sysname);
	fail_remedy(&err, "start the command with cordon run");
	report_error(&err, options_flag(options, "json"));
	return STATUS_REFUSED;
}

/* Systems for which cordon-proxy is not built: see driver/proxy.h. A network of listed hosts is refused. */
#include "driver/proxy.h"

#include <sys/utsname.h>

static int refuse(struct cordon_error *err)
{
	struct utsname system = { 0 };
	uname(&system);
	fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, "cordon-proxy", "cordon-proxy is not built for %.40s",
	     system.sysname);
	fail_boundary(err, "network");
	return fail_remedy(err, "choose --net none or --net all");
}

int proxy_open(struct proxy_process *ret_process, struct cordon_error *err)
{
	(void)ret_process;
	return refuse(err);
}

int proxy_start(struct proxy_process *process, int program_fd, struct cordon_error *err)
{
	(void)process;
	(void)program_fd;
	return refuse(err);
}

void proxy_end(struct proxy_process *process)
{
	(void)process;
}

void proxy_kill(const struct proxy_process *process)
{
	(void)process;
}

int proxy_program_fd(struct cordon_error *err)
{
	return refuse(err);
}

int proxy_gateway_fd(struct cordon_error *err)
{
	return refuse(err);
}

/* What macOS has for probing and for limits: see driver/machine.h. */
#include "driver/machine.h"

const char *driver_probe_program(void)
{
	return "/usr/bin/true";
}

const char *driver_temporary_directory(void)
{
	return "/private/tmp";
}

void driver_groups_look(const char *directory, struct driver_groups *ret_groups)
{
	(void)directory;
	*ret_groups =
		(struct driver_groups){ .why = "macOS has no group of processes that the kernel holds limits for" };
}

const char *driver_groups_fix(void)
{
	return "nothing: memory and processes are watched, and a command that goes beyond its limit is ended";
}

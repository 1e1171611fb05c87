/* What a system without a driver has for probing and for limits: see driver/machine.h. */
#include "driver/machine.h"

const char *driver_probe_program(void)
{
	return "/bin/true";
}

const char *driver_temporary_directory(void)
{
	return "/tmp";
}

void driver_groups_look(const char *directory, struct driver_groups *ret_groups)
{
	(void)directory;
	*ret_groups = (struct driver_groups){ .why = "there are none on this system" };
}

const char *driver_groups_fix(void)
{
	return "run the command on Linux, or in a Linux machine";
}

void driver_sweep(const char *data_dir)
{
	(void)data_dir;
}

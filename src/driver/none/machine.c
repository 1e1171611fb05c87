/* A machine without control groups and Landlock: see driver/machine.h. Of every system but Linux; the
 * rest is answered by means.c, or by a file of the system's own. */
#include "driver/machine.h"

#include <unistd.h>

int driver_landlock_abi(void)
{
	return 0;
}

uint32_t driver_inside_uid(void)
{
	return (uint32_t)geteuid();
}

uint32_t driver_inside_gid(void)
{
	return (uint32_t)getegid();
}

void driver_groups_sweep(const char *directory)
{
	(void)directory;
}

bool driver_groups_show(const char *path, int known_fd)
{
	(void)path;
	(void)known_fd;
	return false;
}

void driver_settle(void)
{
}

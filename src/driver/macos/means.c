/* What macOS has for probing and for limits: see driver/machine.h. */
#include "driver/machine.h"

#include <limits.h>

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

/* See base/macos/system.h. */
int system_prlimit(pid_t pid, int resource, const struct rlimit *limit, struct rlimit *ret_before)
{
	if (pid) {
		errno = ENOSYS;
		return -1;
	}
	if (ret_before && getrlimit(resource, ret_before) < 0)
		return -1;
	if (!limit)
		return 0;
	struct rlimit wanted = *limit;
	if (resource == RLIMIT_NOFILE && wanted.rlim_cur > OPEN_MAX)
		wanted.rlim_cur = OPEN_MAX;
	return setrlimit(resource, &wanted);
}

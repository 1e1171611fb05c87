/* Processes are asked about by libproc and sysctl(); see base/pid.h. */
#include "base/pid.h"

#include <errno.h>
#include <libproc.h>
#include <limits.h>
#include <mach-o/dyld.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysctl.h>

#include "base/cleanup.h"
#include "base/macos/arguments.h"

bool pid_parent(pid_t pid, pid_t *ret_parent, unsigned long long *ret_started)
{
	struct proc_bsdinfo info;
	if (proc_pidinfo(pid, PROC_PIDTBSDINFO, 0, &info, sizeof(info)) != (int)sizeof(info))
		return false;
	*ret_parent = (pid_t)info.pbi_ppid;
	*ret_started = info.pbi_start_tvsec * 1000000 + info.pbi_start_tvusec;
	return true;
}

char *pid_environment(pid_t pid, size_t *ret_length)
{
	int most[] = { CTL_KERN, KERN_ARGMAX }, told[] = { CTL_KERN, KERN_PROCARGS2, pid }, room = 0;
	size_t size = sizeof(room), length = 0;
	if (sysctl(most, ARRAY_SIZE(most), &room, &size, NULL, 0) < 0 || room <= 0)
		return NULL;
	auto_free char *bytes = malloc(size = (size_t)room);
	if (!bytes || sysctl(told, ARRAY_SIZE(told), bytes, &size, NULL, 0) < 0)
		return NULL;
	const char *variables = arguments_environment(bytes, size, &length);
	char *copy = variables ? malloc(length) : NULL;
	if (copy) {
		memcpy(copy, variables, length);
		*ret_length = length;
	}
	return copy;
}

static int put(const char *path, char *ret_path, size_t size)
{
	size_t length = strlen(path);
	if (!length || length >= size)
		return -ENAMETOOLONG;
	memcpy(ret_path, path, length + 1);
	return 0;
}

int pid_directory(pid_t pid, char *ret_path, size_t size)
{
	struct proc_vnodepathinfo info;
	errno = 0;
	if (proc_pidinfo(pid, PROC_PIDVNODEPATHINFO, 0, &info, sizeof(info)) != (int)sizeof(info))
		return errno ? -errno : -ESRCH;
	return put(info.pvi_cdir.vip_path, ret_path, size);
}

int pid_own_program(char *ret_path, size_t size)
{
	char named[PATH_MAX], path[PATH_MAX];
	uint32_t room = sizeof(named);
	if (_NSGetExecutablePath(named, &room) != 0)
		return -ENAMETOOLONG;
	return realpath(named, path) ? put(path, ret_path, size) : -errno;
}

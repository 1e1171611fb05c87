/* init of a slot whose command is a shell that waits for its line: see shell-park.h. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "run/control.h"
#include "run/shell-park.h"
#include "run/slot.h"
#include "run/sys.h"

static void tell(int kind, long value)
{
	struct control_message message = { .kind = kind, .value = (int32_t)value };
	sys6(SYS_sendto, CONTROL_FD, (long)&message, sizeof(message), MSG_NOSIGNAL, 0, 0);
}

/* It begins before anybody asked for it, and for what it does then nobody answers. So it must be a shell that no command can
 * have written: not one of the user's own files, and from where nothing can be written, whatever name led to it. */
static long judge(long command)
{
#if defined(__x86_64__)
	struct stat info;
	struct statfs mount;
	long fd = shell_open(command, "/exe", O_PATH);
	long result = fd < 0 ? fd : sys_2(SYS_fstat, fd, &info);
	if (result >= 0)
		result = sys_2(SYS_fstatfs, fd, &mount);
	if (fd >= 0)
		sys_1(SYS_close, fd);
	if (result < 0)
		return result;
	return (mount.f_flags & MS_RDONLY) && info.st_uid != (uid_t)sys_0(SYS_geteuid) ? 0 : -EPERM;
#else
	(void)command;
	return 0;
#endif
}

static long park(const struct launch *launch, long command, bool there, struct parked_shell *shell)
{
	if (!there)
		tell(CONTROL_PARKING, 0);
	long result = shell_park(command, there, judge, shell);
	/* A command that was to be held kept us where it is. */
	if (launch->cpus_size > 0)
		sys_3(SYS_sched_setaffinity, 0, launch->cpus_size, launch->cpus);
	tell(CONTROL_PARKED, result);
	return result;
}

/* On the processor that we were sent to: the kernel might put it where the supervisor is at work. */
static void take_along(const struct launch *launch, long command, unsigned here)
{
	unsigned long cpus[ARRAY_SIZE(launch->cpus)] = { 0 };
	if (launch->cpus_size <= 0 || here >= LAUNCH_CPUS_MAX)
		return;
	cpus[here / (8 * sizeof(long))] = 1UL << here % (8 * sizeof(long));
	sys_3(SYS_sched_setaffinity, command, launch->cpus_size, cpus);
}

static long set_free(const struct launch *launch, long command)
{
	sys_3(SYS_sched_setaffinity, 0, launch->cpus_size, launch->cpus);
	return sys_3(SYS_sched_setaffinity, command, launch->cpus_size, launch->cpus);
}

bool init_park(const struct launch *launch, long command, bool there)
{
	static struct {
		struct control_message message;
		char line[SHELL_LINE_MAX + 1];
	} told;
	static struct parked_shell shell;
	unsigned here = 0;
	if (park(launch, command, there, &shell) < 0)
		return false;
	long length = sys6(SYS_recvfrom, CONTROL_FD, (long)&told, sizeof(told), 0, 0, 0);
	if (length < (long)sizeof(told.message) || told.message.kind != CONTROL_LINE)
		return false;
	sys_3(SYS_getcpu, &here, NULL, NULL);
	/* On the processor of who decides whether it may run we would only be in its way. */
	bool aside = (int32_t)here != told.message.value;
	if (aside)
		take_along(launch, command, here);
	long result = shell_write(&shell, told.line, (size_t)length - sizeof(told.message));
	/* We were sent here, and who sent us may have come after us. */
	if (result == 0 && launch->cpus_size > 0)
		result = set_free(launch, command);
	tell(CONTROL_WRITTEN, result);
	return result == 0 && init_await(aside) == CONTROL_GO && shell_go(&shell) >= 0;
}

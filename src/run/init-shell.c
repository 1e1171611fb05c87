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

static long park(long command, struct parked_shell *shell)
{
	tell(CONTROL_PARKING, 0);
	long result = shell_park(command, judge, shell);
	tell(CONTROL_PARKED, result);
	return result;
}

bool init_park(long command)
{
	static struct {
		struct control_message message;
		char line[SHELL_LINE_MAX + 1];
	} told;
	static struct parked_shell shell;
	unsigned here = 0;
	if (park(command, &shell) < 0)
		return false;
	long length = sys6(SYS_recvfrom, CONTROL_FD, (long)&told, sizeof(told), 0, 0, 0);
	if (length < (long)sizeof(told.message) || told.message.kind != CONTROL_LINE)
		return false;
	long result = shell_write(&shell, told.line, (size_t)length - sizeof(told.message));
	tell(CONTROL_WRITTEN, result);
	if (result < 0)
		return false;
	/* On the processor of who decides whether it may run we would only be in its way. */
	sys_3(SYS_getcpu, &here, NULL, NULL);
	return init_await_go((int32_t)here != told.message.value) && shell_go(&shell) >= 0;
}

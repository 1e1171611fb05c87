/* init of a slot whose command becomes its program before that may run. The command asks to be traced and executes; the kernel
 * stops it when the program is there and none of its instructions has run. What init does then is wait for the supervisor, and
 * let it go as if it had never been traced; or the program is a shell, to be parked. Should we end instead, everything here does. */
#include <linux/ptrace.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "run/control.h"
#include "run/slot.h"
#include "run/sys.h"

#define LOOKS 200                       /* some 100 microseconds: who waits awake need not be woken */
#define STOPPED_BY_EXEC (SIGTRAP << 8 | 0x7f)

int init_await(bool awake)
{
	struct control_message message;
	long length = -EAGAIN;
	for (int i = awake ? LOOKS : 0; i > 0 && length == -EAGAIN; i--)
		length = sys6(SYS_recvfrom, CONTROL_FD, (long)&message, sizeof(message), MSG_DONTWAIT, 0, 0);
	if (length == -EAGAIN)
		length = sys6(SYS_recvfrom, CONTROL_FD, (long)&message, sizeof(message), 0, 0, 0);
	/* Nobody is there any more. */
	if (length <= 0)
		sys_exit(1);
	return length == sizeof(message) ? message.kind : 0;
}

static bool let_go(const struct launch *launch, long command)
{
	if (sys_4(SYS_ptrace, PTRACE_DETACH, command, 0, 0) < 0)
		return false;
	/* The command kept us where it is. */
	if (launch->cpus_size > 0)
		sys_3(SYS_sched_setaffinity, 0, launch->cpus_size, launch->cpus);
	return true;
}

bool init_hold(const struct launch *launch, long command, int *ret_status)
{
	/* Not in a poll: who waits for a child is woken beside it, on a processor that is awake. Meanwhile the command has the slot's
	 * socket, and ends when that closes, unless it is at its program: then the keeper ends us. */
	if (sys_4(SYS_wait4, command, ret_status, __WALL, NULL) < 0)
		sys_exit(1);
	if (!WIFSTOPPED(*ret_status))
		return false;
	int told = *ret_status == STOPPED_BY_EXEC ? init_await(true) : 0;
	*ret_status = SIGKILL;
	return told == CONTROL_GO ? let_go(launch, command) : told == CONTROL_PARK && init_park(launch, command, true);
}

/* Between clone and exec of cordon-proxy: see driver/proxy.h. Compiled like the rest of what runs in the caller's memory: see
 * child.c. */
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <signal.h>

#include "base/compat.h"
#include "driver/linux/launch.h"
#include "driver/proxy.h"
#include "driver/linux/sys.h"

#define SOCKET_FD 3

/* 0, 1 and 2 are nothing, so that no connection becomes one of them. What must not be where something else belongs is
 * moved out of the way first. */
static long place_descriptors(struct proxy_launch *launch, long *ret_program)
{
	long program = sys_3(SYS_fcntl, launch->program_fd, F_DUPFD_CLOEXEC, SOCKET_FD + 1);
	long socket = sys_3(SYS_fcntl, launch->socket_fd, F_DUPFD_CLOEXEC, SOCKET_FD + 1);
	long nothing = sys_4(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC, 0);
	if (program < 0 || socket < 0 || nothing < 0)
		return program < 0 ? program : socket < 0 ? socket : nothing;
	if (nothing <= SOCKET_FD)
		nothing = sys_3(SYS_fcntl, nothing, F_DUPFD_CLOEXEC, SOCKET_FD + 1);
	long result = nothing;
	for (int fd = 0; fd < SOCKET_FD && result >= 0; fd++)
		result = sys_3(SYS_dup3, nothing, fd, 0);
	if (result >= 0)
		result = sys_3(SYS_dup3, socket, SOCKET_FD, 0);
	*ret_program = program;
	return result < 0 ? result : launch_close_all(SOCKET_FD + 1, ~0U, CLOSE_RANGE_CLOEXEC);
}

static void enter(void *argument)
{
	static const char *const argv[] = { "cordon-proxy", NULL }, *const environment[] = { NULL };
	struct proxy_launch *launch = argument;
	long program = -1;
	uint64_t none = 0;
	launch_reset_signals();
	/* What the terminal sends to the caller's group is not for it. */
	long result = sys_0(SYS_setsid);
	if (result >= 0)
		result = sys_1(SYS_chdir, "/");
	if (result >= 0)
		result = place_descriptors(launch, &program);
	sys_4(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof(none));
	if (result >= 0)
		result = sys_5(SYS_execveat, program, "", argv, environment, AT_EMPTY_PATH);
	launch->failure = result;
	sys_exit(1);
}

long proxy_clone(struct proxy_launch *launch, void *stack, size_t size)
{
	struct clone_args args = { .flags = CLONE_VM | CLONE_VFORK | CLONE_CLEAR_SIGHAND | CLONE_PIDFD,
	                           .pidfd = (uint64_t)(uintptr_t)&launch->pidfd,
	                           .stack = (uint64_t)(uintptr_t)stack,
	                           .stack_size = size };
	long pid = sys_clone3(&args, sizeof(args), enter, launch);
	/* As in child-clone.c: filters that cannot look into its arguments refuse it whole. */
	if (pid != -ENOSYS && pid != -EPERM)
		return pid;
	return sys_clone(CLONE_VM | CLONE_VFORK | CLONE_PIDFD, (char *)stack + size, &launch->pidfd, NULL, enter,
	                 launch);
}

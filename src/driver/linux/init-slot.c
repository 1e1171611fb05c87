/* A slot's pid 1: raises the walls as `first` of launch.h's picture does, in memory of its own, and is init from then on. */
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/futex.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

#include "driver/linux/control.h"
#include "driver/linux/slot.h"
#include "driver/linux/sys.h"

/* The command may have died instead, so it is not waited for without looking. */
static int await_seal(struct launch *launch)
{
	struct timespec pause = { .tv_nsec = 10000000 };
	while (!__atomic_load_n(&launch->sealed, __ATOMIC_ACQUIRE)) {
		if (launch->failed)
			return -1;
		if (!__atomic_load_n(&launch->loading, __ATOMIC_ACQUIRE))
			return launch_unavailable(launch, 0, "lifetime", NULL, "the command's process died before it was told what to run");
		sys_4(SYS_futex, &launch->sealed, FUTEX_WAIT, 0, &pause);
	}
	return 0;
}

/* See child-seal.c. Where it cannot be had, the filter goes with the program. */
static void hold_filter(struct launch *launch, long command)
{
	long process = launch->filter_fd < 0 ? -1 : sys_2(SYS_pidfd_open, command, 0);
	launch->filter_fd = process < 0 ? -1 : (int)sys_3(SYS_pidfd_getfd, process, launch->filter_fd, 0);
	if (process >= 0)
		sys_1(SYS_close, process);
}

static int raise_slot(struct launch *launch, long *ret_command)
{
	/* Else the maps are not ours to write, nor the descriptors in /proc to name. Nobody is here to make use of it. */
	sys_5(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0);
	*ret_command = launch_raise(launch);
	if (*ret_command < 0 || launch_leave_host(launch) < 0 || launch_raise_network(launch) < 0 ||
	    await_seal(launch) < 0)
		return -1;
	hold_filter(launch, *ret_command);
	return 0;
}

/* As init it has the control socket and what holds the filter, and nothing else: no capability. Until then its capabilities keep the
 * command from tracing it. */
static long settle(const struct launch *launch)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 } };
	if (launch->control_fd != CONTROL_FD && sys_3(SYS_dup3, launch->control_fd, CONTROL_FD, 0) < 0)
		return -1;
	launch_close_all(0, CONTROL_FD - 1, 0);
	bool holds = launch->filter_fd == CONTROL_FD + 1 ||
	             (launch->filter_fd >= 0 && sys_3(SYS_dup3, launch->filter_fd, CONTROL_FD + 1, 0) >= 0);
	launch_close_all(CONTROL_FD + 1 + holds, ~0U, 0);
	sys_1(SYS_chdir, "/");
	sys_5(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	sys_5(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
	return sys_2(SYS_capset, &header, none);
}

/* With the root, by which is seen whether what lies in it is still where it was put. */
static long tell_ready(const struct launch *launch)
{
	const int32_t kind = SLOT_READY;
	union {
		struct cmsghdr header;
		unsigned char space[CMSG_SPACE(sizeof(int))];
	} control = { .header = { .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
	struct iovec part = { (void *)(uintptr_t)&kind, offsetof(struct slot_reply, error) };
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
	                         .msg_controllen = sizeof(control) };
	long root = launch->root_fd >= 0 ? launch->root_fd : sys_4(SYS_openat, AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	if (root < 0)
		return root;
	*(int *)(void *)CMSG_DATA(&control.header) = (int)root;
	return sys_3(SYS_sendmsg, launch->slot_fd, &header, MSG_NOSIGNAL);
}

void launch_slot(struct launch *launch)
{
	long command = -1;
	launch->root_fd = launch->filter_fd = -1;
	if (raise_slot(launch, &command) < 0) {
		slot_tell_failure(launch, launch->slot_fd);
		sys_exit(1);
	}
	/* The program may run as soon as this is heard. The end of the socket is how it is told from us. */
	if (tell_ready(launch) < 0)
		sys_exit(1);
	sys_1(SYS_close, launch->slot_fd);
	if (settle(launch) < 0)
		sys_exit(1);
	init_serve(launch->init_mode, command, launch);
}

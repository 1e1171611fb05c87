/* The starter and its reapers: see starter.h. Freestanding, like init.c. */
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/sched/types.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "base/compat.h"
#include "driver/linux/control.h"
#include "driver/linux/order.h"
#include "driver/linux/starter.h"
#include "driver/linux/sys.h"

#define STACK_SIZE (32 * 1024)
#define IO_PRIORITY_PROCESS 1           /* ioprio_get(2) */

static char reaper_stack[STACK_SIZE] __attribute__((aligned(16)));
static char command_stack[STACK_SIZE] __attribute__((aligned(16)));

/* One order, as it came. */
static struct launch launch;
static int fds[ORDER_FDS_MAX];
static int fd_count;
static char *argument;                  /* our first: each process has its own copy */

static void set_child_action(void *handler)
{
	/* struct sigaction of the kernel: handler, flags, restorer, mask. */
	const unsigned long action[4] = { (unsigned long)handler };
	sys_4(SYS_rt_sigaction, SIGCHLD, action, NULL, sizeof(uint64_t));
}

static void close_order(void)
{
	for (int i = 0; i < fd_count; i++)
		sys_1(SYS_close, fds[i]);
	fd_count = 0;
}

/* One message, whose descriptors are the order. False: there will be none. */
static bool receive(void)
{
	char byte;
	struct iovec part = { &byte, sizeof(byte) };
	union {
		struct cmsghdr header;
		unsigned char space[CMSG_SPACE(sizeof(fds))];
	} control;
	struct msghdr header = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	long length = sys_3(SYS_recvmsg, CONTROL_FD, &header, MSG_CMSG_CLOEXEC);
	if (length == -EINTR)
		return true;
	if (length <= 0)
		return false;
	if (header.msg_controllen < CMSG_LEN(sizeof(int)) || control.header.cmsg_type != SCM_RIGHTS)
		return true;
	fd_count = (int)((control.header.cmsg_len - CMSG_LEN(0)) / sizeof(int));
	for (int i = 0; i < fd_count; i++)
		fds[i] = ((const int *)(const void *)CMSG_DATA(&control.header))[i];
	return true;
}

static void fill_launch(void)
{
	launch.root_fd = launch.cwd_fd = launch.group_fd = launch.pass[0] = -1;
	launch.control_fd = CONTROL_FD;
	launch.in_group = fd_count > ORDER_JOINS;
	for (int i = 0; i < LAUNCH_JOIN_MAX; i++)
		launch.group_joins[i] = ORDER_JOINS + i < fd_count ? fds[ORDER_JOINS + i] : -1;
	for (int i = 0; i < 3; i++)
		launch.stdio[i] = fds[ORDER_STDIN + i];
}

/* The program has been executed, or has failed: both processes have memory of their own again, or one is gone. */
static long clone_command(void)
{
	long pid = sys_clone(CLONE_VM | CLONE_VFORK | SIGCHLD, command_stack + STACK_SIZE, NULL, NULL, launch_ordered,
	                     &launch);
	if (pid < 0)
		launch_fail(&launch, CORDON_E_LIMIT_EXCEEDED, pid, "limit_processes", "processes",
		            "cannot start the command's process",
		            "end what runs in the session, or raise the limit on processes: --processes N");
	return pid;
}

static void reap_command(void *unused)
{
	(void)unused;
	set_child_action(SIG_DFL);
	sys_5(SYS_prctl, PR_SET_NAME, REAPER_NAME, 0, 0, 0);
	for (size_t i = 0; i < sizeof(REAPER_NAME); i++)
		argument[i] = REAPER_NAME[i];
	sys_5(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	/* In the place of the starter's own socket, of which no copy may be left. */
	if (sys_3(SYS_dup3, fds[ORDER_CONTROL], CONTROL_FD, O_CLOEXEC) < 0)
		sys_exit(1);
	int pidfd = (int)sys_2(SYS_pidfd_open, sys_0(SYS_getpid), 0);
	if (pidfd < 0 || reply_with(CONTROL_FD, &pidfd, 1) < 0)
		sys_exit(1);
	sys_1(SYS_close, pidfd);
	fill_launch();
	long command = -1;
	if (!order_read(fds[ORDER_TEXT], &launch))
		launch_fail(&launch, CORDON_E_INTERNAL, 0, "run", "order",
		            "the sandbox's starter was sent an order that it cannot read", "");
	else if (!launch.tty || launch_make_terminal(&launch) == 0)
		command = clone_command();
	if (launch.failed) {
		reply_failure(&launch, CONTROL_FD);
		sys_exit(1);
	}
	launch_close_all(0, CONTROL_FD - 1, 0);
	launch_close_all(CONTROL_FD + 1, ~0U, 0);
	init_serve(INIT_REAPER, command);
}

/* How the kernel schedules this process, and with it every command. */
struct schedule {
	struct sched_attr attributes;
	unsigned char processors[1024];         /* as many as the kernel can have */
	long length, io;
};

static void read_schedule(struct schedule *schedule)
{
	*schedule = (struct schedule){ 0 };
	sys_4(SYS_sched_getattr, 0, &schedule->attributes, sizeof(schedule->attributes), 0);
	/* The length of a turn: the kernel's own. */
	schedule->attributes.sched_runtime = 0;
	schedule->length = sys_3(SYS_sched_getaffinity, 0, sizeof(schedule->processors), schedule->processors);
	schedule->io = sys_2(SYS_ioprio_get, IO_PRIORITY_PROCESS, 0);
}

static bool is_same(const void *one, const void *other, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (((const char *)one)[i] != ((const char *)other)[i])
			return false;
	return true;
}

/* A command can put any process of its user behind others, and all that this one starts with it. What is not taken
 * back that way, as a priority that only went down, ends the sandbox: the next one is as the first was. */
static bool keep_schedule(const struct schedule *begun)
{
	static struct schedule now;
	read_schedule(&now);
	if (is_same(&now, begun, sizeof(now)))
		return true;
	sys_3(SYS_sched_setattr, 0, &begun->attributes, 0);
	if (begun->length > 0)
		sys_3(SYS_sched_setaffinity, 0, begun->length, begun->processors);
	sys_3(SYS_ioprio_set, IO_PRIORITY_PROCESS, 0, begun->io);
	read_schedule(&now);
	/* Processors come and go. */
	return is_same(&now.attributes, &begun->attributes, sizeof(now.attributes)) && now.io == begun->io;
}

/* The library's way into this view: to look at its files, and to cover some. */
static long hand_out_root(void)
{
	/* Before others take their numbers. */
	bool has_masks = sys_3(SYS_fcntl, STARTER_MASK_FD + 1, F_GETFD, 0) >= 0;
	long root = sys_4(SYS_openat, AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	long pidfd = root < 0 ? root : sys_2(SYS_pidfd_open, sys_0(SYS_getpid), 0);
	const int handed[] = { (int)pidfd, (int)root, STARTER_MASK_FD, STARTER_MASK_FD + 1 };
	return pidfd < 0 ? pidfd : reply_with(CONTROL_FD, handed, has_masks ? 4 : 2);
}

void starter_serve(char *name)
{
	sys_5(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
	argument = name;
	sys_5(SYS_prctl, PR_SET_NAME, STARTER_NAME, 0, 0, 0);
	/* The kernel reaps what ends here. */
	set_child_action(SIG_IGN);
	if (hand_out_root() < 0)
		sys_exit(1);
	launch_close_all(CONTROL_FD + 1, ~0U, 0);
	static struct schedule begun;
	read_schedule(&begun);
	while (receive() && keep_schedule(&begun)) {
		if (fd_count >= ORDER_JOINS)
			/* A copy of this process, not a part of it: a failure closes the control socket, which is the
			 * reply. */
			(void)!sys_clone(SIGCHLD, reaper_stack + STACK_SIZE, NULL, NULL, reap_command, NULL);
		close_order();
	}
	sys_exit(0);
}

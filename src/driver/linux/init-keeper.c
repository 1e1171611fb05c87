/* The keeper: see slot.h. It clones slots and reaps them, and does nothing else. */
#include <fcntl.h>
#include <errno.h>
#include <linux/capability.h>
#include <linux/nsfs.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "driver/linux/control.h"
#include "driver/linux/slot.h"
#include "driver/linux/sys.h"

#define COMMAND_STACK (32 * 1024)

struct asked {
	struct slot_request request;
	int fds[SLOT_DESCRIPTORS_MAX];
	int count;
	int more;                       /* where those begin that the plan counts */
};

/* Of who makes a slot, and of the slot, in its copy of it. */
static char maker_stack[COMMAND_STACK] __attribute__((aligned(16)));
/* Of the slot's command; in the keeper itself nobody touches it. */
static char command_stack[COMMAND_STACK] __attribute__((aligned(16)));

/* In the plan, a descriptor is its position among those that came after the first few. */
static bool place(const struct asked *asked, int *fd)
{
	if (*fd < 0)
		return true;
	if (*fd >= asked->count - asked->more)
		return false;
	*fd = asked->fds[asked->more + *fd];
	return true;
}

static bool place_all(const struct asked *asked, struct launch *launch)
{
	struct launch_root *root = (struct launch_root *)(uintptr_t)launch->root;
	int *trees = root ? (int *)(uintptr_t)root->trees : NULL;
	bool sound = !root || place(asked, &root->skeleton_tree);
	for (size_t i = 0; trees && sound && i < root->count; i++)
		sound = place(asked, &trees[i]);
	for (int i = 0; sound && i < LAUNCH_JOIN_MAX; i++)
		sound = place(asked, &launch->group_joins[i]);
	return sound;
}

/* In the slot, a copy of the keeper. */
static void enter_slot(void *argument)
{
	const struct asked *asked = argument;
	size_t size = asked->request.plan_size;
	long plan = sys6(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE, MAP_PRIVATE, asked->fds[SLOT_REQUEST_PLAN], 0);
	struct launch *launch = plan < 0 && plan > -4096 ? NULL : slot_unpack((void *)plan, size);
	if (!launch || !place_all(asked, launch))
		sys_exit(1);
	launch->control_fd = asked->fds[SLOT_REQUEST_CONTROL];
	launch->slot_fd = asked->fds[SLOT_REQUEST_SOCKET];
	launch->command_stack = command_stack;
	launch->stack_size = sizeof(command_stack);
	launch_slot(launch);
}

/* An error is large, and a keeper's stack is all the memory that it has: in a frame of its own. */
static __attribute__((noinline)) void tell_failure(const struct asked *asked, const char *call, long result)
{
	struct launch failed = { .failed = false };
	launch_unavailable(&failed, result, "lifetime", call, "the keeper of the sessions cannot make a place for a command");
	slot_tell_failure(&failed, asked->fds[SLOT_REQUEST_SOCKET]);
}

/* Tells the supervisor, on the slot's socket, who it is. */
static void tell(const struct asked *asked, int pidfd)
{
	const int32_t kind = SLOT_STARTED;
	union {
		struct cmsghdr header;
		unsigned char space[CMSG_SPACE(sizeof(int))];
	} control = { .header = { .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
	struct iovec part = { (void *)(uintptr_t)&kind, offsetof(struct slot_reply, error) };
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	*(int *)(void *)CMSG_DATA(&control.header) = pidfd;
	sys_3(SYS_sendmsg, asked->fds[SLOT_REQUEST_SOCKET], &header, MSG_NOSIGNAL);
}

/* The user namespace first: over the others one has rights only there. */
static long enter_commons(const struct asked *asked)
{
	int first = asked->fds[SLOT_REQUEST_COMMONS];
	long user = asked->request.shared ? sys_3(SYS_ioctl, first, NS_GET_USERNS, 0) : first;
	long result = user < 0 ? user : sys_2(SYS_setns, user, CLONE_NEWUSER);
	for (int i = SLOT_REQUEST_COMMONS; asked->request.shared && i < asked->more && result >= 0; i++)
		result = sys_2(SYS_setns, asked->fds[i], 0);
	return result;
}

/* In the keeper's memory. The slot is the keeper's child, like this one. */
static void make_slot(void *argument)
{
	struct asked *asked = argument;
	int pidfd = -1;
	struct clone_args args = { .flags = asked->request.namespaces | CLONE_PARENT | CLONE_PIDFD,
	                           .pidfd = (uint64_t)(uintptr_t)&pidfd };
	long result = enter_commons(asked);
	const char *call = result < 0 ? "setns" : "clone";
	if (result >= 0)
		result = sys_clone3(&args, sizeof(args), enter_slot, asked);
	if (result > 0)
		tell(asked, pidfd);
	else
		tell_failure(asked, call, result);
	sys_exit(result < 0);
}

/* By another process, which may not come back from there. In the same memory: that is sooner made and gone than a copy. */
static void answer(struct asked *asked)
{
	struct clone_args args = { .flags = CLONE_VM | CLONE_VFORK, .exit_signal = SIGCHLD,
	                           .stack = (uint64_t)(uintptr_t)maker_stack, .stack_size = sizeof(maker_stack) };
	asked->more = SLOT_REQUEST_COMMONS + launch_commons_count(asked->request.shared);
	long pid = asked->count < asked->more ? 0 : sys_clone3(&args, sizeof(args), make_slot, asked);
	if (pid < 0)
		tell_failure(asked, "clone", pid);
}

/* True: there was none but those that are gone now. */
static bool reap(void)
{
	long pid;
	while ((pid = sys_4(SYS_wait4, -1, NULL, WNOHANG | __WALL, NULL)) > 0)
		;
	return pid == -ECHILD;
}

static void drain(long events)
{
	char drained[128];
	sys_3(SYS_read, events, drained, sizeof(drained));
}

/* Nobody asks for more. What runs in its slots goes on; until it ends there is somebody to reap it: not every machine's init does.
 * If the process that it kept them for is dead, each of them hears of that and ends. */
static __attribute__((noreturn)) void leave(long events)
{
	struct pollfd ended = { .fd = (int)events, .events = POLLIN };
	while (!reap()) {
		sys_5(SYS_ppoll, &ended, 1, NULL, NULL, 0);
		drain(events);
	}
	sys_exit(0);
}

/* False: there will be no more. */
static bool take_request(void)
{
	struct asked asked;
	union {
		struct cmsghdr header;
		unsigned char space[CMSG_SPACE(SLOT_DESCRIPTORS_MAX * sizeof(int))];
	} control;
	struct iovec part = { &asked.request, sizeof(asked.request) };
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
	                         .msg_controllen = sizeof(control) };
	long length = sys_3(SYS_recvmsg, CONTROL_FD, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (length == -EAGAIN || length == -EINTR)
		return true;
	if (length <= 0)
		return false;
	asked.count = 0;
	const int *fds = (const int *)(const void *)CMSG_DATA(&control.header);
	if (header.msg_controllen >= sizeof(struct cmsghdr) && control.header.cmsg_type == SCM_RIGHTS)
		asked.count = (int)((control.header.cmsg_len - CMSG_LEN(0)) / sizeof(int));
	for (int i = 0; i < asked.count; i++)
		asked.fds[i] = fds[i];
	if (length == sizeof(asked.request) && !(header.msg_flags & MSG_CTRUNC))
		answer(&asked);
	for (int i = 0; i < asked.count; i++)
		sys_1(SYS_close, asked.fds[i]);
	return true;
}

void keeper_serve(void)
{
	uint64_t all = ~0ULL, child = 1ULL << (SIGCHLD - 1);
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 } };
	if (sys_2(SYS_capset, &header, none) < 0)
		sys_exit(2);
	sys_5(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
	sys_5(SYS_prctl, PR_SET_NAME, "cordon-keeper", 0, 0, 0);
	sys_4(SYS_rt_sigprocmask, SIG_BLOCK, &all, NULL, sizeof(all));
	long events = sys_4(SYS_signalfd4, -1, &child, sizeof(child), O_CLOEXEC | O_NONBLOCK);
	if (events < 0)
		sys_exit(2);
	for (bool more = true; more;) {
		struct pollfd ready[2] = { { .fd = CONTROL_FD, .events = POLLIN }, { .fd = (int)events, .events = POLLIN } };
		sys_5(SYS_ppoll, ready, 2, NULL, NULL, 0);
		if (ready[1].revents)
			drain(events);
		reap();
		more = !ready[0].revents || take_request();
	}
	leave(events);
}

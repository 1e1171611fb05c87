/* Starting a command in a session's sandbox: an order is sent to its starter, and its reaper replies. See shared.h and
 * order.h. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/compat.h"
#include "driver/linux/await.h"
#include "driver/linux/control.h"
#include "driver/linux/order.h"
#include "driver/linux/pidfd.h"
#include "driver/linux/receive.h"
#include "driver/linux/shared.h"
#include "driver/linux/sys.h"

#define ANSWER_MS 1000          /* for a starter to fork, which it does as soon as it is awake */
#define SENDER_STACK (32 * 1024)

struct sender {
	struct launch launch;
	const struct msghdr *message;
};

static void send_with_high_limit(void *argument)
{
	const struct sender *sender = argument;
	sys_exit(launch_hand_out(sender->launch.control_fd, sender->message) < 0);
}

/* From a process that may raise its limits, which ours are the caller's. */
static int send_by_another(int socket_fd, const struct msghdr *message, struct cordon_error *err)
{
	struct sender *sender = calloc(1, sizeof(*sender));
	void *stack = mmap(NULL, SENDER_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	sigset_t all, before;
	int status = 1;
	if (sender && stack != MAP_FAILED) {
		*sender = (struct sender){ { .control_fd = socket_fd, .group_fd = -1, .stack_size = SENDER_STACK },
			                   message };
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before);
		long pid = launch_clone_at(&sender->launch, 0, stack, NULL, send_with_high_limit);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		while (pid > 0 && waitpid((pid_t)pid, &status, __WALL) < 0 && errno == EINTR)
			;
	}
	if (stack != MAP_FAILED)
		munmap(stack, SENDER_STACK);
	free(sender);
	return status == 0 ? 0 : fail(err, CORDON_E_RESOURCE_EXHAUSTED, ETOOMANYREFS, "sendmsg",
	                              "this user has too many descriptors under way between processes");
}

/* 1: the other end is gone, or does not read. The socket may be full of others' orders; and of a user without
 * privileges the kernel counts the descriptors under way in all processes, against the limit of who sends. */
static int send_patiently(int socket_fd, const struct msghdr *message, struct cordon_error *err)
{
	const uint64_t deadline_us = await_now_us() + ANSWER_MS * 1000;
	while (sendmsg(socket_fd, message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
		struct pollfd room = { .fd = socket_fd, .events = POLLOUT };
		if (errno == ETOOMANYREFS)
			return send_by_another(socket_fd, message, err);
		if ((errno != EINTR && errno != EAGAIN) || await_left_ms(deadline_us) == 0)
			return 1;
		poll(&room, 1, await_left_ms(deadline_us));
	}
	return 0;
}

static int send_order(const struct shared_view *view, const struct launch *launch, struct cordon_error *err)
{
	auto_close int order = order_write(launch, err);
	if (order < 0)
		return -1;
	int fds[ORDER_FDS_MAX] = { order, launch->control_fd };
	size_t count = ORDER_JOINS;
	/* A terminal is made inside; until then anything will do. */
	for (int i = 0; i < 3; i++)
		fds[ORDER_STDIN + i] = launch->tty ? order : launch->stdio[i];
	for (size_t i = 0; i < ARRAY_SIZE(launch->group_joins); i++)
		if (launch->in_group && launch->group_joins[i] >= 0)
			fds[count++] = launch->group_joins[i];
	union {
		struct cmsghdr header;
		unsigned char space[CMSG_SPACE(sizeof(fds))];
	} control = { .header = { .cmsg_len = CMSG_LEN(count * sizeof(int)),
		                  .cmsg_level = SOL_SOCKET,
		                  .cmsg_type = SCM_RIGHTS } };
	memcpy(CMSG_DATA(&control.header), fds, count * sizeof(int));
	char byte = 0;
	struct iovec part = { &byte, 1 };
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
	                         .msg_controllen = CMSG_SPACE(count * sizeof(int)) };
	return send_patiently(view->starter_fd, &header, err);
}

static int lost(struct cordon_error *err)
{
	fail(err, CORDON_E_INTERNAL, 0, "sandbox", "the session's sandbox does not answer");
	fail_boundary(err, "lifetime");
	return 1;
}

/* Until the program is there, or has failed. In between, its terminal may come. */
static int await_program(struct launch *launch, struct cordon_error *err)
{
	union {
		struct control_message control;
		struct reply reply;
	} message = { .control = { 0 } };
	const struct patience *patience = launch->patience;
	unsigned stopped = 0;
	for (;;) {
		int fd = -1, moment_ms = await_moment_ms(patience);
		if (moment_ms < 0 || moment_ms > STOPPED_LOOK_MS)
			moment_ms = STOPPED_LOOK_MS;
		if (!await_message(launch->init_socket_fd, launch->pidfd, moment_ms)) {
			stopped = pidfd_is_stopped(launch->pidfd) ? stopped + 1 : 0;
			launch->cut_short = await_is_over(patience);
			if (stopped < 2 && !launch->cut_short)
				continue;
			/* Its end is found below, or by who supervises it. */
			pidfd_kill(launch->pidfd);
			if (launch->cut_short)
				return 0;
		}
		ssize_t length = receive_with(launch->init_socket_fd, &message, sizeof(message), MSG_DONTWAIT, &fd);
		if (fd >= 0 && length == sizeof(message.control) && message.control.kind == CONTROL_RENAMES)
			launch->renames_fd = fd;
		else if (fd >= 0)
			launch->terminal_fd = fd;
		else if (length == sizeof(message.control) && message.control.kind == CONTROL_STARTED)
			return 0;
		else if (length == sizeof(message.reply) && message.reply.kind == REPLY_FAILED) {
			const struct cordon_error *told = &message.reply.error;
			fail(err, told->class, told->os_errno, told->subject, "%s", told->reason);
			fail_boundary(err, told->boundary);
			fail_remedy(err, "%s", told->remediation);
			return -1;
		} else if (length <= 0) {
			/* It was killed, perhaps by its command, which may have begun: then that is not done again. Who
			 * supervises it finds the end of the reaper. A terminal is made before. */
			return launch->tty && launch->terminal_fd < 0 ? lost(err) : 0;
		}
	}
}

int shared_start(const struct shared_view *view, struct launch *launch, struct cordon_error *err)
{
	struct reply reply = { 0 };
	launch->pidfd = launch->terminal_fd = launch->renames_fd = -1;
	launch->cut_short = false;
	int result = send_order(view, launch, err);
	if (result != 0)
		return result < 0 ? -1 : lost(err);
	if (!await_message(launch->init_socket_fd, -1, ANSWER_MS) ||
	    receive_with(launch->init_socket_fd, &reply, sizeof(reply), MSG_DONTWAIT, &launch->pidfd) <= 0 ||
	    launch->pidfd < 0)
		return lost(err);
	result = await_program(launch, err);
	if (result != 0) {
		close_fd(&launch->pidfd);
		close_fd(&launch->terminal_fd);
		close_fd(&launch->renames_fd);
	}
	return result;
}


/* The beginning of a supervision (see supervise.h): the descriptors of the command, made before its start, and what is
 * watched from then on. Standard descriptors are pipes (or a fresh terminal), never the caller's own files. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include "base/compat.h"
#include "driver/linux/await.h"
#include "driver/linux/control.h"
#include "driver/linux/linger.h"
#include "driver/linux/pidfd.h"
#include "driver/linux/receive.h"
#include "driver/linux/supervise-parts.h"

#define NEW_MS 250              /* so long a command is a small one */
#define INIT_GRACE_MS 5000      /* after the end of its time init ends the command by itself */

/* Our end does not block, the child's does. */
static int make_pipe(int *ret_ours, int *ret_theirs, bool we_read)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	*ret_ours = ends[we_read ? 0 : 1];
	*ret_theirs = ends[we_read ? 1 : 0];
	return fcntl(*ret_ours, F_SETFL, O_NONBLOCK);
}

static int make_pipes(bool one_stream, int ret_ours[3], int ret_theirs[3])
{
	for (int i = 0; i < (one_stream ? 2 : 3); i++)
		if (make_pipe(&ret_ours[i], &ret_theirs[i], i > 0) < 0)
			return -1;
	if (one_stream)
		ret_theirs[CORDON_STDERR] = fcntl(ret_theirs[CORDON_STDOUT], F_DUPFD_CLOEXEC, 3);
	return ret_theirs[CORDON_STDERR] < 0 ? -1 : 0;
}

int supervise_prepare(struct supervision *supervision, const struct supervise_options *options, struct launch *launch,
                      struct cordon_error *err)
{
	*supervision = (struct supervision){
		.epoll_fd = -1,
		.timer_fd = -1,
		.disk_timer_fd = -1,
		.memory_timer_fd = -1,
		.control_fd = -1,
		.pidfd = -1,
		.stdin_fd = -1,
		.release_timer_fd = -1,
		.stream_fd = { -1, -1, -1 },
		.child_fd = { -1, -1, -1, -1 },
		.unread_fd = -1,
		.stdin_offset = -1,
		.options = *options,
	};
	pthread_mutex_init(&supervision->stdin_lock, NULL);
	/* Its time begins before the start, because a short command has ended when that returns. */
	supervision->start_us = await_now_us();
	supervision->deadline_us = options->wall_ms ? supervision->start_us + options->wall_ms * 1000 : 0;
	capture_init(&supervision->captures[CORDON_STDOUT], options->stdout_cap);
	capture_init(&supervision->captures[CORDON_STDERR], options->stderr_cap);
	int control[2], *child = supervision->child_fd, ours[3] = { -1, -1, -1 };
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) < 0)
		return fail(err, CORDON_E_INTERNAL, errno, "socketpair", "cannot make the control socket");
	supervision->control_fd = control[0];
	child[3] = control[1];
	bool piped = options->tty || make_pipes(options->one_stream, ours, child) == 0;
	supervision->stdin_fd = ours[0];
	supervision->stream_fd[CORDON_STDOUT] = ours[CORDON_STDOUT];
	supervision->stream_fd[CORDON_STDERR] = ours[CORDON_STDERR];
	if (!piped)
		return fail(err, CORDON_E_INTERNAL, errno, "pipe", "cannot make pipes for the command");
	if (child[0] >= 0 && options->stdin_fd >= 0)
		supervision->unread_fd = fcntl(child[0], F_DUPFD_CLOEXEC, 3);
	/* Not before it has what it was given: that is closed with it. */
	if (!(supervision->chunk = malloc(SUPERVISE_CHUNK)))
		return fail_oom(err);
	memcpy(launch->stdio, child, sizeof(launch->stdio));
	launch->control_fd = child[3];
	launch->init_socket_fd = supervision->control_fd;
	launch->tty = options->tty;
	return 0;
}

/* The master of the terminal that was made inside. */
static int receive_terminal(struct supervision *supervision, struct cordon_error *err)
{
	struct control_message message = { 0 };
	ssize_t length = 0;
	/* That of a session's command has come already. */
	if (!supervision->options.sandbox)
		length = receive_with(supervision->control_fd, &message, sizeof(message), MSG_DONTWAIT,
		                      &supervision->stdin_fd);
	if (supervision->stdin_fd < 0)
		return fail(err, CORDON_E_INTERNAL, length < 0 ? errno : EPROTO, "terminal",
		            "no terminal was handed out");
	fcntl(supervision->stdin_fd, F_SETFL, O_NONBLOCK);
	supervision->stream_fd[CORDON_STDOUT] = fcntl(supervision->stdin_fd, F_DUPFD_CLOEXEC, 3);
	return supervision->stream_fd[CORDON_STDOUT] < 0
	               ? fail(err, CORDON_E_INTERNAL, errno, "terminal", "cannot keep the terminal") : 0;
}

static int begin_watch(struct supervision *supervision, int *timer_fd, enum source source, uint64_t first_ms,
                       struct cordon_error *err)
{
	*timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (*timer_fd < 0 || supervise_watch(supervision, *timer_fd, source, EPOLLIN) < 0)
		return fail(err, CORDON_E_INTERNAL, errno, "epoll",
		            "cannot watch the command's use of disk space and memory");
	supervise_arm(*timer_fd, first_ms);
	return 0;
}

static int begin_watches(struct supervision *supervision, struct cordon_error *err)
{
	const struct supervise_options *options = &supervision->options;
	if (options->memory && options->memory->most_bytes &&
	    begin_watch(supervision, &supervision->memory_timer_fd, SOURCE_MEMORY, MEMORY_WATCH_FIRST_MS, err) < 0)
		return -1;
	return options->disk ? begin_watch(supervision, &supervision->disk_timer_fd, SOURCE_DISK, DISK_FIRST_MS, err) :
	                       0;
}

/* The caller may not step for long, and is then not here to end the command. */
static void tell_deadline(const struct supervision *supervision)
{
	struct control_message message = { .kind = CONTROL_DEADLINE,
		                           .end_us = supervision->deadline_us + INIT_GRACE_MS * 1000 };
	if (supervision->deadline_us)
		(void)!send(supervision->control_fd, &message, sizeof(message), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* What runs for longer gives way to small commands, unless somebody sits before it. */
static void arm_wall(struct supervision *supervision)
{
	const struct supervise_options *options = &supervision->options;
	bool can = options->group && options->group->ops && (!options->wall_ms || options->wall_ms > NEW_MS);
	int left_ms = await_left_ms(supervision->deadline_us);
	supervision->is_new = can && (!options->tty || options->wish);
	int next_ms = supervise_earlier(supervision->is_new ? NEW_MS : 0,
	                                supervise_init_can_stop(supervision) ? STOPPED_LOOK_MS : 0);
	if (left_ms >= 0 || next_ms)
		supervise_arm(supervision->timer_fd, left_ms ? (uint64_t)supervise_earlier(left_ms, next_ms) : 0);
}

int supervise_begin(struct supervision *supervision, struct launch *launch, struct cordon_error *err)
{
	if (launch->pidfd >= 0)
		supervision->pidfd = take_fd(&launch->pidfd);
	supervision->init_ends_all = launch->namespaces & CLONE_NEWPID;
	for (size_t i = 0; i < ARRAY_SIZE(supervision->child_fd); i++)
		close_fd(&supervision->child_fd[i]);
	if (supervision->options.sandbox)
		supervision->stdin_fd =
			supervision->options.tty ? take_fd(&launch->terminal_fd) : supervision->stdin_fd;
	if (supervision->options.tty && receive_terminal(supervision, launch->cut_short ? NULL : err) < 0 &&
	    !launch->cut_short)
		return -1;
	supervision->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	supervision->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (supervision->epoll_fd < 0 || supervision->timer_fd < 0 ||
	    supervise_watch(supervision, supervision->control_fd, SOURCE_CONTROL, EPOLLIN) < 0 ||
	    supervise_watch(supervision, supervision->timer_fd, SOURCE_TIMER, EPOLLIN) < 0)
		return fail(err, CORDON_E_INTERNAL, errno, "epoll", "cannot watch the command");
	for (int stream = CORDON_STDOUT; stream <= CORDON_STDERR; stream++)
		if (supervision->stream_fd[stream] >= 0 &&
		    supervise_watch(supervision, supervision->stream_fd[stream], SOURCE_STDOUT + (unsigned)stream - 1,
		                    EPOLLIN) < 0)
			return fail(err, CORDON_E_INTERNAL, errno, "epoll", "cannot watch the command's output");
	linger_sweep();
	for (unsigned i = 0; i < supervision->options.watched_count; i++)
		if (supervise_watch(supervision, supervision->options.watched[i].fd, SOURCE_WATCHED + i, EPOLLIN) < 0)
			return fail(err, CORDON_E_INTERNAL, errno, "epoll", "cannot watch the command's network");
	if (launch->cut_short) {
		supervise_cut_short(supervision);
		return 0;
	}
	if (supervision->options.sandbox && launch->renames_fd >= 0)
		supervise_renames(supervision, take_fd(&launch->renames_fd));
	tell_deadline(supervision);
	arm_wall(supervision);
	input_begin(supervision);
	return begin_watches(supervision, err);
}

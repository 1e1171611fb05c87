/* Supervision: see supervise.h; how it begins is in supervise-begin.c. The end of the command is init's report, after
 * which nothing of it is left; a supervisor that disappears closes the control socket, and init ends everything. */
#include "driver/linux/supervise.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>

#include "base/compat.h"
#include "driver/linux/await.h"
#include "driver/linux/control.h"
#include "driver/linux/linger.h"
#include "driver/linux/pidfd.h"
#include "driver/linux/processes.h"
#include "driver/linux/receive.h"
#include "driver/linux/supervise-parts.h"

#define KILL_GRACE_MS 1000      /* for init to kill the tree itself */
#define PRESSES_MAX 5           /* before it is given up */
#define DRAIN_MS 2000           /* for what is still in the pipes */

int supervise_watch(struct supervision *supervision, int fd, enum source source, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.u32 = source };
	return epoll_ctl(supervision->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

/* Closing alone would not do: a process that another thread makes meanwhile has the descriptor as well until it is
 * another program, and while anybody has it the kernel goes on telling of it. */
static void close_watched(struct supervision *supervision, int *fd)
{
	if (*fd >= 0)
		epoll_ctl(supervision->epoll_fd, EPOLL_CTL_DEL, *fd, NULL);
	if (supervision->options.tty)
		close_fd(fd);
	else
		linger_close(&fd, 1);
}

void supervise_arm(int timer_fd, uint64_t after_ms)
{
	/* Nothing at all would be never. */
	struct itimerspec when = { .it_value = { .tv_sec = (time_t)(after_ms / 1000),
	                                         .tv_nsec = after_ms ? (long)(after_ms % 1000) * 1000000 : 1 } };
	timerfd_settime(timer_fd, 0, &when, NULL);
}

bool supervise_init_can_stop(const struct supervision *supervision)
{
	return supervision->options.sandbox || !supervision->init_ends_all;
}

int supervise_earlier(int one, int other)
{
	return one <= 0 || (other > 0 && other < one) ? other : one;
}

/* ---- output ----------------------------------------------------------------------------------------------------- */

void supervise_deliver(struct supervision *supervision, enum cordon_stream stream, const void *bytes, size_t length)
{
	capture_add(&supervision->captures[stream], bytes, length);
	if (supervision->options.output)
		supervision->options.output(supervision->options.output_arg, stream, bytes, length);
}

/* Output that is handed on as it comes is not held for longer than it may be. Without a timer it is not held at all. */
static void arm_release(struct supervision *supervision)
{
	const struct output_filter *filter = &supervision->options.filter;
	uint64_t held_ms = supervision->options.output ? filter->held_ms(filter->arg) : 0;
	if (!held_ms)
		return;
	if (supervision->release_timer_fd < 0) {
		supervision->release_timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
		if (supervision->release_timer_fd < 0 ||
		    supervise_watch(supervision, supervision->release_timer_fd, SOURCE_RELEASE, EPOLLIN) < 0) {
			close_fd(&supervision->release_timer_fd);
			filter->release(filter->arg);
			return;
		}
	}
	supervise_arm(supervision->release_timer_fd, held_ms);
}

static void release_output(struct supervision *supervision)
{
	const struct output_filter *filter = &supervision->options.filter;
	uint64_t expired;
	if (read(supervision->release_timer_fd, &expired, sizeof(expired)) > 0)
		filter->release(filter->arg);
}

/* Reads what is there, at most a few chunks so that nothing else starves; closes the stream at its end. */
static void read_output(struct supervision *supervision, int stream, int most)
{
	const struct output_filter *filter = &supervision->options.filter;
	char *chunk = supervision->chunk;
	while (supervision->stream_fd[stream] >= 0 && most-- != 0) {
		ssize_t length = read(supervision->stream_fd[stream], chunk, SUPERVISE_CHUNK);
		if (length < 0 && errno == EINTR)
			continue;
		if (length < 0 && errno == EAGAIN)
			return;
		if (length <= 0) { /* a terminal ends with EIO */
			close_watched(supervision, &supervision->stream_fd[stream]);
			return;
		}
		if (filter->add) {
			filter->add(filter->arg, (enum cordon_stream)stream, chunk, (size_t)length);
			arm_release(supervision);
		} else {
			supervise_deliver(supervision, (enum cordon_stream)stream, chunk, (size_t)length);
		}
		if (length < SUPERVISE_CHUNK / 2)
			return;
	}
}

/* ---- the end ---------------------------------------------------------------------------------------------------- */

static void send_control(struct supervision *supervision, int kind, int value)
{
	struct control_message message = { .kind = kind, .value = value };
	(void)!send(supervision->control_fd, &message, sizeof(message), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static bool has_streams(const struct supervision *supervision)
{
	return supervision->stream_fd[CORDON_STDOUT] >= 0 || supervision->stream_fd[CORDON_STDERR] >= 0;
}

static void start_draining(struct supervision *supervision)
{
	supervision->state = SUPERVISE_DRAINING;
	pause_end(supervision);
	input_settle(supervision);
	output_release(supervision);
	/* Mostly that is all, and nothing is watched any more. */
	if (!has_streams(supervision) && !supervision->stdin_open)
		return;
	epoll_ctl(supervision->epoll_fd, EPOLL_CTL_DEL, supervision->control_fd, NULL);
	close_watched(supervision, &supervision->disk_timer_fd);
	close_watched(supervision, &supervision->memory_timer_fd);
	if (supervision->stdin_open)
		input_end(supervision);
	/* Every writer of the command's own is gone, so what was written is there to be read now. A writer it handed
	 * its output to may go on; that is what the deadline is for. */
	for (int stream = CORDON_STDOUT; stream <= CORDON_STDERR; stream++)
		read_output(supervision, stream, 64);
	supervise_arm(supervision->timer_fd, DRAIN_MS);
}

/* What the reaper of a command in a session's sandbox did not end: the group does, if it ends all. Else the sandbox
 * goes, because nothing else is certain to reach it. */
static void end_rest(struct supervision *supervision)
{
	struct cgroup *group = supervision->options.group;
	bool ended = group && cgroup_kill(group) && group->ops;
	if (ended || !supervision->options.sandbox)
		return;
	supervision->sandbox_ended = true;
	pidfd_kill(supervision->options.sandbox->pidfd);
}

static void read_control(struct supervision *supervision)
{
	struct control_message message = { 0 };
	int fd;
	ssize_t length = receive_with(supervision->control_fd, &message, sizeof(message), MSG_DONTWAIT, &fd);
	/* Where init ended before it read all that it was sent, the kernel tells of that once, and then gives its
	 * report. */
	if (length < 0 && errno == ECONNRESET)
		length = receive_with(supervision->control_fd, &message, sizeof(message), MSG_DONTWAIT, &fd);
	if (length < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (fd >= 0) {
		supervise_renames(supervision, fd);
		return;
	}
	if (length == sizeof(message) && message.kind == CONTROL_REPORT) {
		supervision->reported = true;
		supervision->status = message.value;
		supervision->cpu_us = message.cpu_us;
		supervision->max_rss_kb = message.max_rss_kb;
		supervision->read_bytes = message.read_bytes;
		supervision->written_bytes = message.written_bytes;
		/* A short command may have ended before we came to look at the clock. */
		supervision->end_us = message.end_us > supervision->start_us ? message.end_us : supervision->start_us;
		/* One that ended in time and left much behind is over when that is gone. */
		supervision->timed_out =
			message.late || (supervision->timed_out && supervision->end_us >= supervision->deadline_us);
		if (message.rest)
			end_rest(supervision);
	} else if (length == sizeof(message)) {
		return;
	} else { /* init is gone without a word, and with it everything that has no other parent */
		supervision->init_lost |= supervision->state == SUPERVISE_RUNNING;
		end_rest(supervision);
		supervision->status = SIGKILL;
		supervision->end_us = await_now_us();
	}
	start_draining(supervision);
}

void supervise_kill(struct supervision *supervision)
{
	supervision->state = SUPERVISE_KILLING;
	send_control(supervision, CONTROL_KILL, 0);
	supervise_arm(supervision->timer_fd, KILL_GRACE_MS);
}

void supervise_cut_short(struct supervision *supervision)
{
	supervision->timed_out = await_left_ms(supervision->deadline_us) == 0;
	supervise_kill(supervision);
}

static void look_at_disk(struct supervision *supervision)
{
	uint64_t expired;
	if (supervision->state != SUPERVISE_RUNNING || read(supervision->disk_timer_fd, &expired, sizeof(expired)) < 0)
		return;
	/* What stands still takes no more. */
	int pause_ms =
		supervision->still ? DISK_WATCH_MS : disk_watch_look(supervision->options.disk, supervision->pidfd);
	if (pause_ms >= 0) {
		supervise_arm(supervision->disk_timer_fd, (uint64_t)pause_ms);
		return;
	}
	supervision->disk_full = true;
	supervise_kill(supervision);
}

static void look_at_memory(struct supervision *supervision)
{
	uint64_t expired;
	if (supervision->state != SUPERVISE_RUNNING ||
	    read(supervision->memory_timer_fd, &expired, sizeof(expired)) < 0)
		return;
	int pause_ms = memory_watch_look(supervision->options.memory, pidfd_number(supervision->pidfd));
	if (pause_ms >= 0) {
		supervise_arm(supervision->memory_timer_fd, (uint64_t)pause_ms);
		return;
	}
	supervision->memory_full = true;
	supervise_kill(supervision);
}

static void grow_old(struct supervision *supervision)
{
	const struct supervise_options *options = &supervision->options;
	supervision->is_new = false;
	if (!options->tty)
		cgroup_give_way(options->group);
}

/* Init was told, and takes long: perhaps the others give it no turn. Where the kernel does not end them with it they
 * go first. */
static void press(struct supervision *supervision)
{
	if (supervision->options.sandbox) {
		/* A reaper may have been stopped by its command. */
		end_rest(supervision);
		pidfd_kill(supervision->pidfd);
		supervise_arm(supervision->timer_fd, KILL_GRACE_MS);
		return;
	}
	cgroup_kill(supervision->options.group);
	/* It may have been stopped by the command, and does what it was told once it goes on. */
	pidfd_continue(supervision->pidfd);
	if (supervision->init_ends_all || supervision->presses++ >= PRESSES_MAX)
		pidfd_kill(supervision->pidfd);
	else
		processes_kill_below(pidfd_number(supervision->pidfd));
	supervise_arm(supervision->timer_fd, KILL_GRACE_MS);
}

/* Found twice in a row: whoever stops cordon as a whole and lets it go on does not reach all of it at one moment. A
 * process that is traced is none of the commands' doing, which cannot trace init. */
static bool init_is_stopped(struct supervision *supervision)
{
	bool stopped = supervise_init_can_stop(supervision) && pidfd_is_stopped(supervision->pidfd);
	supervision->stopped_looks = stopped ? supervision->stopped_looks + 1 : 0;
	return supervision->stopped_looks > 1;
}

/* Its time goes on while it stands still: who waits for it is told by then. */
static void read_clock(struct supervision *supervision)
{
	if (supervision->is_new)
		grow_old(supervision);
	int left_ms = await_left_ms(supervision->deadline_us);
	if (left_ms == 0) {
		supervision->timed_out = true;
		supervise_kill(supervision);
		return;
	}
	if (init_is_stopped(supervision)) {
		supervision->init_lost = true;
		supervise_kill(supervision);
		press(supervision);
		return;
	}
	int look_ms = supervise_earlier((int)pause_look(supervision),
	                                supervise_init_can_stop(supervision) ? STOPPED_LOOK_MS : 0);
	if (supervision->state == SUPERVISE_RUNNING && (look_ms || left_ms > 0))
		supervise_arm(supervision->timer_fd, (uint64_t)supervise_earlier(left_ms, look_ms));
}

static void read_timer(struct supervision *supervision)
{
	uint64_t expired;
	(void)!read(supervision->timer_fd, &expired, sizeof(expired));
	switch (supervision->state) {
	case SUPERVISE_RUNNING:
		read_clock(supervision);
		break;
	case SUPERVISE_KILLING:
		press(supervision);
		break;
	case SUPERVISE_DRAINING:
		close_fd(&supervision->stream_fd[CORDON_STDOUT]);
		close_fd(&supervision->stream_fd[CORDON_STDERR]);
		break;
	case SUPERVISE_FINISHED:
		break;
	}
}

static void serve_renames(struct supervision *supervision)
{
	struct renames *renames = supervision->options.renames;
	if (!renames_serve(renames))
		close_watched(supervision, &renames->listener_fd);
}

static void handle_watched(struct supervision *supervision, unsigned index)
{
	const struct watched *watched = &supervision->options.watched[index];
	watched->handle(watched->arg);
}

static void handle(struct supervision *supervision, enum source source)
{
	switch (source) {
	case SOURCE_CONTROL: read_control(supervision); break;
	case SOURCE_RENAMES: serve_renames(supervision); break;
	case SOURCE_TIMER: read_timer(supervision); break;
	case SOURCE_DISK: look_at_disk(supervision); break;
	case SOURCE_RELEASE: release_output(supervision); break;
	case SOURCE_MEMORY: look_at_memory(supervision); break;
	case SOURCE_STDOUT: read_output(supervision, CORDON_STDOUT, 8); break;
	case SOURCE_STDERR: read_output(supervision, CORDON_STDERR, 8); break;
	case SOURCE_STDIN: input_pump(supervision, true); break;
	case SOURCE_STDIN_ROOM: input_pump(supervision, false); break;
	default: handle_watched(supervision, source - SOURCE_WATCHED); break;
	}
}

int supervise_step(struct supervision *supervision, int wait_ms, bool *ret_finished, struct cordon_error *err)
{
	struct epoll_event events[8];
	int count = 0;
	if (supervision->state != SUPERVISE_FINISHED)
		count = epoll_wait(supervision->epoll_fd, events, ARRAY_SIZE(events), wait_ms);
	if (count < 0 && errno != EINTR)
		return fail(err, CORDON_E_INTERNAL, errno, "epoll_wait", "cannot watch the command");
	for (int i = 0; i < count; i++)
		handle(supervision, events[i].data.u32);
	if (supervision->state == SUPERVISE_DRAINING && !has_streams(supervision)) {
		supervision->state = SUPERVISE_FINISHED;
		if (supervision->options.filter.add)
			supervision->options.filter.finish(supervision->options.filter.arg);
	}
	*ret_finished = supervision->state == SUPERVISE_FINISHED;
	return 0;
}

void supervise_signal(struct supervision *supervision, int signal)
{
	if (supervision->state != SUPERVISE_RUNNING)
		return;
	/* Others are taken when it goes on. This one is pressed for. */
	if (signal == SIGKILL)
		supervise_kill(supervision);
	else
		send_control(supervision, CONTROL_SIGNAL, signal);
}

void supervise_resize(struct supervision *supervision, unsigned short rows, unsigned short columns)
{
	struct winsize size = { .ws_row = rows, .ws_col = columns };
	if (supervision->options.tty && supervision->stdin_fd >= 0)
		ioctl(supervision->stdin_fd, TIOCSWINSZ, &size);
}

void supervise_leave(struct supervision *supervision, struct cgroup *group)
{
	if (supervision->reported)
		linger_add(take_fd(&supervision->pidfd), group);
}

/* Who has reported is on its way out. */
static void await_end(struct supervision *supervision)
{
	struct pollfd gone = { .fd = supervision->pidfd, .events = POLLIN };
	int count = supervision->reported;
	while (count == 0 || (count < 0 && errno == EINTR)) {
		count = poll(&gone, 1, KILL_GRACE_MS);
		if (count == 0)
			press(supervision);
	}
	await_gone(supervision->pidfd, true);
}

void supervise_free(struct supervision *supervision)
{
	int *const owned[] = { &supervision->control_fd,
		               &supervision->timer_fd,
		               &supervision->disk_timer_fd,
		               &supervision->release_timer_fd,
		               &supervision->memory_timer_fd,
		               &supervision->stdin_fd,
		               &supervision->stream_fd[CORDON_STDOUT],
		               &supervision->stream_fd[CORDON_STDERR],
		               &supervision->unread_fd,
		               &supervision->child_fd[0],
		               &supervision->child_fd[1],
		               &supervision->child_fd[2],
		               &supervision->child_fd[3] };
	pause_end(supervision);
	/* At once: the caller knows its number, and may watch it in a set of its own until it is closed. */
	close_fd(&supervision->epoll_fd);
	/* Closing the control socket is what ends init, and with it everything. */
	for (size_t i = 0; i < ARRAY_SIZE(owned); i++)
		close_fd(owned[i]);
	if (supervision->pidfd >= 0) {
		await_end(supervision);
		close_fd(&supervision->pidfd);
	}
	capture_free(&supervision->captures[CORDON_STDOUT]);
	capture_free(&supervision->captures[CORDON_STDERR]);
	free(supervision->pending);
	free(supervision->chunk);
	pthread_mutex_destroy(&supervision->stdin_lock);
}

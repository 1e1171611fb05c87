/* The client's end of wire.h. Behind one epoll descriptor are the socket, standard input while the daemon wants some,
 * a clock while it may be that it does not listen, another while the terminal is somebody else's, and the answer of a
 * human, who is asked in another thread: prompting waits, and meanwhile output and signals do not. */
#include "door/cli/run-remote.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/error.h"
#include "door/cli/asking.h"
#include "door/wire/hello.h"
#include "door/wire/inbox.h"
#include "door/cli/terminal.h"

#define PATIENCE_S 1    /* with a daemon that reads nothing */
#define MOMENT_NS 200000000     /* the time until the next check whether this process owns the terminal */

struct remote {
	int fd, epoll_fd, interrupt_fd, patience_fd, moment_fd;
	struct sink out;                /* to the daemon; has the descriptor */
	struct inbox inbox;
	bool is_declined;               /* by the daemon, or it has not read what was to be run, and that was taken
	                                   back */
	bool is_greeted;                /* the HELLO was read */
	bool is_deaf;                   /* for a while it has not read what was sent */
	unsigned ends;                  /* signals that end things were sent; none of them was read, as far as is
	                                   known... */
	int last_end;                   /* ...and the last of them */
	uint32_t wanted;                /* so many bytes of stdin may be sent */
	bool stdin_open, stdin_watched, stdin_terminal;
	off_t stdin_offset, stdin_sent; /* of a regular file, where reading began, or -1; so much was sent */
	sigset_t kept;
	struct asking asking;
};

enum source { SOURCE_SOCKET, SOURCE_STDIN, SOURCE_ANSWER, SOURCE_PATIENCE, SOURCE_MOMENT };

/* ---- to the daemon ----------------------------------------------------------------------------------------------- */

static void watch(const struct remote *remote, int operation, int fd, enum source source, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.u32 = source };
	epoll_ctl(remote->epoll_fd, operation, fd, &event);
}

static void watch_socket(const struct remote *remote)
{
	watch(remote, EPOLL_CTL_MOD, remote->fd, SOURCE_SOCKET, EPOLLIN | (sink_waiting(&remote->out) ? EPOLLOUT : 0u));
}

static void send_frame(struct remote *remote, enum wire_kind kind, int flags, const void *body, size_t length)
{
	struct wire_head head = { .kind = (uint8_t)kind, .flags = (uint8_t)flags, .length = (uint32_t)length };
	sink_live(&remote->out, &head, sizeof(head));
	if (length)
		sink_live(&remote->out, body, length);
	watch_socket(remote);
}

/* ---- a daemon that does not listen ------------------------------------------------------------------------------- */

/* Has it read all that was sent? Where the kernel does not tell it has: nothing is to run twice. */
static bool is_heard(const struct remote *remote)
{
	int unread = 0;
	return !sink_waiting(&remote->out) && (ioctl(remote->fd, SIOCOUTQ, &unread) < 0 || !unread);
}

static void note_listens(struct remote *remote)
{
	remote->is_greeted = true;
	remote->is_deaf = false;
	remote->ends = 0;
}

static void begin_patience(const struct remote *remote)
{
	const struct itimerspec once = { .it_value.tv_sec = PATIENCE_S };
	timerfd_settime(remote->patience_fd, 0, &once, NULL);
}

/* Of a HELLO that was not read: wire.h tells why nothing runs twice. Where it was read at the last moment, the
 * connection is found to have ended. */
static void take_back(struct remote *remote)
{
	bool shut = shutdown(remote->fd, SHUT_RDWR) == 0;
	atomic_thread_fence(memory_order_seq_cst);
	remote->is_declined = shut && !is_heard(remote);
}

/* As if it had come before there was a cordon to take it. */
static void raise_here(const struct run *run, int signal)
{
	sigset_t blocked;
	sigprocmask(SIG_SETMASK, &run->mask_before, &blocked);
	kill(getpid(), signal);
	sigprocmask(SIG_SETMASK, &blocked, NULL);
}

static void end_patience(const struct run *run)
{
	struct remote *remote = run->remote;
	uint64_t times;
	(void)!read(remote->patience_fd, &times, sizeof(times));
	if (is_heard(remote))
		return note_listens(remote);
	if (!remote->is_greeted)
		return take_back(remote);
	remote->is_deaf = true;
	if (remote->ends > 1)
		raise_here(run, remote->last_end);
}

/* ---- signals ----------------------------------------------------------------------------------------------------- */

static void send_signal(struct remote *remote, int signal)
{
	uint32_t number = (uint32_t)signal;
	send_frame(remote, WIRE_SIGNAL, 0, &number, sizeof(number));
}

static void send_end(const struct run *run, int signal)
{
	struct remote *remote = run->remote;
	uint64_t one = 1;
	(void)!write(remote->interrupt_fd, &one, sizeof(one));
	if (remote->is_deaf && is_heard(remote))
		note_listens(remote);
	send_signal(remote, signal);
	remote->last_end = signal;
	if (++remote->ends == 1)
		begin_patience(remote);
	else if (remote->is_deaf)
		raise_here(run, signal);
}

static void remote_signal(struct run *run, int signal)
{
	struct remote *remote = run->remote;
	if (signal != SIGSTOP && signal != SIGCONT && signal != SIGPIPE && signal != SIGKILL)
		sigaddset(&remote->kept, signal);
	if (remote->is_declined)
		return;
	if (!remote->is_greeted && !is_heard(remote))
		return take_back(remote);
	remote->is_greeted = true;
	if (run_signal_ends(signal))
		send_end(run, signal);
	else
		send_signal(remote, signal);
}

/* ---- input ------------------------------------------------------------------------------------------------------- */

/* Then typed keys belong to another process. There is no event for that. */
static bool is_in_background(const struct remote *remote)
{
	return remote->stdin_terminal && !terminal_is_ours();
}

/* A process that reads a terminal at the moment when it is put into the background gets an error instead of being
 * stopped. */
static ssize_t read_input(const struct remote *remote, char *bytes, size_t most)
{
	sigset_t stopping, before;
	/* Its offset stays until it is known how much of it the command has read. */
	if (remote->stdin_offset >= 0)
		return pread(STDIN_FILENO, bytes, most, remote->stdin_offset + remote->stdin_sent);
	sigemptyset(&stopping);
	sigaddset(&stopping, SIGTTIN);
	pthread_sigmask(SIG_BLOCK, &stopping, &before);
	ssize_t length = read(STDIN_FILENO, bytes, most);
	int error = errno;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = error;
	return length;
}

/* One read where it may block, or as many as are wanted of what is always ready. */
static void send_input(struct remote *remote, bool readable)
{
	char bytes[16384];
	while (remote->stdin_open && remote->wanted && (readable || !remote->stdin_watched)) {
		size_t most = remote->wanted < sizeof(bytes) ? remote->wanted : sizeof(bytes);
		ssize_t length = read_input(remote, bytes, most);
		if (length < 0 && (errno == EINTR || errno == EAGAIN || (errno == EIO && is_in_background(remote))))
			break;
		int error = length < 0 ? errno : 0;
		size_t count = length > 0 ? (size_t)length : 0;
		remote->stdin_open = length > 0;
		remote->wanted -= (uint32_t)count;
		remote->stdin_sent += (off_t)count;
		send_frame(remote, WIRE_STDIN, error, bytes, count);
		readable = false;
	}
}

/* Keys that are pressed while a question is open at the terminal are not for the command. */
static void watch_input(struct remote *remote)
{
	const struct itimerspec once = { .it_value.tv_nsec = MOMENT_NS };
	bool wanted = remote->stdin_open && remote->wanted && !(remote->asking.is_asked && remote->stdin_terminal);
	if (wanted && is_in_background(remote)) {
		timerfd_settime(remote->moment_fd, 0, &once, NULL);
		wanted = false;
	}
	if (remote->stdin_watched)
		watch(remote, EPOLL_CTL_MOD, STDIN_FILENO, SOURCE_STDIN,
		      wanted ? EPOLLIN | EPOLLONESHOT : EPOLLONESHOT);
}

/* Takes the answer of a human who has given it, or is about to. */
static void take_answer(struct remote *remote)
{
	if (asking_end(&remote->asking))
		send_frame(remote, WIRE_ANSWER, 0, &remote->asking.answer, sizeof(remote->asking.answer));
}

/* ---- from the daemon --------------------------------------------------------------------------------------------- */

static int receive(struct remote *remote, struct cordon_error *err)
{
	bool any;
	if (inbox_receive(&remote->inbox, remote->fd, &any, err) < 0)
		return -1;
	if (any)
		note_listens(remote);
	/* It went away without having read the HELLO, after which nothing was sent. */
	remote->is_declined |= remote->inbox.is_reset && !remote->is_greeted;
	return 0;
}

/* Outside, it would have been the command that moved it. */
static void leave_input(const struct remote *remote, const struct wire_frame *frame)
{
	uint64_t taken;
	memcpy(&taken, frame->body, sizeof(taken));
	if (taken && taken <= (uint64_t)remote->stdin_sent && remote->stdin_offset >= 0 &&
	    lseek(STDIN_FILENO, 0, SEEK_CUR) == remote->stdin_offset)
		lseek(STDIN_FILENO, remote->stdin_offset + (off_t)taken, SEEK_SET);
}

static void handle_frame(struct run *run, const struct wire_frame *frame)
{
	struct remote *remote = run->remote;
	uint32_t number;
	switch (frame->head.kind) {
	case WIRE_STDOUT:
	case WIRE_STDERR:
		run_output(run, frame->head.kind == WIRE_STDERR ? CORDON_STDERR : CORDON_STDOUT, frame->body,
		           frame->head.length);
		break;
	case WIRE_SAY_OUT:
		fwrite(frame->body, 1, frame->head.length, stdout);
		break;
	case WIRE_SAY_ERR:
		fwrite(frame->body, 1, frame->head.length, stderr);
		fflush(stderr);
		break;
	case WIRE_MORE:
		if (wire_number(frame, &number))
			remote->wanted = number > UINT32_MAX - remote->wanted ? UINT32_MAX : remote->wanted + number;
		break;
	case WIRE_TAKEN:
		leave_input(remote, frame);
		break;
	case WIRE_ASK:
		asking_begin(&remote->asking, run, frame);
		break;
	case WIRE_SETTLED:
		asking_settle(&remote->asking);
		break;
	default:
		break;
	}
	inbox_drop(&remote->inbox, frame);
}

/* ---- the carrier ------------------------------------------------------------------------------------------------- */

static int remote_fd(const struct run *run)
{
	return run->remote->epoll_fd;
}

static int take_frames(struct run *run, bool *ret_finished, struct cordon_error *err)
{
	struct remote *remote = run->remote;
	struct wire_frame frame;
	int found;
	while ((found = inbox_next(&remote->inbox, &frame, err)) > 0) {
		remote->is_declined = frame.head.kind == WIRE_DECLINE;
		*ret_finished = remote->is_declined || frame.head.flags & WIRE_OVER;
		if (*ret_finished)
			break;
		handle_frame(run, &frame);
	}
	if (found < 0 || *ret_finished) {
		asking_settle(&remote->asking);
		take_answer(remote);
	}
	return found < 0 ? -1 : 0;
}

static int remote_step(struct run *run, bool *ret_finished, struct cordon_error *err)
{
	struct remote *remote = run->remote;
	struct epoll_event events[SOURCE_MOMENT + 1];
	bool readable = false;
	uint64_t times;
	int count = epoll_wait(remote->epoll_fd, events, ARRAY_SIZE(events), 0);
	for (int i = 0; i < count; i++) {
		readable |= events[i].data.u32 == SOURCE_STDIN;
		if (events[i].data.u32 == SOURCE_ANSWER)
			take_answer(remote);
		if (events[i].data.u32 == SOURCE_PATIENCE)
			end_patience(run);
		if (events[i].data.u32 == SOURCE_MOMENT)
			(void)!read(remote->moment_fd, &times, sizeof(times));
	}
	if (!remote->is_declined && receive(remote, err) < 0)
		return -1;
	if ((*ret_finished = remote->is_declined))
		return 0;
	if (take_frames(run, ret_finished, err) < 0)
		return -1;
	if (*ret_finished)
		return 0;
	send_input(remote, readable && !is_in_background(remote));
	watch_input(remote);
	sink_pump(&remote->out);
	watch_socket(remote);
	return 0;
}

static const struct carrier carrier = { .fd = remote_fd, .step = remote_step, .signal = remote_signal };

int remote_finish(struct run *run, int *ret_status, struct cordon_error *err)
{
	struct remote *remote = run->remote;
	struct wire_frame frame;
	for (;;) {
		int found = inbox_next(&remote->inbox, &frame, err);
		if (found < 0)
			return -1;
		if (found == 0) {
			struct pollfd ready = { .fd = remote->fd, .events = POLLIN };
			poll(&ready, 1, -1);
			if (receive(remote, err) < 0)
				return -1;
			continue;
		}
		if (frame.head.flags & WIRE_UNSTARTED)
			remote_raise_kept(run);
		uint32_t status;
		if (frame.head.kind == WIRE_END && wire_number(&frame, &status)) {
			*ret_status = (int)status;
			return 0;
		}
		handle_frame(run, &frame);
		sink_finish(&run->out, NULL, 0, NULL);
		sink_finish(&run->err, NULL, 0, NULL);
	}
}

bool remote_declined(const struct run *run)
{
	return run->remote->is_declined;
}

void remote_raise_kept(struct run *run)
{
	for (int signal = 1; signal < NSIG; signal++)
		if (sigismember(&run->remote->kept, signal) == 1)
			raise_here(run, signal);
	sigemptyset(&run->remote->kept);
}

static uint32_t flags_of(struct remote *remote, const struct run *run, bool no_stdin)
{
	struct stat info;
	bool known = fstat(STDIN_FILENO, &info) == 0;
	bool is_null = no_stdin || (known && S_ISCHR(info.st_mode) && info.st_rdev == makedev(1, 3));
	remote->stdin_offset = known && S_ISREG(info.st_mode) ? lseek(STDIN_FILENO, 0, SEEK_CUR) : -1;
	remote->stdin_terminal = isatty(STDIN_FILENO);
	/* Reading the terminal from the background would stop this process, and the command with it. */
	remote->stdin_open = !is_null && (!remote->stdin_terminal || terminal_is_ours());
	return (remote->stdin_open ? 0u : (uint32_t)WIRE_NO_STDIN) |
	       (run_has_one_stream() ? (uint32_t)WIRE_ONE_STREAM : 0u) |
	       (run->out.portion.is_terminal ? (uint32_t)WIRE_STDOUT_TERMINAL : 0u) |
	       (run->err.portion.is_terminal ? (uint32_t)WIRE_STDERR_TERMINAL : 0u) |
	       (run->prompt.tty >= 0 ? (uint32_t)WIRE_CAN_ASK : 0u);
}

static bool open_descriptors(struct remote *remote)
{
	remote->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	remote->interrupt_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	remote->patience_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	remote->moment_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (!asking_open(&remote->asking) || remote->epoll_fd < 0 || remote->interrupt_fd < 0 ||
	    remote->patience_fd < 0 || remote->moment_fd < 0)
		return false;
	watch(remote, EPOLL_CTL_ADD, remote->patience_fd, SOURCE_PATIENCE, EPOLLIN);
	watch(remote, EPOLL_CTL_ADD, remote->moment_fd, SOURCE_MOMENT, EPOLLIN);
	begin_patience(remote);
	watch(remote, EPOLL_CTL_ADD, remote->fd, SOURCE_SOCKET, EPOLLIN);
	watch(remote, EPOLL_CTL_ADD, remote->asking.done_fd, SOURCE_ANSWER, EPOLLIN);
	struct epoll_event unwatched = { .events = EPOLLONESHOT, .data.u32 = SOURCE_STDIN };
	remote->stdin_watched = epoll_ctl(remote->epoll_fd, EPOLL_CTL_ADD, STDIN_FILENO, &unwatched) == 0;
	return true;
}

/* The daemon decides how much of a stream is shown: here, everything that comes. */
static void open_sink(struct sink *sink, int fd)
{
	sink_open(sink, fd, 0);
	sink->portion.live_limit = UINT64_MAX;
}

bool remote_open(struct run *run, const char *command, const struct options *options, char **words)
{
	struct cordon_error err;
	auto_close int fd = hello_wanted(options) ? hello_connect(options_value(options, "host")) : -1;
	if (fd < 0 || run_open_signals(run, &err) < 0 || !(run->remote = calloc(1, sizeof(*run->remote))))
		return false;
	struct remote *remote = run->remote;
	run->carrier = &carrier;
	sigemptyset(&remote->kept);
	remote->fd = take_fd(&fd);
	remote->out = (struct sink){ .fd = remote->fd, .own_fd = remote->fd, .portion.live_limit = UINT64_MAX };
	open_sink(&run->out, STDOUT_FILENO);
	open_sink(&run->err, STDERR_FILENO);
	bool opened = open_descriptors(remote);
	if (!options_flag(options, "no-ask"))
		(void)!prompt_open(&run->prompt, remote->interrupt_fd);
	uint32_t flags = flags_of(remote, run, options_flag(options, "no-stdin"));
	if (opened && hello_send(&remote->out, flags, command, words))
		return true;
	remote_close(run);
	return false;
}

void remote_close(struct run *run)
{
	struct remote *remote = run->remote;
	run->remote = NULL;
	if (!remote)
		return;
	asking_close(&remote->asking);
	sink_close(&remote->out);
	sink_close(&run->out);
	sink_close(&run->err);
	prompt_close(&run->prompt);
	cleanup_close(&remote->epoll_fd);
	cleanup_close(&remote->interrupt_fd);
	cleanup_close(&remote->patience_fd);
	cleanup_close(&remote->moment_fd);
	inbox_free(&remote->inbox);
	free(remote);
}

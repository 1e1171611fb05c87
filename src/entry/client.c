/* A command that runs in the daemon, seen from here: its input and signals go there, its output comes from there, and this
 * process ends as it did. One loop over the socket, a signalfd, the input while some is wanted, and the output while that
 * does not take what it is to get: then nothing more is received, and the daemon waits.
 *
 * What needs more than this, a question at the terminal first of all, is for the whole program: it gets the socket, what was
 * received and not handled, and goes on. */
#include <fcntl.h>
#include <linux/limits.h>
#include <linux/sockios.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

#include "entry/conversation.h"
#include "run/sys.h"

#define INPUT_MAX (16u << 10)
#define SIGPIPE_GRACE_MS 1000
#define PATIENCE_MS 1000        /* with a daemon that reads nothing */
#define MOMENT_NS 200000000     /* until it is looked again whether the terminal is ours */
#define STATUS_SIGNAL 128

enum step { NEEDS_BYTES, NEEDS_ROOM, IS_DONE };

static uint64_t now_ms(void)
{
	struct timespec now;
	sys_2(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static bool takes_more(int fd, bool wait_for_it)
{
	struct pollfd ready;
	struct timespec none;
	ready.fd = fd;
	ready.events = POLLOUT;
	ready.revents = 0;
	none.tv_sec = none.tv_nsec = 0;
	return sys_5(SYS_ppoll, &ready, 1, wait_for_it ? NULL : &none, NULL, 0) == 1;
}

/* One that cannot be sent is not missed: the daemon is gone, which reading tells, or it has ended this. */
static void send_frame(const struct conversation *conversation, uint8_t kind, uint8_t flags, void *body, uint32_t length)
{
	struct wire_head head;
	struct iovec parts[2];
	head.kind = kind;
	head.flags = flags;
	head.zero = 0;
	head.length = length;
	parts[0].iov_base = &head;
	parts[0].iov_len = sizeof(head);
	parts[1].iov_base = body;
	parts[1].iov_len = length;
	for (size_t at = 0; at < 2;) {
		long sent = sys_3(SYS_writev, conversation->socket, parts + at, 2 - at);
		if (sent == -EAGAIN)
			takes_more(conversation->socket, true);
		else if (sent < 0 && sent != -EINTR)
			return;
		for (; at < 2 && sent >= 0; at++) {
			if ((size_t)sent < parts[at].iov_len) {
				parts[at].iov_base = (char *)parts[at].iov_base + sent;
				parts[at].iov_len -= (size_t)sent;
				break;
			}
			sent -= (long)parts[at].iov_len;
		}
	}
}

static void send_signal(const struct conversation *conversation, uint32_t number)
{
	send_frame(conversation, WIRE_SIGNAL, 0, &number, sizeof(number));
}

/* ---- output ------------------------------------------------------------------------------------------------------ */

/* How much of it is dealt with: 0 means not now. While the command runs nothing may block: a pipe that polls writable takes
 * PIPE_BUF bytes. Afterwards it is only us whom a reader that stalls keeps waiting. */
static uint32_t put(struct conversation *conversation, const char *bytes, uint32_t length)
{
	int stream = conversation->stream, fd = conversation->out[stream];
	if (conversation->error[stream])
		return length;
	if (!takes_more(fd, conversation->over))
		return 0;
	if (fd == stream && !conversation->over && length > PIPE_BUF)
		length = PIPE_BUF;
	long written = sys_3(SYS_write, fd, bytes, length);
	if (written >= 0 || written == -EINTR || written == -EAGAIN)
		return written > 0 ? (uint32_t)written : 0;
	conversation->error[stream] = (int)-written;
	if (written == -EPIPE && !conversation->over && !conversation->broken_at_ms) {
		conversation->broken_at_ms = now_ms();
		send_signal(conversation, SIGPIPE);
	}
	return length;
}

/* ---- frames ------------------------------------------------------------------------------------------------------ */

/* What the kinds that are handled here may be long, and which stream is written. */
static const struct {
	uint8_t kind, stream;
	uint32_t least, most;
} kinds[] = {
	{ WIRE_STDOUT, 1, 0, WIRE_BODY_MAX }, { WIRE_STDERR, 2, 0, WIRE_BODY_MAX }, { WIRE_SAY_OUT, 1, 0, WIRE_BODY_MAX },
	{ WIRE_SAY_ERR, 2, 0, WIRE_BODY_MAX }, { WIRE_DECLINE, 0, 0, 0 }, { WIRE_MORE, 0, 4, 4 }, { WIRE_END, 0, 4, 4 },
	/* For the whole program, which looks at them itself. */
	{ WIRE_ASK, 0, 0, UINT32_MAX }, { WIRE_SETTLED, 0, 0, UINT32_MAX },
};

static void copy_from(uint32_t at, void *to, size_t length)
{
	for (size_t i = 0; i < length; i++)
		((volatile char *)to)[i] = entry_handed.bytes[at + i];
}

static uint32_t number_at(uint32_t at)
{
	uint32_t number;
	copy_from(at, &number, sizeof(number));
	return number;
}

static void hand_on(enum entry_what what, int error)
{
	entry_handed.what = what;
	entry_handed.error = error;
}

static enum step end(const struct conversation *conversation, uint32_t status)
{
	const int *error = conversation->error;
	if (error[1] == EPIPE || error[2] == EPIPE)
		sys_exit(STATUS_SIGNAL + SIGPIPE);
	if (!error[1] && !error[2])
		sys_exit((int)status);
	hand_on(ENTRY_WRITE_FAILED, error[1] ? error[1] : error[2]);
	return IS_DONE;
}

static enum step take_small(struct conversation *conversation, const struct wire_head *head, uint32_t body)
{
	if (entry_handed.to - body < head->length)
		return NEEDS_BYTES;
	if (head->kind == WIRE_END)
		return end(conversation, number_at(body));
	uint32_t more = number_at(body);
	conversation->wanted += more < UINT32_MAX - conversation->wanted ? more : UINT32_MAX - conversation->wanted;
	entry_handed.from = body + head->length;
	return NEEDS_ROOM;      /* to be gone on with */
}

/* The command never began: they were meant for us. */
static void raise_taken(const struct conversation *conversation)
{
	for (uint32_t number = 1; number < 32; number++)
		if (conversation->taken & 1u << number)
			sys_2(SYS_kill, sys_0(SYS_getpid), number);
}

/* The frame that begins at `from`. */
static enum step take_frame(struct conversation *conversation, const struct wire_head *head)
{
	size_t row = 0;
	while (row < sizeof(kinds) / sizeof(*kinds) && kinds[row].kind != head->kind)
		row++;
	bool known = row < sizeof(kinds) / sizeof(*kinds) && !head->zero && head->length >= kinds[row].least &&
	             head->length <= kinds[row].most;
	uint32_t body = entry_handed.from + (uint32_t)sizeof(*head);
	/* What makes no sense is for the whole program to say. */
	if (!known || head->kind == WIRE_DECLINE || head->kind == WIRE_ASK || head->kind == WIRE_SETTLED) {
		hand_on(known && head->kind == WIRE_DECLINE ? ENTRY_DECLINED : ENTRY_GOES_ON, 0);
		return IS_DONE;
	}
	if (head->flags & WIRE_UNSTARTED || (head->flags & WIRE_OVER && head->kind != WIRE_END)) {
		conversation->over = true;
		entry_release_signals(conversation);
	}
	if (head->flags & WIRE_UNSTARTED)
		raise_taken(conversation);
	if (!kinds[row].stream)
		return take_small(conversation, head, body);
	conversation->stream = kinds[row].stream;
	conversation->left = head->length;
	entry_handed.from = body;
	return NEEDS_ROOM;
}

static enum step take_frames(struct conversation *conversation)
{
	for (;;) {
		uint32_t available = entry_handed.to - entry_handed.from;
		if (conversation->left) {
			uint32_t length = available < conversation->left ? available : conversation->left;
			if (!length)
				return NEEDS_BYTES;
			length = put(conversation, entry_handed.bytes + entry_handed.from, length);
			if (!length && !conversation->over)
				return NEEDS_ROOM;
			entry_handed.from += length;
			conversation->left -= length;
			continue;
		}
		struct wire_head head;
		if (available < sizeof(head))
			return NEEDS_BYTES;
		copy_from(entry_handed.from, &head, sizeof(head));
		enum step step = take_frame(conversation, &head);
		if (step != NEEDS_ROOM)
			return step;
	}
}

/* False: the daemon is gone. */
static bool receive(struct conversation *conversation)
{
	uint32_t left = entry_handed.to - entry_handed.from;
	/* A head, or a number, of which a part is missing; what is written is never kept. */
	copy_from(entry_handed.from, entry_handed.bytes, left);
	entry_handed.from = 0;
	entry_handed.to = left;
	long length = sys_3(SYS_read, conversation->socket, entry_handed.bytes + left, ENTRY_BYTES - left);
	if (length > 0)
		entry_handed.to += (uint32_t)length;
	return length > 0 || length == -EINTR || length == -EAGAIN;
}

/* ---- a daemon that does not listen ------------------------------------------------------------------------------- */

/* Has it read all that was sent? Where the kernel does not tell it has: nothing is to run twice. */
static bool is_heard(const struct conversation *conversation)
{
	int unread = 0;
	return sys_3(SYS_ioctl, conversation->socket, SIOCOUTQ, &unread) < 0 || !unread;
}

static void note_listens(struct conversation *conversation)
{
	conversation->greeted = true;
	conversation->deaf = false;
	conversation->ends = 0;
}

/* Of a HELLO that was not read: wire.h tells why nothing runs twice. Where it was read at the last moment, the whole program finds
 * the connection ended and says so. */
static void take_back(struct conversation *conversation)
{
	bool shut = sys_2(SYS_shutdown, conversation->socket, SHUT_RDWR) == 0;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	conversation->given_up = true;
	hand_on(shut && !is_heard(conversation) ? ENTRY_DECLINED : ENTRY_GOES_ON, 0);
}

/* Nobody there hears it. Our end is the command's, when the daemon wakes. */
static void end_by(struct conversation *conversation, uint32_t number)
{
	entry_release_signals(conversation);
	sys_2(SYS_kill, sys_0(SYS_getpid), number);
}

/* For PATIENCE_MS nothing has come, and nothing was sent. */
static void look_whether_it_listens(struct conversation *conversation)
{
	if (is_heard(conversation))
		return note_listens(conversation);
	if (!conversation->greeted)
		return take_back(conversation);
	conversation->deaf = true;
	if (conversation->ends > 1)
		end_by(conversation, conversation->last_end);
}

/* ---- what goes there --------------------------------------------------------------------------------------------- */

static void pass_end(struct conversation *conversation, uint32_t number)
{
	if (conversation->deaf && is_heard(conversation))
		note_listens(conversation);
	send_signal(conversation, number);
	conversation->ends++;
	conversation->last_end = number;
	if (conversation->deaf && conversation->ends > 1)
		end_by(conversation, number);
}

/* The command is in a session of its own, where SIGTSTP would be ignored: no shell there waits for it to stop. */
static void stop_both(const struct conversation *conversation)
{
	send_signal(conversation, SIGSTOP);
	sys_2(SYS_kill, sys_0(SYS_getpid), SIGSTOP);
	send_signal(conversation, SIGCONT);
}

static void pass_signal(struct conversation *conversation, uint32_t number)
{
	bool unread = !conversation->greeted && !is_heard(conversation);
	if (unread || number != SIGTSTP)
		conversation->taken |= 1u << (number & 31);
	if (unread)
		return take_back(conversation);
	conversation->greeted = true;
	if (number == SIGTSTP)
		stop_both(conversation);
	else if (number == SIGUSR1 || number == SIGUSR2)
		send_signal(conversation, number);
	else
		pass_end(conversation, number);
}

static void pass_signals(struct conversation *conversation)
{
	struct signalfd_siginfo info;
	while (!conversation->given_up && sys_3(SYS_read, conversation->signal_fd, &info, sizeof(info)) == sizeof(info))
		pass_signal(conversation, info.ssi_signo);
}

/* Then what is typed is somebody else's. Nothing tells when that changes. */
static bool is_in_background(const struct conversation *conversation)
{
	return conversation->stdin_terminal && !entry_is_in_foreground(0);
}

static void pass_input(struct conversation *conversation)
{
	static char bytes[INPUT_MAX];
	long length = sys_3(SYS_read, 0, bytes, conversation->wanted < INPUT_MAX ? conversation->wanted : INPUT_MAX);
	if (length == -EAGAIN || length == -EINTR || (length == -EIO && is_in_background(conversation)))
		return;
	conversation->stdin_open = length > 0;
	uint8_t error = length < 0 ? (uint8_t)-length : 0;
	uint32_t count = length > 0 ? (uint32_t)length : 0;
	conversation->wanted -= count;
	send_frame(conversation, WIRE_STDIN, error, bytes, count);
}

/* Waits for what can go on, and deals with all but the output. False: the daemon is gone, or was given up. */
static bool wait(struct conversation *conversation, bool stalled)
{
	enum { SOCKET, SIGNALS, INPUT, OUTPUT, COUNT };
	struct timespec grace;
	struct pollfd ready[COUNT];
	bool wanted = conversation->stdin_open && conversation->wanted && !conversation->over;
	bool elsewhere = wanted && is_in_background(conversation);
	ready[SOCKET].fd = stalled ? -1 : conversation->socket;
	ready[SIGNALS].fd = conversation->signal_fd;
	ready[INPUT].fd = wanted && !elsewhere ? 0 : -1;
	ready[OUTPUT].fd = stalled ? conversation->out[conversation->stream] : -1;
	for (int i = 0; i < COUNT; i++) {
		ready[i].events = i == OUTPUT ? POLLOUT : POLLIN;
		ready[i].revents = 0;
	}
	bool bounded = conversation->broken_at_ms || !conversation->greeted || (conversation->ends && !conversation->deaf);
	grace.tv_sec = bounded ? PATIENCE_MS / 1000 : 0;
	grace.tv_nsec = bounded ? 0 : MOMENT_NS;
	long count = sys_5(SYS_ppoll, ready, COUNT, bounded || elsewhere ? &grace : NULL, NULL, 0);
	if (count < 0)
		return true;
	if (count == 0 && bounded)
		look_whether_it_listens(conversation);
	if (ready[SOCKET].revents)
		note_listens(conversation);
	if (ready[SIGNALS].revents)
		pass_signals(conversation);
	if (ready[INPUT].revents)
		pass_input(conversation);
	if (conversation->broken_at_ms && !conversation->over && now_ms() - conversation->broken_at_ms >= SIGPIPE_GRACE_MS)
		send_signal(conversation, SIGKILL);
	return !conversation->given_up && (!ready[SOCKET].revents || receive(conversation));
}

/* ------------------------------------------------------------------------------------------------------------------- */

/* This process as it was, but for what is handed on. */
static void leave(struct conversation *conversation)
{
	entry_release_signals(conversation);
	for (int fd = 1; fd <= 2; fd++)
		if (conversation->out[fd] != fd)
			sys_1(SYS_close, conversation->out[fd]);
	if (entry_handed.what == ENTRY_GOES_ON) {
		entry_handed.fd = conversation->socket;
		entry_handed.wanted = conversation->wanted;
		entry_handed.signals = conversation->taken;
		entry_handed.no_stdin = !conversation->stdin_open;
		return;
	}
	sys_1(SYS_close, conversation->socket);
	if (entry_handed.what == ENTRY_DECLINED)
		raise_taken(conversation);
}

void entry_converse(const struct entry_process *process)
{
	struct conversation conversation;
	conversation.error[1] = conversation.error[2] = 0;
	conversation.wanted = conversation.taken = conversation.left = 0;
	conversation.over = conversation.greeted = conversation.given_up = conversation.deaf = false;
	conversation.ends = conversation.last_end = 0;
	conversation.broken_at_ms = 0;
	if (!entry_hello(process, &conversation))
		return;
	for (;;) {
		enum step step = take_frames(&conversation);
		if (step == IS_DONE)
			break;
		if (!wait(&conversation, step == NEEDS_ROOM)) {
			if (!conversation.given_up)
				hand_on(ENTRY_GOES_ON, 0);
			break;
		}
	}
	leave(&conversation);
}

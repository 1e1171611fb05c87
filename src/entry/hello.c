/* The beginning of a conversation with the daemon: looks at what this process has been given, connects, and says it. */
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <termios.h>
#include <unistd.h>

#include "entry/conversation.h"
#include "run/sys.h"

#define PATH_SIZE 4096

/* What a signal's number is in a set. */
#define BIT(number) (1ULL << ((number) - 1))

static bool is_terminal(int fd)
{
	char settings[128];     /* larger than any kernel's struct termios */
	return sys_3(SYS_ioctl, fd, TCGETS, settings) == 0;
}

bool entry_is_in_foreground(int fd)
{
	int group = 0;
	return sys_3(SYS_ioctl, fd, TIOCGPGRP, &group) == 0 && group == sys_1(SYS_getpgid, 0);
}

/* Nothing can be read there, or nothing may: a terminal would stop who reads it from the background. */
static bool has_no_input(bool terminal)
{
	struct stat info;
	if (terminal)
		return !entry_is_in_foreground(0);
	return sys_2(SYS_fstat, 0, &info) == 0 && S_ISCHR(info.st_mode) && info.st_rdev == makedev(1, 3);
}

static bool can_ask(void)
{
	static const char path[] = "/dev/tty";  /* beside the other constants of this code: see words.c */
	long tty = sys_4(SYS_openat, AT_FDCWD, path, O_RDWR | O_NOCTTY | O_CLOEXEC, 0);
	if (tty < 0)
		return false;
	bool ours = entry_is_in_foreground((int)tty);
	sys_1(SYS_close, tty);
	return ours;
}

static void look_at_streams(struct conversation *conversation)
{
	conversation->stdin_terminal = is_terminal(0);
	conversation->stdin_open = !has_no_input(conversation->stdin_terminal);
	conversation->flags = WIRE_FAST | (conversation->stdin_open ? 0 : WIRE_NO_STDIN) |
	                      (is_terminal(1) ? WIRE_STDOUT_TERMINAL : 0) | (is_terminal(2) ? WIRE_STDERR_TERMINAL : 0) |
	                      (can_ask() ? WIRE_CAN_ASK : 0);
}

/* Is it the daemon of this very user, and alive? Whoever else listens there must not get to know anything; and the socket of one
 * that was killed lives on for a moment in what it was about to start. */
static bool dial(int fd, const struct sockaddr_un *address, size_t path_size, uint32_t user)
{
	struct ucred peer;
	unsigned length = sizeof(peer);
	return sys_3(SYS_connect, fd, address, offsetof(struct sockaddr_un, sun_path) + path_size) == 0 &&
	       sys_5(SYS_getsockopt, fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && length == sizeof(peer) &&
	       peer.uid == user && peer.pid > 0 && sys_2(SYS_kill, peer.pid, 0) != -ESRCH;
}

/* Without O_NONBLOCK a write could block while signals wait; set on the caller's it would be the caller's, too. */
static void open_terminals(struct conversation *conversation)
{
	for (int fd = 1; fd <= 2; fd++) {
		char path[] = "/proc/self/fd/0";
		conversation->out[fd] = fd;
		if (!(conversation->flags & (fd == 1 ? WIRE_STDOUT_TERMINAL : WIRE_STDERR_TERMINAL)))
			continue;
		path[sizeof(path) - 2] = (char)('0' + fd);
		long own = sys_4(SYS_openat, AT_FDCWD, path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
		if (own >= 0)
			conversation->out[fd] = (int)own;
	}
}

static bool take_signals(struct conversation *conversation)
{
	const unsigned long ignore[4] = { (unsigned long)SIG_IGN };     /* the kernel's struct sigaction */
	const uint64_t mask = BIT(SIGINT) | BIT(SIGTERM) | BIT(SIGHUP) | BIT(SIGQUIT) | BIT(SIGUSR1) | BIT(SIGUSR2) | BIT(SIGTSTP);
	long fd = sys_4(SYS_signalfd4, -1, &mask, sizeof(mask), O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return false;
	conversation->signal_fd = (int)fd;
	/* Who reads a terminal at the moment when it is put into the background is told, and not stopped. */
	const uint64_t blocked = mask | BIT(SIGTTIN);
	sys_4(SYS_rt_sigprocmask, SIG_BLOCK, &blocked, &conversation->mask_before, sizeof(blocked));
	sys_4(SYS_rt_sigaction, SIGPIPE, ignore, NULL, sizeof(mask));
	return true;
}

void entry_release_signals(struct conversation *conversation)
{
	if (conversation->signal_fd < 0)
		return;
	sys_1(SYS_close, conversation->signal_fd);
	conversation->signal_fd = -1;
	sys_4(SYS_rt_sigprocmask, SIG_SETMASK, &conversation->mask_before, NULL, sizeof(conversation->mask_before));
}

/* Sends it all; the memory that the kernel made for words and environment is sent as it is. */
static bool say(int fd, const struct entry_process *process, uint32_t flags, char *cwd, size_t cwd_size)
{
	struct {
		struct wire_head head;
		struct wire_hello hello;
	} __attribute__((packed)) first;
	uint64_t length = (uint64_t)sizeof(first.hello) + process->words_size + process->environment_size + cwd_size;
	if (length > WIRE_HELLO_MAX)
		return false;
	first.head.kind = WIRE_HELLO;
	first.head.flags = 0;
	first.head.zero = 0;
	first.head.length = (uint32_t)length;
	first.hello.version = WIRE_VERSION;
	first.hello.flags = flags;
	first.hello.word_count = process->word_count;
	first.hello.environment_count = process->environment_count;
	struct iovec parts[4];
	parts[0].iov_base = &first;
	parts[0].iov_len = sizeof(first);
	parts[1].iov_base = process->argv[1];
	parts[1].iov_len = process->words_size;
	parts[2].iov_base = process->environment[0];
	parts[2].iov_len = process->environment_size;
	parts[3].iov_base = cwd;
	parts[3].iov_len = cwd_size;
	/* A writev, which has no MSG_NOSIGNAL and needs none: SIGPIPE is ignored. Of a part of a HELLO nothing comes. */
	return sys_3(SYS_writev, fd, parts, 4) == (long)(sizeof(first.head) + length);
}

/* Connecting wakes the daemon, which looks at who comes before it listens: what there is to look at here is looked at meanwhile. */
bool entry_hello(const struct entry_process *process, struct conversation *conversation)
{
	struct sockaddr_un address;
	char *cwd = entry_handed.bytes; /* where nothing is received yet, and whose memory is there */
	size_t size = entry_socket_path((const char *const *)process->environment, address.sun_path, sizeof(address.sun_path));
	address.sun_family = AF_UNIX;
	conversation->signal_fd = -1;
	if (!size || process->words_size + process->environment_size > WIRE_HELLO_MAX)
		return false;
	conversation->socket = (int)sys_3(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (conversation->socket < 0)
		return false;
	/* Below 3 it has the place of a standard stream that is closed. */
	if (conversation->socket > 2 && dial(conversation->socket, &address, size, process->user)) {
		long cwd_size = sys_2(SYS_getcwd, cwd, PATH_SIZE);
		look_at_streams(conversation);
		if (cwd_size > 0 && cwd[0] == '/' && take_signals(conversation) &&
		    say(conversation->socket, process, conversation->flags, cwd, (size_t)cwd_size)) {
			open_terminals(conversation);
			return true;
		}
	}
	entry_release_signals(conversation);
	sys_1(SYS_close, conversation->socket);
	return false;
}

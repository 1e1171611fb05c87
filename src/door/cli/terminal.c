/* With --tty the command has a terminal of its own, and the caller's merely carries bytes to and from it: raw, so that
 * Ctrl-C acts inside. A shell whose terminal is left raw is unusable, so the old settings come back at every
 * end of the process that leaves time for it: ordinary exit, and the signals of a crash. There is one terminal per
 * process, hence the file's own state. */
#include "door/cli/terminal.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"

static struct termios saved;
static int changed_fd = -1;
static volatile sig_atomic_t is_changed;

bool terminal_is_ours(void)
{
	pid_t group = tcgetpgrp(STDIN_FILENO);
	/* One that controls no process of this session stops nobody who reads it. */
	return group == getpgrp() || (group < 0 && errno == ENOTTY);
}

void terminal_restore(void)
{
	if (!is_changed)
		return;
	is_changed = 0;
	tcsetattr(changed_fd, TCSADRAIN, &saved);
}

static void on_crash(int signal)
{
	terminal_restore();
	raise(signal); /* SA_RESETHAND: this one is deadly */
}

static void restore_at_every_end(void)
{
	static const int crashes[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS };
	struct sigaction action = { .sa_handler = on_crash, .sa_flags = (int)SA_RESETHAND };
	static bool done;
	if (done)
		return;
	done = true;
	atexit(terminal_restore);
	for (size_t i = 0; i < ARRAY_SIZE(crashes); i++)
		sigaction(crashes[i], &action, NULL);
}

void terminal_set(int fd, const struct termios *wanted, int when)
{
	if (!is_changed) {
		if (tcgetattr(fd, &saved) < 0)
			return;
		changed_fd = fd;
		restore_at_every_end();
		is_changed = 1;
	}
	tcsetattr(fd, when, wanted);
}

void terminal_raw(void)
{
	struct termios raw;
	if (is_changed || tcgetattr(STDIN_FILENO, &raw) < 0)
		return;
	cfmakeraw(&raw);
	/* Except Ctrl-Z, which only the shell that started cordon can handle: it comes as SIGTSTP. */
	raw.c_lflag |= ISIG | NOFLSH;
	raw.c_cc[VINTR] = raw.c_cc[VQUIT] = _POSIX_VDISABLE;
	terminal_set(STDIN_FILENO, &raw, TCSADRAIN);
}

void terminal_size(unsigned short *ret_rows, unsigned short *ret_columns)
{
	static const int streams[] = { STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO };
	*ret_rows = 24;
	*ret_columns = 80;
	for (size_t i = 0; i < ARRAY_SIZE(streams); i++) {
		struct winsize size;
		if (ioctl(streams[i], TIOCGWINSZ, &size) < 0 || !size.ws_row || !size.ws_col)
			continue;
		*ret_rows = size.ws_row;
		*ret_columns = size.ws_col;
		return;
	}
}

/* The signals that come while a command runs, and the end of a question: by descriptors that the loop polls. */
#include <errno.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/error.h"
#include "door/cli/run.h"

static const int forwarded[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };
#define ENDING 4 /* the first so many of these */

bool run_signal_ends(int signal)
{
	for (size_t i = 0; i < ENDING; i++)
		if (forwarded[i] == signal)
			return true;
	return false;
}

int run_open_signals(struct run *run, struct cordon_error *err)
{
	sigset_t mask, ending;
	sigemptyset(&mask);
	sigemptyset(&ending);
	for (size_t i = 0; i < ARRAY_SIZE(forwarded); i++) {
		sigaddset(&mask, forwarded[i]);
		if (i < ENDING)
			sigaddset(&ending, forwarded[i]);
	}
	sigaddset(&mask, SIGTSTP);
	if (run->tty)
		sigaddset(&mask, SIGWINCH);
	signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_BLOCK, &mask, &run->mask_before);
	run->signal_fd = signalfd(-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC);
	run->interrupt_fd = signalfd(-1, &ending, SFD_NONBLOCK | SFD_CLOEXEC);
	run->answered_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (run->signal_fd < 0 || run->interrupt_fd < 0 || run->answered_fd < 0)
		return fail(err, CORDON_E_INTERNAL, errno, NULL, "signals cannot be received");
	return 0;
}

int run_take_signal(struct run *run)
{
	struct signalfd_siginfo info;
	return read(run->signal_fd, &info, sizeof(info)) == sizeof(info) ? (int)info.ssi_signo : 0;
}

void run_wake(struct run *run)
{
	uint64_t one = 1;
	(void)!write(run->answered_fd, &one, sizeof(one));
}

void run_wake_taken(struct run *run)
{
	uint64_t answers;
	(void)!read(run->answered_fd, &answers, sizeof(answers));
}

int run_look_ms(const struct run *run)
{
	(void)run;
	return -1;
}

bool run_gives_terminals(void)
{
	return true;
}

/* See job-signals.h. */
#include "door/cli/job-signals.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/error.h"

int job_signals_open(int *ret_fd, struct cordon_error *err)
{
	static const int ending[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	sigset_t mask;
	sigemptyset(&mask);
	for (size_t i = 0; i < ARRAY_SIZE(ending); i++)
		sigaddset(&mask, ending[i]);
	signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	int fd = signalfd(-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC);
	if (fd < 0)
		return fail(err, CORDON_E_INTERNAL, errno, NULL, "signals cannot be received");
	*ret_fd = fd;
	return 0;
}

bool job_signals_take(int fd)
{
	struct signalfd_siginfo info;
	return read(fd, &info, sizeof(info)) == sizeof(info);
}

/* The same where signals come by no descriptor: a handler makes one readable. */
#include <errno.h>
#include <signal.h>
#include <sys/eventfd.h>

#include "base/error.h"
#include "door/cli/job-signals.h"

static int came_fd = -1;

static void note(int signal_number)
{
	int kept = errno;
	(void)signal_number;
	(void)!eventfd_write(came_fd, 1);
	errno = kept;
}

int job_signals_open(int *ret_fd, struct cordon_error *err)
{
	static const int ending[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	struct sigaction action = { .sa_handler = note, .sa_flags = SA_RESTART };
	sigset_t mask;
	sigemptyset(&mask);
	came_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (came_fd < 0)
		return fail(err, CORDON_E_INTERNAL, errno, NULL, "signals cannot be received");
	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < ARRAY_SIZE(ending); i++) {
		sigaddset(&mask, ending[i]);
		sigaction(ending[i], &action, NULL);
	}
	sigprocmask(SIG_UNBLOCK, &mask, NULL);
	*ret_fd = came_fd;
	return 0;
}

bool job_signals_take(int fd)
{
	eventfd_t count;
	return eventfd_read(fd, &count) == 0;
}

/* The signals that end the process that runs a job, where they come by no descriptor (job-signals-other.c): the
 * descriptor is readable once one came, also where the caller had blocked it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cmocka.h>

#include "door/cli/job-signals.h"

static bool is_readable(int fd)
{
	return poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 0) == 1;
}

static void test_signals(void **state)
{
	static const int ending[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT };
	struct cordon_error err;
	sigset_t blocked;
	int fd = -1;
	(void)state;
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGHUP);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	assert_int_equal(job_signals_open(&fd, &err), 0);
	assert_false(is_readable(fd) || job_signals_take(fd));
	for (size_t i = 0; i < ARRAY_SIZE(ending); i++) {
		raise(ending[i]);
		assert_true(is_readable(fd));
		assert_true(job_signals_take(fd));
		assert_false(is_readable(fd) || job_signals_take(fd));
	}
	raise(SIGTERM);
	raise(SIGTERM);
	assert_true(job_signals_take(fd));
	assert_false(job_signals_take(fd));
	raise(SIGPIPE);
	assert_false(is_readable(fd));
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_signals) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Threads of the library's own: signals are for the program that calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/thread.h"

#include <cmocka.h>

struct seen {
	sigset_t mask;
	size_t stack;
};

static void *look(void *arg)
{
	struct seen *seen = arg;
	pthread_attr_t attributes;
	pthread_sigmask(SIG_SETMASK, NULL, &seen->mask);
	if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
		pthread_attr_getstacksize(&attributes, &seen->stack);
		pthread_attr_destroy(&attributes);
	}
	return NULL;
}

static void test_no_signal_is_taken(void **state)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGUSR1, SIGALRM, SIGPIPE };
	struct seen seen = { 0 };
	sigset_t mine;
	pthread_t thread;
	(void)state;
	assert_int_equal(thread_start(&thread, (size_t)256 << 10, look, &seen), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	pthread_sigmask(SIG_SETMASK, NULL, &mine);
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++) {
		assert_int_equal(sigismember(&seen.mask, signals[i]), 1);
		assert_int_equal(sigismember(&mine, signals[i]), 0);
	}
	assert_int_equal(seen.stack, 256 << 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_no_signal_is_taken) };
	return cmocka_run_group_tests_name("thread", tests, NULL, NULL);
}

/* Threads beside their caller: where they run, and that no handler of a signal runs in them. */
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "run/aside.h"

#include <cmocka.h> /* has a macro that is called fail */

#define STACK_SIZE (64 * 1024)

struct found {
	cpu_set_t processors;
	sigset_t blocked;
};

static void *look(void *argument)
{
	struct found *found = argument;
	sched_getaffinity(0, sizeof(found->processors), &found->processors);
	pthread_sigmask(SIG_SETMASK, NULL, &found->blocked);
	return NULL;
}

static void start(struct found *ret_found)
{
	pthread_t thread;
	assert_int_equal(aside_start(&thread, STACK_SIZE, look, ret_found), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

/* Who may run on two processors may be moved from one to the other meanwhile, but the thread is kept off one of them. */
static void test_it_runs_elsewhere(void **state)
{
	(void)state;
	struct found found;
	cpu_set_t mine, kept_off;
	assert_int_equal(sched_getaffinity(0, sizeof(mine), &mine), 0);
	start(&found);
	CPU_XOR(&kept_off, &mine, &found.processors);
	assert_int_equal(CPU_COUNT(&kept_off), CPU_COUNT(&mine) > 1);
}

static void test_with_one_processor_it_runs_there(void **state)
{
	(void)state;
	struct found found;
	cpu_set_t mine, one;
	int here = sched_getcpu();
	assert_int_equal(sched_getaffinity(0, sizeof(mine), &mine), 0);
	CPU_ZERO(&one);
	CPU_SET(here, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	start(&found);
	assert_true(CPU_EQUAL(&found.processors, &one));
	assert_int_equal(sched_setaffinity(0, sizeof(mine), &mine), 0);
}

static void test_signals_are_the_callers(void **state)
{
	(void)state;
	struct found found;
	sigset_t mine;
	start(&found);
	assert_int_equal(sigismember(&found.blocked, SIGTERM), 1);
	assert_int_equal(sigismember(&found.blocked, SIGUSR1), 1);
	pthread_sigmask(SIG_SETMASK, NULL, &mine);
	assert_int_equal(sigismember(&mine, SIGTERM), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_it_runs_elsewhere),
		cmocka_unit_test(test_with_one_processor_it_runs_there),
		cmocka_unit_test(test_signals_are_the_callers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

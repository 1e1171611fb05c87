/* Whether a processor is free: not while there is somebody for each. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "run/processors.h"

#define LOOKS 50

static atomic_bool over;

static void *spin(void *arg)
{
	while (!over)
		;
	return arg;
}

static void test_none_is_free_with_somebody_on_each(void **state)
{
	(void)state;
	cpu_set_t cpus;
	pthread_t threads[CPU_SETSIZE];
	assert_int_equal(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
	int count = CPU_COUNT(&cpus);
	for (int i = 0; i < count; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, spin, NULL), 0);
	/* What it said before the last one began to run does not count, nor does the next. */
	processors_one_is_free();
	processors_one_is_free();
	int free = 0, enough = 0;
	for (int i = 0; i < LOOKS; i++) {
		free += processors_one_is_free() + processors_one_is_idle();
		enough += !processors_are_short();
	}
	over = true;
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(free + enough, 0);
}

static void test_with_one_processor_none_is_ever_free(void **state)
{
	(void)state;
	cpu_set_t before, one;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	CPU_ZERO(&one);
	CPU_SET((unsigned)sched_getcpu(), &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	processors_one_is_free();
	assert_false(processors_one_is_free());
	assert_false(processors_one_is_idle());
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_none_is_free_with_somebody_on_each),
		cmocka_unit_test(test_with_one_processor_none_is_ever_free),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

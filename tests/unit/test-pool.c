/* Threads that wait do not keep the others waiting; what is handed over is taken at once or not at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <semaphore.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "door/daemon/pool.h"

struct job {
	struct task task;
	sem_t *begun, *gate;    /* says that it has begun; waits until it is let through */
};

static void act(struct task *task)
{
	struct job *job = (struct job *)task;
	sem_post(job->begun);
	if (job->gate)
		sem_wait(job->gate);
}

static void test_many_short_ones(void **state)
{
	(void)state;
	struct pool pool;
	static struct job jobs[1000];
	sem_t begun;
	sem_init(&begun, 0, 0);
	pool_open(&pool, 3, 3);
	for (size_t i = 0; i < ARRAY_SIZE(jobs); i++) {
		jobs[i] = (struct job){ { NULL, act }, &begun, NULL };
		pool_add(&pool, &jobs[i].task);
	}
	for (size_t i = 0; i < ARRAY_SIZE(jobs); i++)
		sem_wait(&begun);
	assert_false(pool_is_pressed(&pool));
	assert_true(pool.threads <= 3);
	pool_close(&pool);
	assert_int_equal(pool.taken, ARRAY_SIZE(jobs));
	sem_destroy(&begun);
}

static void test_those_that_wait(void **state)
{
	(void)state;
	struct pool pool;
	struct job waiting[6], last;
	sem_t begun, gate;
	sem_init(&begun, 0, 0);
	sem_init(&gate, 0, 0);
	pool_open(&pool, 2, 6);
	for (size_t i = 0; i < ARRAY_SIZE(waiting); i++) {
		waiting[i] = (struct job){ { NULL, act }, &begun, &gate };
		pool_add(&pool, &waiting[i].task);
	}
	/* Two have begun. One more with each look at which nothing has moved since, until there are as many as may be.
	 */
	sem_wait(&begun);
	sem_wait(&begun);
	assert_true(pool_is_pressed(&pool));
	pool_relieve(&pool);
	for (int i = 2; i < 6; i++) {
		pool_relieve(&pool);
		sem_wait(&begun);
		pool_relieve(&pool); /* it has: none comes for that */
	}
	assert_false(pool_is_pressed(&pool));
	last = (struct job){ { NULL, act }, &begun, NULL };
	pool_add(&pool, &last.task);
	pool_relieve(&pool);
	pool_relieve(&pool);
	assert_int_equal(pool.threads, 6);
	assert_true(pool_is_pressed(&pool));
	for (size_t i = 0; i < ARRAY_SIZE(waiting); i++)
		sem_post(&gate);
	sem_wait(&begun);
	pool_close(&pool);
	sem_destroy(&begun);
	sem_destroy(&gate);
}

static void test_handing_over(void **state)
{
	(void)state;
	struct pool pool;
	sem_t begun, gate;
	sem_init(&begun, 0, 0);
	sem_init(&gate, 0, 0);
	struct job first = { { NULL, act }, &begun, &gate }, handed = { { NULL, act }, &begun, NULL };
	pool_open(&pool, 1, 1);
	assert_false(pool_hand(&pool, &handed.task)); /* there is no thread at all */
	pool_add(&pool, &first.task);
	sem_wait(&begun);
	assert_false(pool_hand(&pool, &handed.task)); /* and now it is busy */
	sem_post(&gate);
	while (!pool_hand(&pool, &handed.task))
		;
	sem_wait(&begun);
	assert_false(pool_is_pressed(&pool));
	pool_close(&pool);
	sem_destroy(&begun);
	sem_destroy(&gate);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many_short_ones),
		cmocka_unit_test(test_those_that_wait),
		cmocka_unit_test(test_handing_over),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

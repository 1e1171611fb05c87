/* Pipes for splicing: who gets a large one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>

#include <cmocka.h>

#include "proxy/pipes.h"

#define MANY 40

static int size_of(const struct pipe *pipe)
{
	return fcntl(pipe->read_fd, F_GETPIPE_SZ);
}

static void take_all(struct pipes *pipes, struct pipe **taken, size_t length)
{
	for (int i = 0; i < MANY; i++)
		assert_non_null(taken[i] = pipes_take(pipes, length));
}

static void empty(struct pipes *pipes)
{
	for (int size = 0; size < 2; size++)
		while (pipes->idle[size].first) {
			struct pipe *pipe = pipes_take(pipes, size ? PIPE_LARGE_SIZE : 1);
			pipe->fill = 1;
			pipes_give(pipes, pipe);
		}
}

static void test_sizes(void **state)
{
	struct pipes pipes = { 0 };
	struct pipe *taken[MANY];
	int large = 0;
	(void)state;
	take_all(&pipes, taken, PIPE_SMALL_SIZE);
	for (int i = 0; i < MANY; i++) {
		assert_true(size_of(taken[i]) < (int)PIPE_LARGE_SIZE);
		pipes_give(&pipes, taken[i]);
	}
	take_all(&pipes, taken, PIPE_LARGE_SIZE);
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(taken[i]->is_large, size_of(taken[i]) >= (int)PIPE_LARGE_SIZE);
		large += taken[i]->is_large;
	}
	assert_int_equal(large, pipes.large_count);
	assert_true(large < MANY);
	for (int i = 0; i < MANY; i++)
		pipes_give(&pipes, taken[i]);
	empty(&pipes);
}

/* Whatever was given back, and when: what is to move much gets a large one, if it may have one. */
static void test_large_again(void **state)
{
	struct pipes pipes = { 0 };
	struct pipe *taken[MANY];
	(void)state;
	take_all(&pipes, taken, PIPE_LARGE_SIZE);
	bool may = taken[0]->is_large;
	for (int i = MANY; i > 0; i--)
		pipes_give(&pipes, taken[i - 1]);
	for (int i = 0; i < MANY; i++) {
		struct pipe *large = pipes_take(&pipes, PIPE_SMALL_SIZE + 1), *small = pipes_take(&pipes, 1);
		assert_int_equal(large->is_large, may);
		assert_false(small->is_large);
		pipes_give(&pipes, large);
		pipes_give(&pipes, small);
	}
	empty(&pipes);
}

/* One that is not empty is nobody else's. */
static void test_not_empty(void **state)
{
	struct pipes pipes = { 0 };
	(void)state;
	struct pipe *pipe = pipes_take(&pipes, 1);
	pipe->fill = 1;
	int fd = pipe->read_fd;
	pipes_give(&pipes, pipe);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_null(pipes.idle[0].first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_large_again),
		cmocka_unit_test(test_not_empty),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

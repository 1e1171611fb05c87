/* poll() as macOS has it, where terminals are asked about by select(): beside pipes, with time limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

int system_poll(struct pollfd *fds, nfds_t count, int timeout_ms);

static int master, terminal, ends[2];

static int set_up(void **state)
{
	(void)state;
	master = posix_openpt(O_RDWR | O_NOCTTY);
	assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
	terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
	assert_true(terminal >= 0);
	assert_int_equal(pipe(ends), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	close(master);
	close(terminal);
	close(ends[0]);
	return ends[1] < 0 ? 0 : close(ends[1]);
}

static long ms_since(const struct timespec *begun)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - begun->tv_sec) * 1000 + (now.tv_nsec - begun->tv_nsec) / 1000000;
}

static void test_a_terminal(void **state)
{
	struct pollfd fds[] = { { .fd = terminal, .events = POLLIN }, { .fd = -1, .events = POLLIN },
		                { .fd = ends[0], .events = POLLIN } };
	(void)state;
	assert_int_equal(system_poll(fds, 3, 0), 0);
	assert_int_equal(write(master, "x\n", 2), 2);
	assert_int_equal(system_poll(fds, 3, 5000), 1);
	assert_int_equal(fds[0].revents, POLLIN);
	assert_int_equal(fds[1].revents | fds[2].revents, 0);
	fds[0].events = POLLIN | POLLOUT;
	assert_int_equal(system_poll(fds, 3, -1), 1);
	assert_int_equal(fds[0].revents, POLLIN | POLLOUT);
}

static void test_beside_a_pipe(void **state)
{
	struct pollfd fds[] = { { .fd = terminal, .events = POLLIN }, { .fd = ends[0], .events = POLLIN } };
	(void)state;
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(system_poll(fds, 2, -1), 1);
	assert_int_equal(fds[0].revents, 0);
	assert_int_equal(fds[1].revents, POLLIN);
	assert_int_equal(write(master, "x\n", 2), 2);
	assert_int_equal(system_poll(fds, 2, -1), 2);
}

static void test_the_end_of_a_pipe_that_is_not_read(void **state)
{
	struct pollfd fds[] = { { .fd = terminal, .events = POLLIN }, { .fd = ends[0] } };
	(void)state;
	assert_int_equal(system_poll(fds, 2, 10), 0);
	close(ends[1]);
	ends[1] = -1;
	assert_int_equal(system_poll(fds, 2, -1), 1);
	assert_int_equal(fds[1].revents, POLLHUP);
}

static void test_time(void **state)
{
	struct pollfd fds[] = { { .fd = terminal, .events = POLLIN } };
	struct timespec begun;
	(void)state;
	clock_gettime(CLOCK_MONOTONIC, &begun);
	assert_int_equal(system_poll(fds, 1, 250), 0);
	assert_true(ms_since(&begun) >= 249);
}

static void note(int signal_number)
{
	(void)signal_number;
}

static void test_a_signal(void **state)
{
	struct pollfd fds[] = { { .fd = terminal, .events = POLLIN } };
	const struct sigaction action = { .sa_handler = note };
	timer_t timer;
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	const struct itimerspec soon = { .it_value = { 0, 50000000 } };
	(void)state;
	sigaction(SIGUSR1, &action, NULL);
	assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
	assert_int_equal(timer_settime(timer, 0, &soon, NULL), 0);
	assert_int_equal(system_poll(fds, 1, 20000), -1);
	assert_int_equal(errno, EINTR);
	timer_delete(timer);
}

static void test_no_terminal(void **state)
{
	struct pollfd fds[] = { { .fd = ends[0], .events = POLLIN } };
	(void)state;
	assert_int_equal(system_poll(fds, 1, 0), 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(system_poll(fds, 1, -1), 1);
	assert_int_equal(system_poll(NULL, 0, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_terminal, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_beside_a_pipe, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_end_of_a_pipe_that_is_not_read, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_signal, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_terminal, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

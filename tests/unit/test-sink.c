/* Output that is written early, late, or not at all; never twice, and never so that writing blocks. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "door/cli/sink.h"

struct pipes {
	int read_fd, write_fd;
};

static struct pipes make_pipe(void)
{
	int fds[2];
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	return (struct pipes){ fds[0], fds[1] };
}

static size_t drain(int fd, char *text, size_t size)
{
	size_t length = 0;
	ssize_t got;
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	while (length < size && (got = read(fd, text + length, size - length)) > 0)
		length += (size_t)got;
	return length;
}

static void test_head_early_and_tail_late(void **state)
{
	(void)state;
	struct pipes pipes = make_pipe();
	struct sink sink;
	char text[256];
	sink_open(&sink, pipes.write_fd, 100);
	sink_live(&sink, "0123456789012345678901234567890123456789abcdefghij", 50);
	assert_int_equal(drain(pipes.read_fd, text, sizeof(text)), 36);
	sink_live(&sink, "more", 4);
	assert_int_equal(drain(pipes.read_fd, text, sizeof(text)), 0);
	sink_finish(&sink, "0123456789012345678901234567890123456789\n[marker]\ntail", 54, NULL);
	size_t length = drain(pipes.read_fd, text, sizeof(text));
	assert_int_equal(length, 54 - 36);
	assert_memory_equal(text, "6789\n[marker]\ntail", length);
	sink_close(&sink);
	close(pipes.read_fd);
	close(pipes.write_fd);
}

static void test_small_limits_write_late(void **state)
{
	(void)state;
	for (uint64_t kept = 0; kept < 13; kept++) {
		struct pipes pipes = make_pipe();
		struct sink sink;
		char text[16];
		sink_open(&sink, pipes.write_fd, kept);
		sink_live(&sink, "xxxxxxxx", 8);
		assert_int_equal(drain(pipes.read_fd, text, sizeof(text)), 0);
		sink_finish(&sink, "ab", 2, NULL);
		assert_int_equal(drain(pipes.read_fd, text, sizeof(text)), 2);
		sink_close(&sink);
		close(pipes.read_fd);
		close(pipes.write_fd);
	}
}

/* A pipe holds 64 KiB; what does not fit waits and is written in order when there is room. */
static void test_a_stalled_reader_does_not_block(void **state)
{
	(void)state;
	enum { TOTAL = 300000 };
	struct pipes pipes = make_pipe();
	struct sink sink;
	auto_free char *written = malloc(TOTAL), *read_back = malloc(TOTAL);
	for (size_t i = 0; i < TOTAL; i++)
		written[i] = (char)(i * 31 >> 3);
	sink_open(&sink, pipes.write_fd, 10000000);
	for (size_t at = 0; at < TOTAL; at += 1000)
		sink_live(&sink, written + at, 1000);
	assert_true(sink_waiting(&sink) > 200000);
	size_t length = 0;
	while (sink_waiting(&sink)) {
		length += drain(pipes.read_fd, read_back + length, TOTAL - length);
		sink_pump(&sink);
	}
	length += drain(pipes.read_fd, read_back + length, TOTAL - length);
	assert_int_equal(length, TOTAL);
	assert_memory_equal(read_back, written, TOTAL);
	sink_close(&sink);
	close(pipes.read_fd);
	close(pipes.write_fd);
}

static void test_a_reader_that_goes_away(void **state)
{
	(void)state;
	struct pipes pipes = make_pipe();
	struct sink sink;
	sink_open(&sink, pipes.write_fd, 1000);
	close(pipes.read_fd);
	sink_live(&sink, "x", 1);
	assert_int_equal(sink.error, EPIPE);
	assert_int_equal(sink_waiting(&sink), 0);
	sink_live(&sink, "y", 1);
	sink_finish(&sink, "xyz", 3, NULL);
	assert_int_equal(sink.error, EPIPE);
	sink_close(&sink);
	close(pipes.write_fd);
}

/* A signal that is sent while it may be delivered ends its receiver at once, so it may be only while a reader is waited
 * for. */
static void test_signals_are_let_in_only_to_wait(void **state)
{
	(void)state;
	struct sink sink;
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	void *unreadable = mmap(NULL, sizeof(sigset_t), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(fd >= 0 && unreadable != MAP_FAILED);
	sink_open(&sink, fd, 0);
	alarm(10); /* to wait with such a mask fails, and is tried again */
	sink_write(&sink, "x", 1, unreadable);
	alarm(0);
	assert_int_equal(sink.error, 0);
	sink_close(&sink);
	munmap(unreadable, sizeof(sigset_t));
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_head_early_and_tail_late), cmocka_unit_test(test_small_limits_write_late),
		cmocka_unit_test(test_a_stalled_reader_does_not_block), cmocka_unit_test(test_a_reader_that_goes_away),
		cmocka_unit_test(test_signals_are_let_in_only_to_wait),
	};
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

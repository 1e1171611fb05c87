/* Rings: exact places, what is written over, one writer and readers that never wait. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>

#undef fail
#include "base/remove.h"
#include "session/ring.h"
#include "system-has.h"

static char ground[] = "/tmp/cordon-ring-XXXXXX";
static int ground_fd;

static int set_up(void **state)
{
	(void)state;
	memcpy(ground + sizeof(ground) - 7, "XXXXXX", 6);
	if (!mkdtemp(ground))
		return -1;
	ground_fd = open(ground, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return ground_fd < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	(void)state;
	close(ground_fd);
	return remove_tree(AT_FDCWD, ground);
}

static struct ring make(uint64_t size)
{
	struct ring ring;
	struct cordon_error err;
	assert_int_equal(ring_make(ground_fd, "ring", size, &ring, &err), 0);
	return ring;
}

static void check(uint64_t from, size_t size, uint64_t begins, const char *expected, uint64_t end)
{
	char buffer[64] = "";
	struct ring_part part;
	auto_close int fd = -1;
	assert_int_equal(ring_open(ground_fd, "ring", &fd), 0);
	assert_int_equal(ring_read(fd, from, buffer, size, &part), 0);
	assert_int_equal(part.from, begins);
	assert_int_equal(part.end, end);
	assert_int_equal(part.length, strlen(expected));
	assert_memory_equal(buffer, expected, part.length);
}

static void test_places(void **state)
{
	(void)state;
	struct ring ring = make(8), other;
	struct cordon_error err;
	check(0, 64, 0, "", 0);
	check(7, 64, 0, "", 0);
	ring_add(&ring, "abc", 3);
	check(0, 64, 0, "abc", 3);
	check(1, 64, 1, "bc", 3);
	check(1, 1, 1, "b", 3);
	check(3, 64, 3, "", 3);
	check(99, 64, 3, "", 3);
	ring_add(&ring, "defgh", 5);
	check(0, 64, 0, "abcdefgh", 8);
	ring_add(&ring, "i", 1);
	check(0, 64, 1, "bcdefghi", 9);
	check(0, 3, 1, "bcd", 9);
	ring_add(&ring, "jklmnopqrstuvwxyz", 17);
	check(0, 64, 18, "stuvwxyz", 26);
	check(20, 4, 20, "uvwx", 26);
	ring_add(&ring, "", 0);
	assert_int_equal(ring.written, 26);
	assert_int_equal(ring_make(ground_fd, "ring", 8, &other, &err), -1);
	ring_close(&ring);
}

/* What cannot be written is not taken for what was there before. */
static void test_no_room(void **state)
{
	(void)state;
	struct rlimit before, small = { 52, 52 };
	struct ring ring = make(64);
	getrlimit(RLIMIT_FSIZE, &before);
	small.rlim_max = before.rlim_max;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	ring_add(&ring, "ab", 2);
	ring_add(&ring, "cdefgh", 6);
	setrlimit(RLIMIT_FSIZE, &before);
	assert_int_equal(ring.error, EFBIG);
	ring_add(&ring, "later", 5);
	check(0, 64, 0, "ab", 2);
	ring_close(&ring);
}

static void test_what_is_no_ring(void **state)
{
	(void)state;
	char buffer[8], path[64];
	struct ring_part part;
	auto_close int fd = -1, other = -1;
	struct ring ring = make(8);
	ring_close(&ring);
	snprintf(path, sizeof(path), "%s/ring", ground);
	assert_int_equal(ring_open(ground_fd, "ring", &fd), 0);
	assert_int_equal(truncate(path, 9), 0);
	assert_int_equal(ring_read(fd, 0, buffer, sizeof(buffer), &part), -EBADMSG);
	if (HAS_LINKS) {
		assert_int_equal(symlinkat("ring", ground_fd, "link"), 0);
		assert_int_equal(ring_open(ground_fd, "link", &other), -ELOOP);
	}
	if (HAS_SPECIAL_FILES) {
		assert_int_equal(mkfifoat(ground_fd, "fifo", 0600), 0);
		assert_int_equal(ring_open(ground_fd, "fifo", &other), -EPERM);
	}
	assert_int_equal(ring_open(ground_fd, "none", &other), -ENOENT);
}

/* ---- a writer and a reader at once ------------------------------------------------------------------------------- */

#define WRITTEN 400000u

static atomic_bool over;

/* The byte at each place follows from the place. */
static char byte_at(uint64_t place)
{
	return (char)(place * 2654435761u >> 24);
}

static void *write_all(void *arg)
{
	struct ring *ring = arg;
	char bytes[97];
	for (uint64_t place = 0; place < WRITTEN;) {
		size_t length = 1 + place % sizeof(bytes);
		for (size_t i = 0; i < length; i++)
			bytes[i] = byte_at(place + i);
		ring_add(ring, bytes, length);
		place += length;
	}
	over = true;
	return NULL;
}

static void test_reading_meanwhile(void **state)
{
	(void)state;
	struct ring ring = make(256);
	char buffer[200];
	pthread_t writer;
	auto_close int fd = -1;
	uint64_t at = 0, seen = 0;
	assert_int_equal(ring_open(ground_fd, "ring", &fd), 0);
	assert_int_equal(pthread_create(&writer, NULL, write_all, &ring), 0);
	for (bool last = false; !last;) {
		struct ring_part part;
		last = over;
		assert_int_equal(ring_read(fd, at, buffer, sizeof(buffer), &part), 0);
		assert_true(part.from >= at && part.from + part.length <= part.end);
		for (size_t i = 0; i < part.length; i++)
			assert_int_equal(buffer[i], byte_at(part.from + i));
		seen += part.length;
		at = part.from + part.length;
		last = last && at == part.end;
	}
	pthread_join(writer, NULL);
	assert_int_equal(at, ring.written);
	assert_true(seen > 0);
	ring_close(&ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_places, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_room, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_is_no_ring, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_reading_meanwhile, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

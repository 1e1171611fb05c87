/* Memory that a tree of processes takes in different ways is seen, what they share counts once, and files on disk do
 * not. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "driver/linux/memory-watch.h"

#define MiB (UINT64_C(1) << 20)
#define SIZE (64 * MiB)
#define OTHERS (24 * MiB)       /* what such a process has besides, sanitizers included */

static void test_texts(void **state)
{
	(void)state;
	assert_int_equal(memory_resident_pages("5000 1234 300 1 0 200 0\n"), 1234);
	assert_int_equal(memory_resident_pages(""), 0);
	assert_int_equal(memory_resident_pages("x y"), 0);
	struct memory_shares shares =
		memory_parse_rollup("5555-7fff ---p 00000000 00:00 0    [rollup]\n"
	                            "Rss:  900 kB\nPss:  800 kB\nPss_Dirty: 7 kB\nPss_Anon:   100 kB\n"
	                            "Pss_File:  400 kB\nPss_Shmem:   300 kB\nSwap: 50 kB\nSwapPss:  20 kB\n");
	assert_int_equal(shares.anonymous, 120 << 10);
	assert_int_equal(shares.shared, 300 << 10);
	shares = memory_parse_rollup("");
	assert_int_equal(shares.anonymous + shares.shared, 0);
}

/* ---- ways to take it -------------------------------------------------------------------------------------------- */

static void touch_all(char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i += 4096)
		bytes[i] = 1;
}

static void take_private(void)
{
	touch_all(mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), SIZE);
}

static void take_shared(void)
{
	touch_all(mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), SIZE);
}

static void take_memfd(void)
{
	static char chunk[1 << 20];
	int fd = memfd_create("test", 0);
	memset(chunk, 1, sizeof(chunk));
	for (size_t i = 0; i < SIZE / sizeof(chunk); i++)
		(void)!write(fd, chunk, sizeof(chunk));
}

/* One page of it mapped, as if that were all. */
static void take_memfd_mapped_in_part(void)
{
	int fd = memfd_create("test", 0);
	(void)!ftruncate(fd, (off_t)SIZE);
	for (size_t i = 0; i < SIZE; i += MiB) {
		char *part = mmap(NULL, MiB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)i);
		touch_all(part, MiB);
		munmap(part, MiB);
	}
	touch_all(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), 4096);
}

static void take_memfd_closed(void)
{
	int fd = memfd_create("test", 0);
	(void)!ftruncate(fd, (off_t)SIZE);
	touch_all(mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), SIZE);
	close(fd);
}

/* Each of four processes a quarter. */
static void take_by_children(void)
{
	for (int i = 0; i < 4; i++)
		if (fork() == 0) {
			touch_all(mmap(NULL, SIZE / 4, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
			          SIZE / 4);
			pause();
		}
}

/* All of it once; the others have it from the first, by fork. */
static void take_once_for_four(void)
{
	take_private();
	for (int i = 0; i < 3; i++)
		if (fork() == 0)
			pause();
}

static void take_file(void)
{
	int fd = open("/tmp", O_TMPFILE | O_RDWR, 0600);
	(void)!ftruncate(fd, (off_t)SIZE);
	char *bytes = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
	volatile char sum = 0;
	for (size_t i = 0; i < SIZE; i += 4096)
		sum = (char)(sum + bytes[i]);
}

/* ---- looking ---------------------------------------------------------------------------------------------------- */

/* What is seen of a process that takes memory and then waits, with its children. They are a group of their own, and end
 * as one: a child that has not run yet could not have asked to die with its parent. */
static uint64_t look_at(void (*take)(void), uint64_t most, int *ret_next)
{
	int ready[2];
	char byte;
	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setpgid(0, 0);
		take();
		(void)!write(ready[1], "x", 1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	struct memory_watch watch;
	memory_watch_begin(&watch, most, NULL, 0);
	/* Children may not have it all yet. */
	for (int i = 0; i < 500; i++) {
		*ret_next = memory_watch_look(&watch, pid);
		if (*ret_next < 0 || watch.used_bytes > SIZE)
			break;
		usleep(2000);
	}
	kill(-pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(ready[0]);
	close(ready[1]);
	return watch.used_bytes;
}

static void test_every_way_is_seen(void **state)
{
	(void)state;
	void (*const ways[])(void) = { take_private,      take_shared,     take_memfd, take_memfd_mapped_in_part,
		                       take_memfd_closed, take_by_children };
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		int next;
		uint64_t used = look_at(ways[i], SIZE / 2, &next);
		print_message("way %zu: %llu MiB\n", i, (unsigned long long)(used / MiB));
		assert_int_equal(next, -1);
		/* Far enough along it counts what is there, and not twice. */
		assert_in_range(used, SIZE / 2, SIZE + OTHERS);
	}
}

static void test_what_is_shared_counts_once(void **state)
{
	(void)state;
	int next;
	uint64_t used = look_at(take_once_for_four, SIZE + OTHERS, &next);
	assert_true(next > 0);
	assert_in_range(used, SIZE - MiB, SIZE + OTHERS);
}

static void test_a_file_on_disk_is_not_memory(void **state)
{
	(void)state;
	int next;
	assert_in_range(look_at(take_file, SIZE / 2, &next), 0, SIZE / 2);
	assert_true(next > 0);
}

static void test_how_often(void **state)
{
	(void)state;
	struct memory_watch watch;
	memory_watch_begin(&watch, UINT64_C(1) << 50, NULL, 0);
	assert_true(memory_watch_look(&watch, getpid()) >= MEMORY_WATCH_SLOW_MS);
	memory_watch_begin(&watch, watch.used_bytes + watch.used_bytes / 2, NULL, 0);
	int next = memory_watch_look(&watch, getpid());
	assert_true(next >= MEMORY_WATCH_FAST_MS && next < MEMORY_WATCH_SLOW_MS);
}

static void test_the_command_is_killed_first(void **state)
{
	(void)state;
	char name[64], text[16] = "";
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
	}
	struct memory_watch watch;
	memory_watch_begin(&watch, UINT64_C(1) << 40, NULL, 0);
	memory_watch_look(&watch, pid);
	snprintf(name, sizeof(name), "/proc/%d/oom_score_adj", (int)pid);
	int fd = open(name, O_RDONLY);
	(void)!read(fd, text, sizeof(text) - 1);
	close(fd);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_string_equal(text, "1000\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_every_way_is_seen),
		cmocka_unit_test(test_what_is_shared_counts_once),
		cmocka_unit_test(test_a_file_on_disk_is_not_memory),
		cmocka_unit_test(test_how_often),
		cmocka_unit_test(test_the_command_is_killed_first),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Another process of the sandbox swaps a path for a link that leads out, again and again, while tools act on it: nothing outside is read,
 * written or removed. CORDON_RACE_S says for how long. */
#include "files-ground.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "files/read.h"
#include "files/write.h"

#define EXCHANGE 2      /* RENAME_EXCHANGE */

static atomic_bool over;

static void *swap(void *arg)
{
	int fd = *(const int *)arg;
	while (!over) {
		syscall(SYS_renameat2, fd, "dir", fd, "out", EXCHANGE);
		syscall(SYS_renameat2, fd, "file", fd, "file-out", EXCHANGE);
	}
	return NULL;
}

static void read_one(const char *path, size_t *seen)
{
	struct files_place place;
	struct files_content content;
	if (opens(path, 0, &place) != CORDON_OK)
		return;
	if (files_read(&place, &(struct files_read){ 0 }, &content, NULL) == 0) {
		assert_null(strstr(content.data, "SECRET"));
		free(content.data);
		++*seen;
	}
	files_place_close(&place);
}

static void write_one(const char *path)
{
	struct files_place place;
	struct files_written written;
	if (opens(path, FILES_WRITE | FILES_MAY_MISS, &place) != CORDON_OK)
		return;
	(void)!files_write(&place, &(struct files_write){ .data = "inside", .length = 6 }, &written, NULL);
	files_place_close(&place);
}

static void remove_one(const char *path)
{
	struct files_place place;
	if (opens(path, FILES_WRITE | FILES_NO_FOLLOW, &place) != CORDON_OK)
		return;
	(void)!files_remove(&files, &place, true, NULL);
	files_place_close(&place);
}

static void race(bool without_openat2)
{
	const char *seconds = getenv("CORDON_RACE_S");
	size_t seen = 0, rounds = 0;
	pthread_t thread;
	struct stat before, after;
	put("outside/inner", "SECRET");
	put("outside/kept", "SECRET");
	assert_int_equal(stat(at("outside"), &before), 0);
	assert_int_equal(mkdir(at("work/dir"), 0755), 0);
	assert_int_equal(symlink("../outside", at("work/out")), 0);
	put("work/file", "inside");
	assert_int_equal(symlink("../outside/kept", at("work/file-out")), 0);
	auto_close int fd = open(at("work"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ground_no_openat2 = without_openat2;
	over = false;
	assert_int_equal(pthread_create(&thread, NULL, swap, &fd), 0);
	int64_t end = clock_ms() + (seconds ? atoi(seconds) * 1000 : 1500);
	while (clock_ms() < end || !seen) {
		write_one("dir/inner");
		write_one("dir/new");
		read_one("dir/inner", &seen);
		read_one("file", &seen);
		write_one("file");
		remove_one("dir/new");
		remove_one("dir/kept");
		rounds++;
	}
	over = true;
	pthread_join(thread, NULL);
	assert_string_equal(get("outside/inner"), "SECRET");
	assert_string_equal(get("outside/kept"), "SECRET");
	assert_int_equal(stat(at("outside"), &after), 0);
	assert_memory_equal(&before.st_mtim, &after.st_mtim, sizeof(before.st_mtim));
	print_message("# %zu rounds, %zu files read\n", rounds, seen);
}

static void with_openat2(void **state)
{
	(void)state;
	race(false);
}

static void without_openat2(void **state)
{
	(void)state;
	race(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(with_openat2, ground_setup, ground_teardown),
		cmocka_unit_test_setup_teardown(without_openat2, ground_setup, ground_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

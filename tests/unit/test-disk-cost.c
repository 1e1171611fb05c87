/* What watching a large tree costs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "driver/linux/disk.h"
#include "disk-ground.h"

#define MANY 100000
#define WHILE_MS 180000

/* So many names; files of their own would take a filesystem a minute, and a look at them as long as at these. */
static void fill_with_many(int tree)
{
	auto_close int files = ground_directory(tree, "files");
	for (int i = 0; i < MANY / 1000; i++) {
		char name[16];
		snprintf(name, sizeof(name), "many%d", i);
		auto_close int inner = ground_directory(tree, name);
		for (int j = 0; j < 1000; j++) {
			snprintf(name, sizeof(name), "%d", j);
			if (!i)
				assert_int_equal(mknodat(files, name, S_IFREG | 0600, 0), 0);
			assert_int_equal(linkat(files, name, inner, name, 0), 0);
		}
	}
}

static uint64_t processor_us(void)
{
	struct timespec now;
	assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now), 0);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* Over three minutes, while others take or give back so much in each second, and the command may have done anything; in
 * thousandths of a processor. */
static unsigned cost(int tree, bool growth, uint64_t others_bytes)
{
	struct disk_watch watch;
	uint64_t spent_us = 0;
	ground_watch(&watch, tree, 1024 * MiB, growth);
	for (uint64_t ms = 0, seconds = 0; ms < WHILE_MS;) {
		uint64_t before_us = processor_us();
		int pause_ms = disk_watch_look(&watch, -1);
		spent_us += processor_us() - before_us;
		assert_true(pause_ms >= 0);
		ms += (uint64_t)pause_ms;
		skipped_us += (uint64_t)pause_ms * 1000;
		if (ms / 1000 > seconds)
			volume.bytes += ++seconds % 2 ? others_bytes : -others_bytes;
	}
	disk_watch_end(&watch);
	return (unsigned)(spent_us / WHILE_MS);
}

static void many_files_are_not_looked_at_all_the_time(void **state)
{
	int tree = ((struct ground *)*state)->tree;
	fill_with_many(tree);
	for (int growth = 0; growth < 2; growth++) {
		unsigned quiet = cost(tree, growth, 0), noisy = cost(tree, growth, 8 * MiB);
		print_message("# of a processor: %u/1000, and %u/1000 while others write\n", quiet, noisy);
		/* Without pauses between the looks it would be the whole of one. */
		assert_true(quiet < 500 && noisy < 500);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(many_files_are_not_looked_at_all_the_time, ground_setup,
		                                ground_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

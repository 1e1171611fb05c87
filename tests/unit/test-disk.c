/* When trees are counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "driver/linux/disk.h"
#include "disk-ground.h"

static bool has_fine_dates(int tree)
{
	struct disk_stat first, second;
	ground_fill(tree, "dated", 0);
	assert_true(disk_stat(tree, "dated", false, &first));
	assert_int_equal(fchmodat(tree, "dated", 0640, 0), 0);
	assert_true(disk_stat(tree, "dated", false, &second));
	assert_int_equal(unlinkat(tree, "dated", 0), 0);
	return first.born_ns != INT64_MIN && first.changed_ns != second.changed_ns;
}

/* However little time passed between them: what was there before is not what the command made. */
static void what_was_made_just_before(void **state)
{
	int tree = ((struct ground *)*state)->tree;
	const struct disk_options options = { .roots = { tree, -1, -1, -1 }, .most_bytes = MiB, .growth = true };
	for (int i = 0; i < 300; i++) {
		struct disk_watch watch;
		/* Asked before, it is dated by the finer clock. */
		bool fine = has_fine_dates(tree);
		ground_fill(tree, "before", 100 * KiB);
		disk_watch_begin(&watch, &options);
		ground_fill(tree, "after", 200 * KiB);
		struct disk_count told = ground_count_since(tree, watch.start_ns);
		if (told.fresh_bytes || fine)
			assert_int_equal(told.fresh_bytes, ground_counts(tree, "after"));
		assert_int_equal(unlinkat(tree, "before", 0) | unlinkat(tree, "after", 0), 0);
		disk_watch_end(&watch);
	}
}

static void all_there_is(void **state)
{
	int tree = ((struct ground *)*state)->tree;
	struct disk_watch watch;
	ground_fill(tree, "before", 700 * KiB);
	ground_watch(&watch, tree, MiB, false);
	assert_true(watch.prompt);
	ground_fill(tree, "more", 200 * KiB);
	assert_false(ground_look_for(&watch, -1, 200));
	ground_fill(tree, "much", 200 * KiB);
	assert_true(ground_look_for(&watch, -1, 2000));
	assert_true(watch.used >= 1100 * KiB && watch.used < 1200 * KiB);
	disk_watch_end(&watch);
}

static void what_is_added(void **state)
{
	int tree = ((struct ground *)*state)->tree;
	struct disk_watch watch;
	ground_fill(tree, "before", 5 * MiB);
	ground_watch(&watch, tree, MiB, true);
	ground_fill(tree, "more", 800 * KiB);
	ground_look_first(&watch, -1);
	assert_true(watch.counted && watch.base >= 5 * MiB && watch.base < 5 * MiB + 100 * KiB && !watch.taken);
	/* What is removed makes room. */
	assert_int_equal(unlinkat(tree, "before", 0), 0);
	volume.bytes -= 5 * MiB;
	ground_fill(tree, "new", 5 * MiB);
	assert_false(ground_look_for(&watch, -1, 200));
	ground_fill(tree, "much", 400 * KiB);
	assert_true(ground_look_for(&watch, -1, 2000));
	assert_true(watch.used >= 1200 * KiB && watch.used < 1300 * KiB);
	disk_watch_end(&watch);
}

/* Room is made before anything could be counted. */
static void what_is_removed_first(void **state)
{
	int tree = ((struct ground *)*state)->tree;
	struct disk_watch watch;
	ground_fill(tree, "before", 5 * MiB);
	ground_fill(tree, "too", 600 * KiB);
	ground_watch(&watch, tree, MiB, true);
	assert_int_equal(unlinkat(tree, "too", 0), 0);
	volume.bytes -= 600 * KiB;
	ground_fill(tree, "new", 1400 * KiB);
	ground_look_first(&watch, -1);
	assert_true(watch.counted && watch.base >= 5720 * KiB && watch.base < 5750 * KiB);
	ground_fill(tree, "much", 400 * KiB);
	assert_true(ground_look_for(&watch, -1, 2000));
	disk_watch_end(&watch);
	ground_watch(&watch, tree, MiB, true);
	assert_int_equal(unlinkat(tree, "before", 0), 0);
	volume.bytes -= 5 * MiB;
	ground_look_first(&watch, -1);
	disk_watch_end(&watch);
}

/* A file that was there before has no beginning that could be told: the filesystem's figures tell. */
static void what_is_added_to_what_was_there(void **state)
{
	int tree = ((struct ground *)*state)->tree;
	struct disk_watch watch;
	ground_fill(tree, "before", 5 * MiB);
	ground_watch(&watch, tree, MiB, true);
	for (int i = 0; i < 9; i++) {
		ground_fill(tree, "before", 100 * KiB);
		/* The first count comes soon. */
		if (i == 2)
			ground_look_first(&watch, -1);
	}
	assert_true(watch.base >= 5 * MiB && watch.base < 5 * MiB + 60 * KiB);
	ground_fill(tree, "before", 200 * KiB);
	assert_true(ground_look_for(&watch, -1, 2000));
	disk_watch_end(&watch);
}

static void many_small_files(void **state)
{
	int tree = ((struct ground *)*state)->tree;
	struct disk_watch watch;
	ground_watch(&watch, tree, MiB, true);
	bool full = false;
	int made = 0;
	for (; made < 1000 && !full; made++) {
		char name[16];
		snprintf(name, sizeof(name), "%d", made);
		ground_fill(tree, name, 0);
		volume.inodes++;
		full = made % 50 == 0 && ground_look_for(&watch, -1, 50);
	}
	assert_true(full && made > 256 && made < 500);
	disk_watch_end(&watch);
}

/* It may be used, to tidy up for example, but it must not grow. */
static void what_is_over_the_limit_already(void **state)
{
	int tree = ((struct ground *)*state)->tree;
	struct disk_watch watch;
	ground_fill(tree, "before", 3 * MiB);
	ground_watch(&watch, tree, MiB, false);
	volume.bytes += 2 * MiB;
	ground_look_first(&watch, -1);
	assert_int_equal(ftruncate(openat(tree, "before", O_WRONLY | O_CLOEXEC), MiB), 0);
	ground_fill(tree, "new", MiB);
	assert_false(ground_look_for(&watch, -1, 200));
	ground_fill(tree, "much", 2 * MiB);
	assert_true(ground_look_for(&watch, -1, 2000));
	disk_watch_end(&watch);
}

/* Others may fill the filesystem as they like, and give back what the command takes. */
static void others(void **state)
{
	int tree = ((struct ground *)*state)->tree;
	struct disk_watch watch;
	ground_fill(tree, "before", 5 * MiB);
	ground_watch(&watch, tree, MiB, true);
	for (int i = 0; i < 20; i++) {
		volume.bytes += 10 * MiB;
		ground_fill(tree, "before", 16 * KiB);
		assert_false(ground_look_for(&watch, -1, 5));
	}
	disk_watch_end(&watch);
	ground_watch(&watch, tree, MiB, true);
	volume.bytes -= 50 * MiB;
	assert_false(ground_look_for(&watch, -1, 20));
	/* No more room than once more the limit. */
	ground_fill(tree, "much", 2 * MiB + 100 * KiB);
	assert_true(ground_look_for(&watch, -1, 2000));
	disk_watch_end(&watch);
}

/* Somebody gives back more than the command takes, all the time. */
static void what_is_given_back_hides_nothing(void **state)
{
	int tree = ((struct ground *)*state)->tree;
	struct disk_watch watch;
	bool full = false;
	volume.bytes += 1000 * MiB;
	ground_watch(&watch, tree, MiB, true);
	for (int i = 0; i < 40 && !full; i++) {
		volume.bytes -= MiB;
		ground_fill(tree, "file", 100 * KiB);
		full = ground_look_for(&watch, -1, 20);
	}
	assert_true(full);
	disk_watch_end(&watch);
}

static void filesystems_that_tell_late(void **state)
{
	int tree = ((struct ground *)*state)->tree;
	struct disk_watch watch;
	volume.type = BTRFS_SUPER_MAGIC;
	ground_fill(tree, "before", 5 * MiB);
	ground_watch(&watch, tree, MiB, true);
	assert_false(watch.prompt);
	uint64_t told = volume.bytes;
	ground_fill(tree, "more", 800 * KiB);
	volume.bytes = told;
	assert_false(ground_look_for(&watch, -1, 300));
	ground_fill(tree, "much", 400 * KiB);
	volume.bytes = told;
	assert_true(ground_look_for(&watch, -1, 2000));
	disk_watch_end(&watch);
}

static void one_that_ends_first(void **state)
{
	int tree = ((struct ground *)*state)->tree;
	struct disk_watch watch;
	ground_watch(&watch, tree, MiB, true);
	ground_fill(tree, "more", 800 * KiB);
	assert_false(disk_watch_settle(&watch));
	ground_fill(tree, "much", 800 * KiB);
	assert_true(disk_watch_settle(&watch));
	assert_true(watch.used >= 1600 * KiB);
	disk_watch_end(&watch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, ground_setup, ground_teardown)
		TEST(what_was_made_just_before),
		TEST(all_there_is),
		TEST(what_is_added),
		TEST(what_is_removed_first),
		TEST(what_is_added_to_what_was_there),
		TEST(many_small_files),
		TEST(what_is_over_the_limit_already),
		TEST(others),
		TEST(what_is_given_back_hides_nothing),
		TEST(filesystems_that_tell_late),
		TEST(one_that_ends_first),
#undef TEST
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Counting what trees hold, while they change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/remove.h"
#include "driver/linux/disk.h"
#include "disk-ground.h"
#include "skip.h"

#define DEEP 1000

/* ---- what counts ------------------------------------------------------------------------------------------------ */

static void blocks_count(void **state)
{
	int tree = ((struct ground *)*state)->tree;
	assert_int_equal(ground_count(tree), ground_counts(tree, "."));
	ground_fill(tree, "file", 300 * KiB);
	auto_close int inner = ground_directory(tree, "inner");
	ground_fill(inner, "file", 100 * KiB);
	uint64_t expected = ground_counts(tree, ".") + ground_counts(tree, "file") + ground_counts(inner, ".") +
	                    ground_counts(inner, "file");
	assert_int_equal(ground_count(tree), expected);
	assert_true(expected >= 400 * KiB && expected < 450 * KiB);
}

static void small_files_count_a_block_each(void **state)
{
	int tree = ((struct ground *)*state)->tree;
	for (int i = 0; i < 500; i++) {
		char name[16];
		snprintf(name, sizeof(name), "%d", i);
		ground_fill(tree, name, 0);
	}
	assert_int_equal(mkfifoat(tree, "fifo", 0600), 0);
	assert_int_equal(symlinkat("nowhere", tree, "link"), 0);
	assert_int_equal(ground_count(tree), ground_counts(tree, ".") + 502 * DISK_INODE_BYTES);
}

static void holes_do_not_count(void **state)
{
	int tree = ((struct ground *)*state)->tree;
	auto_close int fd = openat(tree, "sparse", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(ftruncate(fd, INT64_C(1) << 40), 0);
	assert_int_equal(ground_count(tree), ground_counts(tree, ".") + DISK_INODE_BYTES);
}

static void several_names_count_once(void **state)
{
	int tree = ((struct ground *)*state)->tree;
	auto_close int inner = ground_directory(tree, "inner");
	ground_fill(tree, "file", 200 * KiB);
	ground_fill(tree, "small", 1);
	uint64_t before = ground_count(tree);
	for (int i = 0; i < 20; i++) {
		char name[16];
		snprintf(name, sizeof(name), "%d", i);
		assert_int_equal(linkat(tree, i % 2 ? "file" : "small", inner, name, 0), 0);
	}
	assert_int_equal(ground_count(tree), before);
}

static void links_are_not_followed(void **state)
{
	struct ground *ground = *state;
	auto_close int outside = ground_directory(ground->fd, "outside");
	ground_fill(outside, "file", 500 * KiB);
	assert_int_equal(symlinkat("../outside", ground->tree, "away"), 0);
	assert_int_equal(symlinkat("../outside/file", ground->tree, "file"), 0);
	assert_int_equal(symlinkat(".", ground->tree, "itself"), 0);
	assert_int_equal(ground_count(ground->tree), ground_counts(ground->tree, ".") + 3 * DISK_INODE_BYTES);
	assert_int_equal(remove_tree(ground->fd, "outside"), 0);
}

/* Deeper than a path may be long and than there may be descriptors. */
static void any_depth_counts(void **state)
{
	int tree = ((struct ground *)*state)->tree;
	struct rlimit limit, few;
	int at = openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < DEEP; i++) {
		int next = ground_directory(at, "deeper");
		close(at);
		at = next;
	}
	ground_fill(at, "bottom", 300 * KiB);
	close(at);
	ground_fill(tree, "last", 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	few = (struct rlimit){ 40, limit.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	uint64_t all = ground_count(tree);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_true(all >= 300 * KiB + (DEEP + 2) * DISK_INODE_BYTES &&
	            all <= 320 * KiB + (DEEP + 2) * DISK_INODE_BYTES);
}

static void a_count_in_steps_is_the_same(void **state)
{
	int tree = ((struct ground *)*state)->tree, steps = 0;
	for (int i = 0; i < 30; i++) {
		char name[16];
		snprintf(name, sizeof(name), "%d", i);
		auto_close int inner = ground_directory(tree, name);
		for (int j = 0; j < 10; j++) {
			snprintf(name, sizeof(name), "%d", j);
			ground_fill(inner, name, j * KiB);
		}
	}
	struct disk_walk walk;
	const int roots[DISK_ROOTS] = { -1, tree, -1, -1 };
	assert_true(disk_walk_begin(&walk, roots, NEVER));
	while (!disk_walk_step(&walk, 0))
		steps++;
	assert_true(steps > 20);
	assert_int_equal(walk.count.bytes, ground_count(tree));
	disk_walk_end(&walk);
}

static void what_is_new_or_changed_is_told(void **state)
{
	int tree = ((struct ground *)*state)->tree;
	struct disk_stat stat;
	ground_fill(tree, "old", 100 * KiB);
	ground_fill(tree, "older", 100 * KiB);
	usleep(30000);
	ground_fill(tree, "fresh", 200 * KiB);
	assert_true(disk_stat(tree, "fresh", false, &stat));
	ground_fill(tree, "old", 50 * KiB);
	struct disk_count told = ground_count_since(tree, stat.changed_ns - 10000000);
	if (stat.born_ns == INT64_MIN)
		assert_int_equal(told.fresh_bytes, 0);
	else
		assert_int_equal(told.fresh_bytes, ground_counts(tree, "fresh"));
	assert_int_equal(told.fresh_bytes + told.changed_bytes,
	                 ground_counts(tree, "fresh") + ground_counts(tree, "old") + ground_counts(tree, "."));
}

/* They were made when the clock was wrong. */
static void what_is_from_the_future_is_not_new(void **state)
{
	int tree = ((struct ground *)*state)->tree;
	struct disk_stat stat;
	ground_fill(tree, "file", 100 * KiB);
	assert_true(disk_stat(tree, "file", false, &stat));
	behind_s = 86400;
	struct disk_count told = ground_count_since(tree, stat.changed_ns - INT64_C(1000000000) * 90000);
	behind_s = 0;
	assert_int_equal(told.fresh_bytes + told.changed_bytes, 0);
	assert_true(told.bytes > 100 * KiB);
}

/* ---- trees that do not want to be counted ----------------------------------------------------------------------- */

static void what_is_closed_is_told(void **state)
{
	struct ground *ground = *state;
	bool root = geteuid() == 0;
	if (root)
		assert_true(fchown(ground->fd, 65534, -1) == 0 && fchownat(ground->fd, "tree", 65534, -1, 0) == 0 &&
		            seteuid(65534) == 0);
	static const mode_t modes[] = { 0, 0400, 0300 };
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		auto_close int inner = ground_directory(ground->tree, "inner");
		auto_close int innermost = ground_directory(inner, "innermost");
		ground_fill(innermost, "file", 100 * KiB);
		assert_false(ground_count_since(ground->tree, 0).closed);
		assert_int_equal(fchmod(inner, modes[i]), 0);
		assert_true(ground_count_since(ground->tree, 0).closed);
		assert_true(ground_count(ground->tree) < 100 * KiB);
		/* Not by the command. */
		assert_false(ground_count_since(ground->tree, NEVER).closed);
		assert_int_equal(remove_tree(ground->tree, "inner"), 0);
	}
	assert_int_equal(fchmodat(ground->fd, "tree", 0, 0), 0);
	assert_true(ground_count_since(ground->tree, 0).closed);
	assert_int_equal(fchmodat(ground->fd, "tree", 0700, 0), 0);
	if (root)
		assert_int_equal(seteuid(0), 0);
}

static void what_moves_counts_once(void **state)
{
	int tree = ((struct ground *)*state)->tree;
	auto_close int one = ground_directory(tree, "one"), two = ground_directory(tree, "two");
	auto_close int inner = ground_directory(one, "inner");
	ground_fill(inner, "file", 400 * KiB);
	ground_fill(inner, "small", 10 * KiB);
	ground_fill(two, "other", 400 * KiB);
	ground_fill(one, "another", 400 * KiB);
	for (int i = 0; i < 60; i++) {
		char name[16];
		snprintf(name, sizeof(name), "%d", i);
		ground_fill(i % 2 ? one : two, name, 0);
	}
	uint64_t all = ground_count(tree);
	struct disk_walk walk;
	const int roots[DISK_ROOTS] = { tree, -1, -1, -1 };
	/* One of them, at every moment. */
	for (int at = 0; at < 30; at++) {
		int from = at % 3 ? one : two, to = at % 3 ? two : one;
		const char *name = ((const char *[]){ "other", "inner", "another" })[at % 3];
		assert_true(disk_walk_begin(&walk, roots, NEVER));
		for (int i = 0; i < at / 3 && !disk_walk_step(&walk, 0); i++)
			;
		assert_int_equal(renameat(from, name, to, name), 0);
		while (!disk_walk_step(&walk, 0))
			;
		assert_true(walk.count.bytes <= all);
		disk_walk_end(&walk);
		assert_int_equal(renameat(to, name, from, name), 0);
	}
}

/* A link is in the place of a directory when that is to be entered. */
static void a_directory_that_becomes_a_link(void **state)
{
	struct ground *ground = *state;
	auto_close int outside = ground_directory(ground->fd, "outside");
	close(ground_directory(ground->tree, "inner"));
	ground_fill(outside, "file", 500 * KiB);
	for (int i = 0; i < 40; i++) {
		char name[16];
		snprintf(name, sizeof(name), "%d", i);
		ground_fill(ground->tree, name, 0);
	}
	struct disk_walk walk;
	const int roots[DISK_ROOTS] = { ground->tree, -1, -1, -1 };
	assert_true(disk_walk_begin(&walk, roots, NEVER));
	assert_false(disk_walk_step(&walk, 0));
	assert_int_equal(renameat(ground->tree, "inner", ground->tree, "away"), 0);
	assert_int_equal(symlinkat("../outside", ground->tree, "inner"), 0);
	while (!disk_walk_step(&walk, 0))
		;
	assert_true(walk.count.bytes < 500 * KiB);
	disk_walk_end(&walk);
	assert_int_equal(remove_tree(ground->fd, "outside"), 0);
}

/* The way back out of a directory that was moved elsewhere leads to where nothing is known. */
static void a_way_back_that_is_lost(void **state)
{
	int tree = ((struct ground *)*state)->tree;
	auto_close int elsewhere = ground_directory(tree, "elsewhere");
	int levels[40], at = openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < ARRAY_SIZE(levels); i++)
		levels[i] = at = ground_directory(at, "deep");
	for (int i = 0; i < 100; i++) {
		char name[16];
		snprintf(name, sizeof(name), "%d", i);
		ground_fill(at, name, 0);
	}
	struct disk_walk walk;
	const int roots[DISK_ROOTS] = { tree, -1, -1, -1 };
	assert_true(disk_walk_begin(&walk, roots, NEVER));
	while (walk.depth < ARRAY_SIZE(levels) + 1)
		assert_false(disk_walk_step(&walk, 0));
	assert_int_equal(renameat(levels[30], "deep", elsewhere, "moved"), 0);
	while (!disk_walk_step(&walk, 0))
		;
	assert_true(walk.count.moved);
	assert_true(walk.count.bytes >= (ARRAY_SIZE(levels) + 100) * DISK_INODE_BYTES);
	disk_walk_end(&walk);
	for (size_t i = 0; i < ARRAY_SIZE(levels); i++)
		close(levels[i]);
}

static bool set(const char *path, const char *text)
{
	auto_close int fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd >= 0 && write(fd, text, strlen(text)) > 0;
}

static bool own_namespace(void)
{
	char users[32], groups[32];
	snprintf(users, sizeof(users), "0 %u 1", geteuid());
	snprintf(groups, sizeof(groups), "0 %u 1", getegid());
	return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && set("/proc/self/setgroups", "deny") &&
	       set("/proc/self/uid_map", users) && set("/proc/self/gid_map", groups);
}

static int count_with_a_mount(const struct ground *ground)
{
	char path[128], again[128];
	close(ground_directory(ground->tree, "inner"));
	snprintf(path, sizeof(path), "%s/tree/inner", ground->root);
	uint64_t before = ground_count(ground->tree);
	if (!own_namespace() || mount("none", path, "tmpfs", 0, NULL) < 0)
		return 77;
	auto_close int mounted = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ground_fill(mounted, "file", 500 * KiB);
	snprintf(again, sizeof(again), "%s/tree", ground->root);
	auto_close int tree = open(again, O_PATH | O_CLOEXEC);
	/* The mount's own directory does not count, either. */
	return ground_count(tree) != before - ground_counts(ground->tree, "inner") || ground_count(mounted) < 500 * KiB;
}

static void mounts_are_not_entered(void **state)
{
	struct ground *ground = *state;
	pid_t child = fork();
	if (child == 0)
		_exit(count_with_a_mount(ground));
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip_cannot("mount-namespace", "no user namespace");
	assert_int_equal(status, 0);
}

/* Several processes have it open, and threads of theirs. */
static void one_without_a_name_counts_once(void **state)
{
	const int roots[DISK_ROOTS] = { ((struct ground *)*state)->tree, -1, -1, -1 };
	const struct disk_stat file = { .device = 1, .inode = 2, .bytes = 8 * KiB, .mode = S_IFREG };
	struct disk_walk walk;
	assert_true(disk_walk_begin(&walk, roots, NEVER));
	for (int i = 0; i < 5; i++)
		disk_walk_add(&walk, &file);
	assert_int_equal(walk.count.bytes, 8 * KiB);
	disk_walk_end(&walk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, ground_setup, ground_teardown)
		TEST(blocks_count),
		TEST(small_files_count_a_block_each),
		TEST(holes_do_not_count),
		TEST(several_names_count_once),
		TEST(links_are_not_followed),
		TEST(any_depth_counts),
		TEST(a_count_in_steps_is_the_same),
		TEST(what_is_new_or_changed_is_told),
		TEST(what_is_from_the_future_is_not_new),
		TEST(what_is_closed_is_told),
		TEST(what_moves_counts_once),
		TEST(a_directory_that_becomes_a_link),
		TEST(a_way_back_that_is_lost),
		TEST(mounts_are_not_entered),
		TEST(one_without_a_name_counts_once),
#undef TEST
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

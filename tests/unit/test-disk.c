/* Counting what trees hold, while they change; and when that is done. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/remove.h"
#include "run/disk.h"
#include "support/skip.h"

#define KiB UINT64_C(1024)
#define MiB (UINT64_C(1) << 20)
#define DEEP 1000
#define NEVER INT64_MAX

/* The figures of a filesystem that nobody else uses: what a test says is in use. */
static struct {
	uint64_t type, bytes, inodes;
	unsigned asked;
} volume;

int fstatfs(int fd, struct statfs *info)
{
	(void)fd;
	volume.asked++;
	*info = (struct statfs){ .f_type = (__typeof__(info->f_type))volume.type, .f_bsize = 4096, .f_frsize = 4096,
	                         .f_blocks = 1 << 30, .f_files = 1 << 30 };
	info->f_bfree = info->f_blocks - volume.bytes / 4096;
	info->f_ffree = info->f_files - volume.inodes;
	return 0;
}

/* Files are dated by the kernel's clock; the one that is asked may be behind it. And time may pass without waiting. */
static time_t behind_s;
static uint64_t skipped_us;

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int error = (int)syscall(SYS_clock_gettime, clock, now);
	if (clock == CLOCK_REALTIME)
		now->tv_sec -= behind_s;
	if (clock == CLOCK_MONOTONIC) {
		uint64_t us = skipped_us + (uint64_t)now->tv_nsec / 1000;
		*now = (struct timespec){ .tv_sec = now->tv_sec + (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000) * 1000 };
	}
	return error;
}

struct ground {
	char root[64];
	int fd, tree;
};

static int setup(void **state)
{
	struct ground *ground = calloc(1, sizeof(*ground));
	strcpy(ground->root, "/tmp/cordon-test-disk.XXXXXX");
	assert_non_null(mkdtemp(ground->root));
	ground->fd = open(ground->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(ground->fd >= 0 && mkdirat(ground->fd, "tree", 0700) == 0);
	ground->tree = openat(ground->fd, "tree", O_PATH | O_DIRECTORY | O_CLOEXEC);
	volume.type = EXT4_SUPER_MAGIC;
	volume.bytes = 100 * MiB;
	volume.inodes = 1000;
	*state = ground;
	return 0;
}

static int teardown(void **state)
{
	struct ground *ground = *state;
	close(ground->tree);
	int left = remove_tree(ground->fd, "tree");
	close(ground->fd);
	left |= rmdir(ground->root);
	free(ground);
	return left;
}

/* Adds so much to a file, with blocks for all of it; the filesystem knows. */
static void fill(int directory, const char *name, uint64_t bytes)
{
	static char part[64 * 1024];
	auto_close int fd = openat(directory, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	memset(part, 'x', sizeof(part));
	for (uint64_t at = 0; at < bytes; at += sizeof(part)) {
		size_t length = bytes - at < sizeof(part) ? (size_t)(bytes - at) : sizeof(part);
		assert_int_equal(write(fd, part, length), length);
	}
	volume.bytes += bytes;
}

static int make_directory(int parent, const char *name)
{
	assert_int_equal(mkdirat(parent, name, 0700), 0);
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static struct disk_count count_since(int root, int64_t since_ns)
{
	struct disk_walk walk;
	const int roots[DISK_ROOTS] = { root, -1, -1 };
	assert_true(disk_walk_begin(&walk, roots, since_ns));
	assert_true(disk_walk_step(&walk, UINT64_MAX));
	struct disk_count count = walk.count;
	disk_walk_end(&walk);
	return count;
}

static uint64_t count(int root)
{
	return count_since(root, NEVER).bytes;
}

/* What a file counts, by the kernel's word. */
static uint64_t counts(int directory, const char *name)
{
	struct stat info;
	assert_int_equal(fstatat(directory, name, &info, AT_SYMLINK_NOFOLLOW), 0);
	uint64_t bytes = (uint64_t)info.st_blocks * 512;
	return bytes > DISK_INODE_BYTES ? bytes : DISK_INODE_BYTES;
}

/* ---- what counts ------------------------------------------------------------------------------------------------ */

static void blocks_count(void **state)
{
	int tree = ((struct ground *)*state)->tree;
	assert_int_equal(count(tree), counts(tree, "."));
	fill(tree, "file", 300 * KiB);
	auto_close int inner = make_directory(tree, "inner");
	fill(inner, "file", 100 * KiB);
	uint64_t expected = counts(tree, ".") + counts(tree, "file") + counts(inner, ".") + counts(inner, "file");
	assert_int_equal(count(tree), expected);
	assert_true(expected >= 400 * KiB && expected < 450 * KiB);
}

static void small_files_count_a_block_each(void **state)
{
	int tree = ((struct ground *)*state)->tree;
	for (int i = 0; i < 500; i++) {
		char name[16];
		snprintf(name, sizeof(name), "%d", i);
		fill(tree, name, 0);
	}
	assert_int_equal(mkfifoat(tree, "fifo", 0600), 0);
	assert_int_equal(symlinkat("nowhere", tree, "link"), 0);
	assert_int_equal(count(tree), counts(tree, ".") + 502 * DISK_INODE_BYTES);
}

static void holes_do_not_count(void **state)
{
	int tree = ((struct ground *)*state)->tree;
	auto_close int fd = openat(tree, "sparse", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(ftruncate(fd, INT64_C(1) << 40), 0);
	assert_int_equal(count(tree), counts(tree, ".") + DISK_INODE_BYTES);
}

static void several_names_count_once(void **state)
{
	int tree = ((struct ground *)*state)->tree;
	auto_close int inner = make_directory(tree, "inner");
	fill(tree, "file", 200 * KiB);
	fill(tree, "small", 1);
	uint64_t before = count(tree);
	for (int i = 0; i < 20; i++) {
		char name[16];
		snprintf(name, sizeof(name), "%d", i);
		assert_int_equal(linkat(tree, i % 2 ? "file" : "small", inner, name, 0), 0);
	}
	assert_int_equal(count(tree), before);
}

static void links_are_not_followed(void **state)
{
	struct ground *ground = *state;
	auto_close int outside = make_directory(ground->fd, "outside");
	fill(outside, "file", 500 * KiB);
	assert_int_equal(symlinkat("../outside", ground->tree, "away"), 0);
	assert_int_equal(symlinkat("../outside/file", ground->tree, "file"), 0);
	assert_int_equal(symlinkat(".", ground->tree, "itself"), 0);
	assert_int_equal(count(ground->tree), counts(ground->tree, ".") + 3 * DISK_INODE_BYTES);
	assert_int_equal(remove_tree(ground->fd, "outside"), 0);
}

/* Deeper than a path may be long and than there may be descriptors. */
static void any_depth_counts(void **state)
{
	int tree = ((struct ground *)*state)->tree;
	struct rlimit limit, few;
	int at = openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < DEEP; i++) {
		int next = make_directory(at, "deeper");
		close(at);
		at = next;
	}
	fill(at, "bottom", 300 * KiB);
	close(at);
	fill(tree, "last", 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	few = (struct rlimit){ 40, limit.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	uint64_t all = count(tree);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_true(all >= 300 * KiB + (DEEP + 2) * DISK_INODE_BYTES && all <= 320 * KiB + (DEEP + 2) * DISK_INODE_BYTES);
}

static void a_count_in_steps_is_the_same(void **state)
{
	int tree = ((struct ground *)*state)->tree, steps = 0;
	for (int i = 0; i < 30; i++) {
		char name[16];
		snprintf(name, sizeof(name), "%d", i);
		auto_close int inner = make_directory(tree, name);
		for (int j = 0; j < 10; j++) {
			snprintf(name, sizeof(name), "%d", j);
			fill(inner, name, j * KiB);
		}
	}
	struct disk_walk walk;
	const int roots[DISK_ROOTS] = { -1, tree, -1 };
	assert_true(disk_walk_begin(&walk, roots, NEVER));
	while (!disk_walk_step(&walk, 0))
		steps++;
	assert_true(steps > 20);
	assert_int_equal(walk.count.bytes, count(tree));
	disk_walk_end(&walk);
}

static void what_is_new_or_changed_is_told(void **state)
{
	int tree = ((struct ground *)*state)->tree;
	struct disk_stat stat;
	fill(tree, "old", 100 * KiB);
	fill(tree, "older", 100 * KiB);
	usleep(30000);
	fill(tree, "fresh", 200 * KiB);
	assert_true(disk_stat(tree, "fresh", false, &stat));
	fill(tree, "old", 50 * KiB);
	struct disk_count told = count_since(tree, stat.changed_ns - 10000000);
	if (stat.born_ns == INT64_MIN)
		assert_int_equal(told.fresh_bytes, 0);
	else
		assert_int_equal(told.fresh_bytes, counts(tree, "fresh"));
	assert_int_equal(told.fresh_bytes + told.changed_bytes,
	                 counts(tree, "fresh") + counts(tree, "old") + counts(tree, "."));
}

/* They were made when the clock was wrong. */
static void what_is_from_the_future_is_not_new(void **state)
{
	int tree = ((struct ground *)*state)->tree;
	struct disk_stat stat;
	fill(tree, "file", 100 * KiB);
	assert_true(disk_stat(tree, "file", false, &stat));
	behind_s = 86400;
	struct disk_count told = count_since(tree, stat.changed_ns - INT64_C(1000000000) * 90000);
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
		auto_close int inner = make_directory(ground->tree, "inner");
		auto_close int innermost = make_directory(inner, "innermost");
		fill(innermost, "file", 100 * KiB);
		assert_false(count_since(ground->tree, 0).closed);
		assert_int_equal(fchmod(inner, modes[i]), 0);
		assert_true(count_since(ground->tree, 0).closed);
		assert_true(count(ground->tree) < 100 * KiB);
		/* Not by the command. */
		assert_false(count_since(ground->tree, NEVER).closed);
		assert_int_equal(remove_tree(ground->tree, "inner"), 0);
	}
	assert_int_equal(fchmodat(ground->fd, "tree", 0, 0), 0);
	assert_true(count_since(ground->tree, 0).closed);
	assert_int_equal(fchmodat(ground->fd, "tree", 0700, 0), 0);
	if (root)
		assert_int_equal(seteuid(0), 0);
}

static void what_moves_counts_once(void **state)
{
	int tree = ((struct ground *)*state)->tree;
	auto_close int one = make_directory(tree, "one"), two = make_directory(tree, "two");
	auto_close int inner = make_directory(one, "inner");
	fill(inner, "file", 400 * KiB);
	fill(inner, "small", 10 * KiB);
	fill(two, "other", 400 * KiB);
	fill(one, "another", 400 * KiB);
	for (int i = 0; i < 60; i++) {
		char name[16];
		snprintf(name, sizeof(name), "%d", i);
		fill(i % 2 ? one : two, name, 0);
	}
	uint64_t all = count(tree);
	struct disk_walk walk;
	const int roots[DISK_ROOTS] = { tree, -1, -1 };
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
	auto_close int outside = make_directory(ground->fd, "outside");
	close(make_directory(ground->tree, "inner"));
	fill(outside, "file", 500 * KiB);
	for (int i = 0; i < 40; i++) {
		char name[16];
		snprintf(name, sizeof(name), "%d", i);
		fill(ground->tree, name, 0);
	}
	struct disk_walk walk;
	const int roots[DISK_ROOTS] = { ground->tree, -1, -1 };
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
	auto_close int elsewhere = make_directory(tree, "elsewhere");
	int levels[40], at = openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < ARRAY_SIZE(levels); i++)
		levels[i] = at = make_directory(at, "deep");
	for (int i = 0; i < 100; i++) {
		char name[16];
		snprintf(name, sizeof(name), "%d", i);
		fill(at, name, 0);
	}
	struct disk_walk walk;
	const int roots[DISK_ROOTS] = { tree, -1, -1 };
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
	close(make_directory(ground->tree, "inner"));
	snprintf(path, sizeof(path), "%s/tree/inner", ground->root);
	uint64_t before = count(ground->tree);
	if (!own_namespace() || mount("none", path, "tmpfs", 0, NULL) < 0)
		return 77;
	auto_close int mounted = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fill(mounted, "file", 500 * KiB);
	snprintf(again, sizeof(again), "%s/tree", ground->root);
	auto_close int tree = open(again, O_PATH | O_CLOEXEC);
	/* The mount's own directory does not count, either. */
	return count(tree) != before - counts(ground->tree, "inner") || count(mounted) < 500 * KiB;
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

/* ---- the watch -------------------------------------------------------------------------------------------------- */

static void begin(struct disk_watch *watch, int tree, uint64_t most, bool growth)
{
	const struct disk_options options = { .roots = { tree, -1, -1 }, .most_bytes = most, .growth = growth };
	disk_watch_begin(watch, &options);
	/* Where the clock only ticks, what is made in the same tick has no date of its own. */
	usleep(30000);
}

static bool has_fine_dates(int tree)
{
	struct disk_stat first, second;
	fill(tree, "dated", 0);
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
	const struct disk_options options = { .roots = { tree, -1, -1 }, .most_bytes = MiB, .growth = true };
	for (int i = 0; i < 300; i++) {
		struct disk_watch watch;
		/* Asked before, it is dated by the finer clock. */
		bool fine = has_fine_dates(tree);
		fill(tree, "before", 100 * KiB);
		disk_watch_begin(&watch, &options);
		fill(tree, "after", 200 * KiB);
		struct disk_count told = count_since(tree, watch.start_ns);
		if (told.fresh_bytes || fine)
			assert_int_equal(told.fresh_bytes, counts(tree, "after"));
		assert_int_equal(unlinkat(tree, "before", 0) | unlinkat(tree, "after", 0), 0);
		disk_watch_end(&watch);
	}
}

/* Looks as often as the watch wants, for that long; true: the limit is passed. */
static bool look_for(struct disk_watch *watch, int pidfd, unsigned ms)
{
	for (uint64_t end = disk_now_us() + ms * 1000; disk_now_us() < end;) {
		int pause = disk_watch_look(watch, pidfd);
		if (pause < 0)
			return true;
		assert_true(pause <= DISK_WATCH_MS);
		usleep((unsigned)pause * 1000);
	}
	return false;
}

/* Until what there was at the start is known, which must not end it. */
static void look_first(struct disk_watch *watch, int pidfd)
{
	for (int i = 0; i < 100 && !watch->counted; i++)
		assert_false(look_for(watch, pidfd, 10));
	assert_true(watch->counted);
}

static void all_there_is(void **state)
{
	int tree = ((struct ground *)*state)->tree;
	struct disk_watch watch;
	fill(tree, "before", 700 * KiB);
	begin(&watch, tree, MiB, false);
	assert_true(watch.prompt);
	fill(tree, "more", 200 * KiB);
	assert_false(look_for(&watch, -1, 200));
	fill(tree, "much", 200 * KiB);
	assert_true(look_for(&watch, -1, 2000));
	assert_true(watch.used >= 1100 * KiB && watch.used < 1200 * KiB);
	disk_watch_end(&watch);
}

static void what_is_added(void **state)
{
	int tree = ((struct ground *)*state)->tree;
	struct disk_watch watch;
	fill(tree, "before", 5 * MiB);
	begin(&watch, tree, MiB, true);
	fill(tree, "more", 800 * KiB);
	look_first(&watch, -1);
	assert_true(watch.counted && watch.base >= 5 * MiB && watch.base < 5 * MiB + 100 * KiB && !watch.taken);
	/* What is removed makes room. */
	assert_int_equal(unlinkat(tree, "before", 0), 0);
	volume.bytes -= 5 * MiB;
	fill(tree, "new", 5 * MiB);
	assert_false(look_for(&watch, -1, 200));
	fill(tree, "much", 400 * KiB);
	assert_true(look_for(&watch, -1, 2000));
	assert_true(watch.used >= 1200 * KiB && watch.used < 1300 * KiB);
	disk_watch_end(&watch);
}

/* Room is made before anything could be counted. */
static void what_is_removed_first(void **state)
{
	int tree = ((struct ground *)*state)->tree;
	struct disk_watch watch;
	fill(tree, "before", 5 * MiB);
	fill(tree, "too", 600 * KiB);
	begin(&watch, tree, MiB, true);
	assert_int_equal(unlinkat(tree, "too", 0), 0);
	volume.bytes -= 600 * KiB;
	fill(tree, "new", 1400 * KiB);
	look_first(&watch, -1);
	assert_true(watch.counted && watch.base >= 5720 * KiB && watch.base < 5750 * KiB);
	fill(tree, "much", 400 * KiB);
	assert_true(look_for(&watch, -1, 2000));
	disk_watch_end(&watch);
	begin(&watch, tree, MiB, true);
	assert_int_equal(unlinkat(tree, "before", 0), 0);
	volume.bytes -= 5 * MiB;
	look_first(&watch, -1);
	disk_watch_end(&watch);
}

/* A file that was there before has no beginning that could be told: the filesystem's figures tell. */
static void what_is_added_to_what_was_there(void **state)
{
	int tree = ((struct ground *)*state)->tree;
	struct disk_watch watch;
	fill(tree, "before", 5 * MiB);
	begin(&watch, tree, MiB, true);
	for (int i = 0; i < 9; i++) {
		fill(tree, "before", 100 * KiB);
		/* The first count comes soon. */
		if (i == 2)
			look_first(&watch, -1);
	}
	assert_true(watch.base >= 5 * MiB && watch.base < 5 * MiB + 60 * KiB);
	fill(tree, "before", 200 * KiB);
	assert_true(look_for(&watch, -1, 2000));
	disk_watch_end(&watch);
}

static void many_small_files(void **state)
{
	int tree = ((struct ground *)*state)->tree;
	struct disk_watch watch;
	begin(&watch, tree, MiB, true);
	bool full = false;
	int made = 0;
	for (; made < 1000 && !full; made++) {
		char name[16];
		snprintf(name, sizeof(name), "%d", made);
		fill(tree, name, 0);
		volume.inodes++;
		full = made % 50 == 0 && look_for(&watch, -1, 50);
	}
	assert_true(full && made > 256 && made < 500);
	disk_watch_end(&watch);
}

/* It may be used, to tidy up for example, but it must not grow. */
static void what_is_over_the_limit_already(void **state)
{
	int tree = ((struct ground *)*state)->tree;
	struct disk_watch watch;
	fill(tree, "before", 3 * MiB);
	begin(&watch, tree, MiB, false);
	volume.bytes += 2 * MiB;
	look_first(&watch, -1);
	assert_int_equal(ftruncate(openat(tree, "before", O_WRONLY | O_CLOEXEC), MiB), 0);
	fill(tree, "new", MiB);
	assert_false(look_for(&watch, -1, 200));
	fill(tree, "much", 2 * MiB);
	assert_true(look_for(&watch, -1, 2000));
	disk_watch_end(&watch);
}

/* Others may fill the filesystem as they like, and give back what the command takes. */
static void others(void **state)
{
	int tree = ((struct ground *)*state)->tree;
	struct disk_watch watch;
	fill(tree, "before", 5 * MiB);
	begin(&watch, tree, MiB, true);
	for (int i = 0; i < 20; i++) {
		volume.bytes += 10 * MiB;
		fill(tree, "before", 16 * KiB);
		assert_false(look_for(&watch, -1, 5));
	}
	disk_watch_end(&watch);
	begin(&watch, tree, MiB, true);
	volume.bytes -= 50 * MiB;
	assert_false(look_for(&watch, -1, 20));
	/* No more room than once more the limit. */
	fill(tree, "much", 2 * MiB + 100 * KiB);
	assert_true(look_for(&watch, -1, 2000));
	disk_watch_end(&watch);
}

/* Somebody gives back more than the command takes, all the time. */
static void what_is_given_back_hides_nothing(void **state)
{
	int tree = ((struct ground *)*state)->tree;
	struct disk_watch watch;
	bool full = false;
	volume.bytes += 1000 * MiB;
	begin(&watch, tree, MiB, true);
	for (int i = 0; i < 40 && !full; i++) {
		volume.bytes -= MiB;
		fill(tree, "file", 100 * KiB);
		full = look_for(&watch, -1, 20);
	}
	assert_true(full);
	disk_watch_end(&watch);
}

static void filesystems_that_tell_late(void **state)
{
	int tree = ((struct ground *)*state)->tree;
	struct disk_watch watch;
	volume.type = BTRFS_SUPER_MAGIC;
	fill(tree, "before", 5 * MiB);
	begin(&watch, tree, MiB, true);
	assert_false(watch.prompt);
	uint64_t told = volume.bytes;
	fill(tree, "more", 800 * KiB);
	volume.bytes = told;
	assert_false(look_for(&watch, -1, 300));
	fill(tree, "much", 400 * KiB);
	volume.bytes = told;
	assert_true(look_for(&watch, -1, 2000));
	disk_watch_end(&watch);
}

static void one_that_ends_first(void **state)
{
	int tree = ((struct ground *)*state)->tree;
	struct disk_watch watch;
	begin(&watch, tree, MiB, true);
	fill(tree, "more", 800 * KiB);
	assert_false(disk_watch_settle(&watch));
	fill(tree, "much", 800 * KiB);
	assert_true(disk_watch_settle(&watch));
	assert_true(watch.used >= 1600 * KiB);
	disk_watch_end(&watch);
}

/* ---- what it costs ---------------------------------------------------------------------------------------------- */

#define MANY 100000
#define WHILE_MS 180000

/* So many names; files of their own would take a filesystem a minute, and a look at them as long as at these. */
static void fill_with_many(int tree)
{
	auto_close int files = make_directory(tree, "files");
	for (int i = 0; i < MANY / 1000; i++) {
		char name[16];
		snprintf(name, sizeof(name), "many%d", i);
		auto_close int inner = make_directory(tree, name);
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
	begin(&watch, tree, 1024 * MiB, growth);
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

static void many_files_cost_less_than_a_hundredth_of_a_processor(void **state)
{
	int tree = ((struct ground *)*state)->tree;
	fill_with_many(tree);
	for (int growth = 0; growth < 2; growth++) {
		assert_in_range(cost(tree, growth, 0), 0, 0);
		assert_in_range(cost(tree, growth, 8 * MiB), 0, 9);
	}
}

/* Several processes have it open, and threads of theirs. */
static void one_without_a_name_counts_once(void **state)
{
	const int roots[DISK_ROOTS] = { ((struct ground *)*state)->tree, -1, -1 };
	const struct disk_stat file = { .device = 1, .inode = 2, .bytes = 8 * KiB, .mode = S_IFREG };
	struct disk_walk walk;
	assert_true(disk_walk_begin(&walk, roots, NEVER));
	for (int i = 0; i < 5; i++)
		disk_walk_add(&walk, &file);
	assert_int_equal(walk.count.bytes, 8 * KiB);
	disk_walk_end(&walk);
}

/* ---- processes -------------------------------------------------------------------------------------------------- */

enum hiding { IDLE, HOLDING, THREAD, LAST_THREAD, MAPPING, PRIVATE, SENDING, WRITING };

static void send_descriptor(int socket, int fd)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { .header = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	char byte = 0;
	struct iovec part = { &byte, 1 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
	                          .msg_controllen = sizeof(control) };
	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	sendmsg(socket, &message, 0);
}

struct thread_task {
	bool own_table;
	_Atomic bool ready;
};

static void *keep_open(void *arg)
{
	struct thread_task *task = arg;
	if (task->own_table)
		unshare(CLONE_FILES);
	task->ready = true;
	while (pause())
		;
	return NULL;
}

/* Takes 4 MiB in a file without a name. */
static void hide(int tree, enum hiding how)
{
	int sockets[2];
	if (how == IDLE)
		return;
	int fd = openat(tree, "nameless", O_RDWR | O_CREAT, 0600);
	unlinkat(tree, "nameless", 0);
	(void)!ftruncate(fd, 4 * MiB);
	if (how == MAPPING || how == PRIVATE) {
		int kind = how == MAPPING ? MAP_SHARED : MAP_PRIVATE;
		char *mapped = mmap(NULL, 4 * MiB, PROT_READ | PROT_WRITE, kind, fd, 0);
		close(fd);
		memset(mapped, 'x', 4 * MiB);
		return;
	}
	posix_fallocate(fd, 0, 4 * MiB);
	if (how == THREAD || how == LAST_THREAD) {
		pthread_t thread;
		static struct thread_task task;
		task = (struct thread_task){ .own_table = how == THREAD };
		pthread_create(&thread, NULL, keep_open, &task);
		while (how == THREAD && !task.ready)
			usleep(1000);
		if (how == THREAD)
			close(fd);
	}
	if (how == SENDING && socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0) {
		send_descriptor(sockets[0], fd);
		close(fd);
	}
}

static bool sleeps(pid_t pid)
{
	char name[64], text[512];
	snprintf(name, sizeof(name), "/proc/%d/stat", (int)pid);
	auto_close int fd = open(name, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	text[length > 0 ? length : 0] = '\0';
	const char *state = strrchr(text, ')');
	return state && (state[2] == 'S' || state[2] == 'Z');
}

/* Until both do, for good. */
static void wait_for_sleep(pid_t first)
{
	for (bool asleep = false; !asleep;) {
		struct processes now;
		usleep(1000);
		processes_look(first, &now);
		asleep = now.count == 2 && sleeps(now.pids[0]) && sleeps(now.pids[1]);
		processes_free(&now);
	}
}

/* A child of a child, as a command's is; both wait to be killed. */
static pid_t start(int tree, enum hiding how, int *ret_pidfd)
{
	int ready[2];
	char byte;
	assert_int_equal(pipe(ready), 0);
	pid_t first = fork();
	if (first == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			hide(tree, how);
			int fd = openat(tree, "written", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
			(void)!write(ready[1], "", 1);
			if (how == LAST_THREAD)
				pthread_exit(NULL);
			while (how == WRITING) {
				static const char part[16 * 1024];
				(void)!pwrite(fd, part, sizeof(part), 0);
				usleep(1000);
			}
		}
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	*ret_pidfd = (int)syscall(SYS_pidfd_open, first, 0);
	assert_true(*ret_pidfd >= 0);
	assert_int_equal(processes_of_pidfd(*ret_pidfd), first);
	if (how != WRITING)
		wait_for_sleep(first);
	return first;
}

static void end(pid_t first, int pidfd)
{
	struct processes processes;
	processes_look(first, &processes);
	assert_true(processes.count >= 2);
	for (size_t i = processes.count; i-- > 0;)
		kill(processes.pids[i], SIGKILL);
	processes_free(&processes);
	waitpid(first, NULL, 0);
	close(pidfd);
}

static void files_without_a_name(void **state)
{
	int tree = ((struct ground *)*state)->tree;
	for (int how = IDLE; how <= SENDING; how++) {
		struct disk_watch watch;
		int pidfd;
		fill(tree, "before", 2 * MiB);
		begin(&watch, tree, MiB, true);
		pid_t first = start(tree, how, &pidfd);
		volume.bytes += 4 * MiB;
		/* What is missing is held against one that hides something, and nobody else. */
		if (how == IDLE)
			look_first(&watch, pidfd);
		else
			assert_true(look_for(&watch, pidfd, 5000) && watch.used >= 4 * MiB);
		end(first, pidfd);
		disk_watch_end(&watch);
	}
}

static void one_that_sleeps_is_not_counted(void **state)
{
	int tree = ((struct ground *)*state)->tree, pidfd;
	struct disk_watch watch;
	fill(tree, "before", 2 * MiB);
	begin(&watch, tree, MiB, true);
	pid_t first = start(tree, IDLE, &pidfd);
	volume.bytes += 300 * KiB;
	look_first(&watch, pidfd);
	uint64_t ended_us = watch.ended_us;
	for (int i = 0; i < 10; i++) {
		volume.bytes += 100 * MiB;
		assert_false(look_for(&watch, pidfd, 40));
	}
	assert_int_equal(watch.ended_us, ended_us);
	assert_int_equal(watch.state, DISK_WATCHING);
	end(first, pidfd);
	disk_watch_end(&watch);
	first = start(tree, WRITING, &pidfd);
	begin(&watch, tree, MiB, true);
	volume.bytes += 4 * MiB;
	assert_false(look_for(&watch, pidfd, 300));
	ended_us = watch.ended_us;
	volume.bytes += 4 * MiB;
	assert_false(look_for(&watch, pidfd, 300));
	assert_true(watch.ended_us > ended_us);
	end(first, pidfd);
	disk_watch_end(&watch);
}

/* All of a large workspace is not counted because others write. */
static void one_that_does_not_write(void **state)
{
	int tree = ((struct ground *)*state)->tree, pidfd;
	struct disk_watch watch;
	for (int how = IDLE; how <= WRITING; how += WRITING) {
		begin(&watch, tree, 128 * MiB, false);
		pid_t first = start(tree, how, &pidfd);
		volume.bytes += MiB + 100 * KiB;
		for (int i = 0; i < (how == IDLE ? 10 : 500) && !watch.counted; i++)
			assert_false(look_for(&watch, pidfd, 10));
		assert_int_equal(watch.counted, how == WRITING);
		end(first, pidfd);
		disk_watch_end(&watch);
	}
}

static void what_processes_do_is_seen(void **state)
{
	int tree = ((struct ground *)*state)->tree, pidfd;
	struct processes one, other;
	for (int how = IDLE; how <= WRITING; how += WRITING) {
		pid_t first = start(tree, how, &pidfd);
		processes_look(first, &one);
		usleep(20000);
		processes_look(first, &other);
		assert_int_equal(one.count, 2);
		assert_int_equal(one.pids[0], first);
		assert_false(one.partial);
		assert_int_equal(one.ran == other.ran, how == IDLE);
		assert_int_equal(one.wrote == other.wrote, how == IDLE);
		processes_free(&one);
		processes_free(&other);
		end(first, pidfd);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
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
		TEST(many_files_cost_less_than_a_hundredth_of_a_processor),
		TEST(one_without_a_name_counts_once),
		TEST(files_without_a_name),
		TEST(one_that_sleeps_is_not_counted),
		TEST(one_that_does_not_write),
		TEST(what_processes_do_is_seen),
#undef TEST
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Control groups of version 1. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "run/cgroup-ahead.h"
#include "run/launch.h"
#include "cgroup-ground.h"

#include <cmocka.h> /* last: it has a macro named fail */

static struct cgroup_search make_v1(const char *lines)
{
	static char v1[128], self[128];
	snprintf(v1, sizeof(v1), "%s/v1", root);
	snprintf(self, sizeof(self), "%s/self", root);
	mkdir(v1, 0755);
	ground_group("/v1/memory", "", "");
	ground_group("/v1/memory/a", "", "");
	ground_group("/v1/pids", "", "");
	ground_group("/v1/cpu", "", "");
	ground_group("/v1/freezer", "", "");
	ground_group("/v1/freezer/b", "", "");
	ground_group("/v1/unified", "", "");
	ground_put(root, "self", lines);
	return (struct cgroup_search){ .root = v1, .self = self };
}

static int all_leaves(void)
{
	return ground_leaves(ground_at("/v1/memory/a")) + ground_leaves(ground_at("/v1/pids")) + ground_leaves(ground_at("/v1/cpu"));
}

static void test_v1(void **state)
{
	(void)state;
	struct cgroup_search where = make_v1("9:pids:/\n5:cpu,cpuacct:/not/seen\n4:memory:/a\n1:name=systemd:/\n0::/\n");
	struct cgroup made;
	cgroup_make(&where, &bounds, &made);
	assert_ptr_equal(made.ops, &cgroup_v1);
	assert_int_equal(made.held, ALL);
	char memory[512], pids[512], cpu[512];
	snprintf(memory, sizeof(memory), "%s/memory/a/%s", where.root, made.name);
	snprintf(pids, sizeof(pids), "%s/pids/%s", where.root, made.name);
	snprintf(cpu, sizeof(cpu), "%s/cpu/%s", where.root, made.name);
	assert_string_equal(ground_get(memory, "memory.limit_in_bytes"), "268435456");
	assert_string_equal(ground_get(memory, "memory.kmem.tcp.limit_in_bytes"), "33554432");
	/* Without init, which is counted in what is asked for, and in what was used. */
	assert_string_equal(ground_get(pids, "pids.max"), "10");
	assert_int_equal(cgroup_asked(&made).processes, 11);
	assert_string_equal(ground_get(cpu, "cpu.cfs_quota_us"), "50000");
	for (int i = 0; i < CGROUP_PARTS; i++) {
		struct stat info;
		assert_int_equal(fstat(made.parts[i], &info), 0);
		assert_int_equal(info.st_mode & 0777, 0700);
	}
	struct launch launch = { 0 };
	cgroup_enter(&made, &launch);
	assert_true(launch.in_group && launch.group_fd == -1 && launch.command_joins);
	for (int i = 0; i < 3; i++)
		assert_non_null(strstr(ground_path(launch.group_joins[i]), "/tasks"));
	cgroup_entered(&made);
	assert_int_equal(made.joins[0], -1);
	assert_string_equal(ground_get(memory, "memory.memsw.limit_in_bytes"), "268435456");
	struct cgroup_usage usage;
	cgroup_usage(&made, &usage);
	assert_int_equal(usage.memory_peak_bytes, 2097152);
	assert_int_equal(usage.oom_kills, 4);
	assert_int_equal(usage.process_refusals, 6);
	assert_int_equal(usage.process_peak, 0);
	ground_put(pids, "pids.peak", "7\n");
	made.counters[CGROUP_PROCESS_PEAK] = openat(made.parts[1], "pids.peak", O_RDONLY | O_CLOEXEC);
	cgroup_usage(&made, &usage);
	assert_int_equal(usage.process_peak, 8);
	assert_int_equal(usage.cpu_us, 5000);
	cgroup_give_way(&made);
	assert_string_equal(ground_get(cpu, "cpu.shares"), "128");
	assert_true(cgroup_kill(&made));
	assert_string_equal(ground_get(pids, "pids.max"), "0");
	cgroup_remove(&made);
	assert_int_equal(all_leaves(), 0);
}

#define ALL_TREES "9:pids:/\n5:cpu,cpuacct:/\n4:memory:/a\n6:freezer:/b\n0::/\n"

static char frozen[512], pids_leaf[512];

static struct cgroup make_to_freeze(const struct cgroup_search *where)
{
	struct cgroup made;
	cgroup_make(where, &bounds, &made);
	assert_ptr_equal(made.ops, &cgroup_v1);
	snprintf(frozen, sizeof(frozen), "%s/freezer/b/%s", where->root, made.name);
	snprintf(pids_leaf, sizeof(pids_leaf), "%s/pids/%s", where->root, made.name);
	return made;
}

static void close_both(const int release[2])
{
	assert_true(close(release[0]) == 0 && close(release[1]) == 0);
}

/* The leaf in the freezer's tree is there and frozen before anybody is moved to it, and moved are all but init, until the two lists
 * have the same in them. */
static void test_v1_freeze(void **state)
{
	(void)state;
	struct cgroup_search where = make_v1(ALL_TREES);
	struct cgroup made = make_to_freeze(&where);
	int release[2];
	assert_int_equal(ground_leaves(ground_at("/v1/freezer/b")), 0);
	assert_true(cgroup_freeze_ready(&made, &where, release));
	assert_string_equal(ground_get(frozen, "freezer.state"), "FROZEN");
	assert_non_null(strstr(ground_path(release[0]), "/cgroup.procs"));
	assert_non_null(strstr(ground_path(release[1]), "/freezer.state"));
	close_both(release);
	ground_put(pids_leaf, "cgroup.procs", "10\n11\n12\n");
	assert_int_equal(cgroup_freeze(&made, 10, false), 1);
	assert_string_equal(ground_get(frozen, "cgroup.procs"), "12"); /* of plain files, the last */
	assert_int_equal(cgroup_freeze(&made, 10, false), 1);
	assert_string_equal(ground_get(pids_leaf, "pids.max"), "10");
	ground_put(frozen, "cgroup.procs", "12\n11\n");
	ground_put(pids_leaf, "cgroup.procs", "10\n11\n12\n13\n");
	assert_int_equal(cgroup_freeze(&made, 10, true), 1);
	assert_string_equal(ground_get(frozen, "cgroup.procs"), "13");
	assert_string_equal(ground_get(pids_leaf, "pids.max"), "0");
	ground_put(frozen, "cgroup.procs", "13\n11\n12\n");
	assert_int_equal(cgroup_freeze(&made, 10, false), 0);
	/* Init may have let them go in the meantime, for good. */
	ground_put(frozen, "freezer.state", "THAWED");
	assert_int_equal(cgroup_freeze(&made, 10, false), 0);
	assert_string_equal(ground_get(frozen, "freezer.state"), "THAWED");
	ground_put(frozen, "freezer.state", "FROZEN");
	cgroup_thaw(&made, 10);
	assert_string_equal(ground_get(frozen, "freezer.state"), "THAWED");
	assert_string_equal(ground_get(pids_leaf, "pids.max"), "10");
	/* They stay there, and stand still at once the next time. */
	assert_true(cgroup_freeze_ready(&made, &where, release));
	close_both(release);
	assert_string_equal(ground_get(frozen, "freezer.state"), "FROZEN");
	assert_int_equal(cgroup_freeze(&made, 10, false), 0);
	ground_put(frozen, "cgroup.procs", "");
	ground_put(pids_leaf, "cgroup.procs", "");
	assert_true(cgroup_kill(&made));
	assert_string_equal(ground_get(frozen, "freezer.state"), "THAWED");
	cgroup_remove(&made);
	assert_int_equal(ground_leaves(ground_at("/v1/freezer/b")) + ground_leaves(ground_at("/v1/pids")), 0);
}

/* More are moved than may be at a time. */
static void test_v1_freeze_many(void **state)
{
	(void)state;
	struct cgroup_search where = make_v1(ALL_TREES);
	struct cgroup made = make_to_freeze(&where);
	char list[4096] = "";
	int release[2];
	for (int i = 100; i < 300; i++)
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%d\n", i);
	assert_true(cgroup_freeze_ready(&made, &where, release));
	close_both(release);
	ground_put(pids_leaf, "cgroup.procs", list);
	assert_int_equal(cgroup_freeze(&made, 100, false), 1);
	assert_string_equal(ground_get(frozen, "cgroup.procs"), "164");
	ground_put(frozen, "cgroup.procs", list);
	assert_int_equal(cgroup_freeze(&made, 100, false), 0);
	ground_put(frozen, "cgroup.procs", "");
	ground_put(pids_leaf, "cgroup.procs", "");
	cgroup_remove(&made);
}

static void test_v1_no_freezer(void **state)
{
	(void)state;
	struct cgroup_search where = make_v1("9:pids:/\n4:memory:/a\n0::/\n");
	struct cgroup made = make_to_freeze(&where);
	int release[2];
	assert_false(cgroup_freeze_ready(&made, &where, release));
	cgroup_remove(&made);
}

/* Of who is killed dies nobody who stands still: the sweep lets them go, and what is in the freezer's tree is removed before the
 * parts by which it is found. */
static void test_v1_sweep_frozen(void **state)
{
	(void)state;
	struct cgroup_search where = make_v1(ALL_TREES);
	char dead[64];
	snprintf(dead, sizeof(dead), "cordon-%d-A", (int)ground_ended());
	int pids = open(ground_at("/v1/pids"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int freezer = open(ground_at("/v1/freezer/b"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(pids, dead, 0755) + mkdirat(freezer, dead, 0755), 0);
	snprintf(frozen, sizeof(frozen), "%s/freezer/b/%s", where.root, dead);
	ground_put(frozen, "freezer.state", "FROZEN");
	ground_put(frozen, "cgroup.procs", "0\n"); /* somebody, whom nobody can hit */
	struct cgroup made;
	cgroup_make(&where, &bounds, &made);
	cgroup_entered(&made);
	assert_string_equal(ground_get(frozen, "freezer.state"), "THAWED");
	assert_int_equal(ground_leaves(ground_at("/v1/pids")), 2);
	ground_put(frozen, "cgroup.procs", "");
	cgroup_remove(&made);
	cgroup_forget();
	cgroup_make(&where, &bounds, &made);
	cgroup_entered(&made);
	cgroup_remove(&made);
	assert_int_equal(ground_leaves(ground_at("/v1/pids")) + ground_leaves(ground_at("/v1/freezer/b")), 0);
	close(pids);
	close(freezer);
}

/* What is left of a leaf may be in some of the trees only, and its owner may hold it by another part than we see. */
static void test_v1_sweep(void **state)
{
	(void)state;
	struct cgroup_search where = make_v1("9:pids:/\n5:cpu,cpuacct:/\n4:memory:/a\n0::/\n");
	char dead[64], held[64];
	snprintf(dead, sizeof(dead), "cordon-%d-A", (int)ground_ended());
	snprintf(held, sizeof(held), "cordon-%d-B", (int)ground_ended());
	int pids = open(ground_at("/v1/pids"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int cpu = open(ground_at("/v1/cpu"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(cpu, dead, 0755) + mkdirat(pids, held, 0755) + mkdirat(cpu, held, 0755), 0);
	int locked = openat(cpu, held, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(flock(locked, LOCK_EX), 0);
	struct cgroup made;
	cgroup_make(&where, &bounds, &made);
	cgroup_entered(&made);
	assert_int_equal(ground_leaves(ground_at("/v1/cpu")), 2);
	assert_int_equal(ground_leaves(ground_at("/v1/pids")), 2);
	cgroup_remove(&made);
	assert_int_equal(ground_leaves(ground_at("/v1/cpu")), 1);
	close(locked);
	close(pids);
	close(cpu);
}

/* What is left of a path that is too long for us would lead to another group. */
static void test_v1_long(void **state)
{
	(void)state;
	char lines[1024];
	snprintf(lines, sizeof(lines), "4:memory:/a%0*d\n", 600, 0);
	struct cgroup_search where = make_v1(lines);
	struct cgroup_place place;
	cgroup_look(&where, &place);
	assert_null(place.ops);
}

static void test_v1_in_part(void **state)
{
	(void)state;
	struct cgroup_search where = make_v1("9:pids:/\n4:memory:/\n0::/\n3:xcpu,cpux:/\n");
	ground_put(ground_at("/v1/memory"), "refused", ".");
	struct cgroup_place place;
	cgroup_look(&where, &place);
	assert_ptr_equal(place.ops, &cgroup_v1);
	assert_int_equal(place.offers, BIT(LIMIT_PROCESSES));
	ground_put(ground_at("/v1/pids"), "refused", ".");
	cgroup_look(&where, &place);
	assert_null(place.ops);
}

/* As where descriptors have run out. */
static void test_v1_not_all_can_be_opened(void **state)
{
	(void)state;
	struct cgroup_search where = make_v1("9:pids:/\n5:cpu,cpuacct:/\n4:memory:/a\n0::/\n");
	static const char *const refused[] = { "/memory/a/cordon-", "/pids/cordon-", "/cpu/cordon-" };
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		struct cgroup group;
		snprintf(others, sizeof(others), "%s", refused[i]);
		cgroup_make(&where, &bounds, &group);
		assert_null(group.ops);
		assert_int_equal(all_leaves(), 0);
	}
}

/* By whoever comes first to it, but only what was made ahead, by a thread that stays; and nothing is left where nothing is left to it. */
static void test_v1_removed_aside(void **state)
{
	(void)state;
	struct cgroup_search where = make_v1("9:pids:/\n5:cpu,cpuacct:/\n4:memory:/a\n0::/\n");
	struct cgroup_bounds more = bounds;
	more.memory_bytes *= 2;
	for (int round = 0; round < 60; round++) {
		bool stays = round % 2, same = round / 2 % 2, left = false;
		struct cgroup made = { .ops = NULL };
		struct cgroup_ahead *ahead = cgroup_ahead_begin(&where, &bounds, stays);
		if (round % 5)
			cgroup_ahead_take(ahead, &where, same ? &bounds : &more, &made);
		if (made.ops) {
			cgroup_ahead_leave(ahead, &made);
			left = !made.ops;
		}
		/* One that had not begun makes none: then it was made by the caller. */
		assert_true(!left || (stays && same && round % 5));
		cgroup_ahead_end(ahead);
		assert_int_equal(all_leaves(), made.ops ? CGROUP_PARTS : 0);
		cgroup_remove(&made);
	}
	assert_int_equal(all_leaves(), 0);
	/* What it takes, once it has made it: that is a matter of time. */
	struct cgroup made;
	int taken = 0;
	for (int round = 0; round < 1000 && !taken; round++) {
		struct cgroup_ahead *ahead = cgroup_ahead_begin(&where, &bounds, true);
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		cgroup_ahead_take(ahead, &where, &bounds, &made);
		cgroup_ahead_leave(ahead, &made);
		taken += !made.ops;
		cgroup_ahead_end(ahead);
		cgroup_remove(&made);
	}
	assert_int_equal(taken, 1);
	assert_int_equal(all_leaves(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, ground_setup, ground_teardown)
		TEST(test_v1), TEST(test_v1_freeze), TEST(test_v1_freeze_many), TEST(test_v1_no_freezer), TEST(test_v1_sweep_frozen),
		TEST(test_v1_sweep), TEST(test_v1_in_part), TEST(test_v1_long), TEST(test_v1_not_all_can_be_opened), TEST(test_v1_removed_aside),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

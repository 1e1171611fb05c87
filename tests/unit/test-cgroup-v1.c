/* Control groups of version 1. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "driver/linux/cgroup-file.h"
#include "driver/linux/cgroup.h"
#include "driver/linux/launch.h"
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
	return ground_leaves(ground_at("/v1/memory/a")) + ground_leaves(ground_at("/v1/pids")) +
	       ground_leaves(ground_at("/v1/cpu"));
}

/* What cannot be listed has not ended; what is not there any more has. */
static void test_a_list_that_cannot_be_read(void **state)
{
	struct rlimit before, none;
	(void)state;
	ground_group("/listed", "", "");
	auto_close int dir = open(ground_at("/listed"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(dir >= 0);
	ground_put(ground_at("/listed"), "cgroup.procs", "");
	assert_true(cgroup_file_kill_listed(dir));
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){ 0, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	bool ended = cgroup_file_kill_listed(dir);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_false(ended);
	assert_int_equal(unlinkat(dir, "cgroup.procs", 0), 0);
	assert_true(cgroup_file_kill_listed(dir));
}

static void test_v1(void **state)
{
	(void)state;
	struct cgroup_search where =
		make_v1("9:pids:/\n5:cpu,cpuacct:/not/seen\n4:memory:/a\n1:name=systemd:/\n0::/\n");
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

/* Neither here nor in the freezer's tree. */
static void test_v1_does_not_freeze(void **state)
{
	(void)state;
	struct cgroup_search where = make_v1("9:pids:/\n5:cpu,cpuacct:/\n4:memory:/a\n6:freezer:/b\n0::/\n");
	struct cgroup made;
	cgroup_make(&where, &bounds, &made);
	assert_ptr_equal(made.ops, &cgroup_v1);
	assert_false(cgroup_freeze(&made, 10));
	assert_int_equal(ground_leaves(ground_at("/v1/freezer/b")), 0);
	cgroup_remove(&made);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, ground_setup, ground_teardown)
		TEST(test_v1), TEST(test_a_list_that_cannot_be_read), TEST(test_v1_does_not_freeze),
		TEST(test_v1_sweep), TEST(test_v1_in_part), TEST(test_v1_long), TEST(test_v1_not_all_can_be_opened),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

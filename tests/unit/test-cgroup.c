/* A command's control group: its limits, what was used, its end, and what others left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/id.h"
#include "driver/linux/cgroup.h"
#include "driver/linux/launch.h"
#include "cgroup-ground.h"

#include <cmocka.h> /* last: it has a macro named fail */

/* One more may be there for as long as `become` is, which is the launch's to know; where there is none, nobody is born
 * with one. */
static void test_most_at_birth(void **state)
{
	(void)state;
	struct launch launch = { .become = true };
	struct cgroup made = ground_make("/");
	char leaf[512];
	snprintf(leaf, sizeof(leaf), "%s/%s", root, made.name);
	cgroup_enter(&made, &launch);
	assert_string_equal(ground_get(leaf, "pids.max"), "12");
	assert_int_equal(launch.group_most, 11);
	launch.become = false;
	cgroup_enter(&made, &launch);
	assert_string_equal(ground_get(leaf, "pids.max"), "11");
	cgroup_remove(&made);
}

static void test_limits(void **state)
{
	(void)state;
	struct cgroup made = ground_make("/"), other = ground_make("/");
	char leaf[512];
	assert_ptr_equal(made.ops, &cgroup_v2);
	assert_int_equal(made.held, ALL);
	assert_string_not_equal(made.name, other.name);
	snprintf(leaf, sizeof(leaf), "%s/%s", root, made.name);
	assert_string_equal(ground_get(leaf, "memory.max"), "268435456");
	assert_string_equal(ground_get(leaf, "pids.max"), "12");
	assert_string_equal(ground_get(leaf, "cpu.max"), "50000 100000");
	/* What does no harm for a moment is set when the command is running. */
	cgroup_entered(&made);
	assert_string_equal(ground_get(leaf, "memory.high"), "266338304");
	assert_string_equal(ground_get(leaf, "memory.swap.max"), "0");
	/* Whoever could open it could lock it. */
	struct stat info;
	assert_int_equal(fstat(made.parts[0], &info), 0);
	assert_int_equal(info.st_mode & 0777, 0700);
	cgroup_give_way(&made);
	assert_string_equal(ground_get(leaf, "cpu.weight"), "12");
	assert_true(cgroup_kill(&made));
	assert_string_equal(ground_get(leaf, "cgroup.kill"), "1");
	cgroup_remove(&made);
	assert_null(made.ops);
	assert_int_equal(ground_leaves(root), 1);
	cgroup_remove(&other);
	cgroup_remove(&other);
	assert_int_equal(ground_leaves(root), 0);
}

/* What was not let down has no file, and is not said to be held. */
static void test_limits_that_are_not_there(void **state)
{
	(void)state;
	ground_group("/slice", "memory ", "memory ");
	ground_group("/slice/own", "memory ", "");
	ground_put(root, "refused", ".");
	struct cgroup made = ground_make("/slice/own");
	assert_int_equal(made.held, BIT(LIMIT_MEMORY));
	cgroup_remove(&made);
}

static void test_no_leaf(void **state)
{
	(void)state;
	struct cgroup_usage usage;
	ground_put(root, "refused", ".");
	struct cgroup made = ground_make("/");
	struct launch launch = { 0 };
	assert_null(made.ops);
	assert_true(*made.why);
	cgroup_enter(&made, &launch);
	assert_false(launch.in_group);
	cgroup_usage(&made, &usage);
	assert_int_equal(usage.oom_kills + usage.memory_peak_bytes, 0);
	assert_true(cgroup_kill(&made));
	cgroup_entered(&made);
	cgroup_remove(&made);
}

static void test_enter(void **state)
{
	(void)state;
	struct cgroup made = ground_make("/");
	struct launch launch = { 0 };
	cgroup_enter(&made, &launch);
	assert_true(launch.in_group);
	assert_int_equal(launch.group_fd, made.parts[0]);
	assert_non_null(strstr(ground_path(launch.group_joins[0]), "/cgroup.procs"));
	assert_int_equal(launch.group_joins[1], -1);
	cgroup_entered(&made);
	assert_int_equal(made.joins[0], -1);
	cgroup_remove(&made);
}

static void test_usage(void **state)
{
	(void)state;
	struct cgroup made = ground_make("/");
	struct cgroup_usage usage;
	cgroup_entered(&made);
	cgroup_usage(&made, &usage);
	assert_int_equal(usage.memory_peak_bytes, 1048576);
	assert_int_equal(usage.process_peak, 5);
	assert_int_equal(usage.cpu_us, 1234567);
	assert_int_equal(usage.oom_kills, 1);
	assert_int_equal(usage.process_refusals, 0); /* 5 of 11: those were another's */
	char leaf[512];
	snprintf(leaf, sizeof(leaf), "%s/%s", root, made.name);
	ground_put(leaf, "pids.peak", "6\n");
	cgroup_usage(&made, &usage);
	assert_int_equal(usage.process_refusals, 3);
	/* Older kernels lack some, and nothing is taken at its word. */
	ground_put(leaf, "memory.events", "oom_killer 9\noom_kill\n\noom_kill x\n");
	ground_put(leaf, "pids.events", "");
	cgroup_usage(&made, &usage);
	assert_int_equal(usage.oom_kills + usage.process_refusals, 0);
	cgroup_remove(&made);
	lacking = ".peak";
	made = ground_make("/");
	lacking = NULL;
	cgroup_entered(&made);
	cgroup_usage(&made, &usage);
	assert_int_equal(usage.memory_peak_bytes + usage.process_peak, 0);
	assert_int_equal(usage.process_refusals, 3);
	cgroup_remove(&made);
}

static void test_kill_without_the_file(void **state)
{
	(void)state;
	struct cgroup made = ground_make("/");
	char leaf[512], pid_text[32];
	int status;
	snprintf(leaf, sizeof(leaf), "%s/%s", root, made.name);
	pid_t pid = fork();
	if (pid == 0) {
		pause();
		_exit(0);
	}
	syscall(SYS_unlinkat, made.parts[0], "cgroup.kill", 0);
	snprintf(pid_text, sizeof(pid_text), "%d\n", (int)pid);
	ground_put(leaf, "cgroup.procs", pid_text);
	assert_false(cgroup_kill(&made)); /* nothing takes it off this list */
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_string_equal(ground_get(leaf, "pids.max"), "0");
	ground_put(leaf, "cgroup.procs", "");
	assert_true(cgroup_kill(&made));
	cgroup_remove(&made);
}

/* Init waits beside its leaf, in one that is like any other to who sweeps; then it is back, and that one gone. */
static void test_freeze(void **state)
{
	(void)state;
	struct cgroup made = ground_make("/");
	char leaf[512], aside[512];
	snprintf(leaf, sizeof(leaf), "%s/%s", root, made.name);
	for (int round = 0; round < 2; round++) {
		assert_string_equal(ground_get(leaf, "cgroup.freeze"), round ? "0" : "0\n");
		assert_true(cgroup_freeze(&made, 4711));
		assert_int_equal(ground_leaves(root), 2);
		snprintf(aside, sizeof(aside), "%s/%s", root, made.aside_name);
		int other = open(aside, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(other >= 0 && flock(other, LOCK_EX | LOCK_NB) < 0);
		close(other);
		assert_string_equal(ground_get(aside, "cgroup.procs"), "4711");
		assert_string_equal(ground_get(leaf, "cgroup.freeze"), "1");
		ground_put(aside, "cgroup.procs", ""); /* as the kernel does, when it is written elsewhere */
		cgroup_thaw(&made, 4711);
		assert_string_equal(ground_get(leaf, "cgroup.freeze"), "0");
		assert_string_equal(ground_get(leaf, "cgroup.procs"), "4711");
		assert_int_equal(ground_leaves(root), 1);
		ground_put(leaf, "cgroup.procs", "");
	}
	/* What is killed meanwhile is killed with init, and both are removed. */
	assert_true(cgroup_freeze(&made, 4711));
	snprintf(aside, sizeof(aside), "%s/%s", root, made.aside_name);
	assert_true(cgroup_kill(&made));
	assert_string_equal(ground_get(leaf, "cgroup.kill"), "1");
	assert_string_equal(ground_get(aside, "cgroup.kill"), "1");
	ground_put(aside, "cgroup.procs", "");
	cgroup_remove(&made);
	assert_int_equal(ground_leaves(root), 0);
	struct cgroup none = { 0 };
	assert_false(cgroup_freeze(&none, 4711));
}

/* Where the leaf cannot be frozen, or init cannot be moved, nothing is frozen. */
static void test_freeze_that_cannot_be(void **state)
{
	(void)state;
	lacking = "cgroup.freeze";
	struct cgroup made = ground_make("/");
	lacking = NULL;
	assert_false(cgroup_freeze(&made, 4711));
	assert_int_equal(ground_leaves(root), 1);
	cgroup_remove(&made);
	made = ground_make("/");
	lacking = "cgroup.procs";
	assert_false(cgroup_freeze(&made, 4711));
	lacking = NULL;
	assert_string_equal(ground_get(ground_path(made.parts[0]), "cgroup.freeze"), "0\n");
	cgroup_remove(&made);
	assert_int_equal(ground_leaves(root), 0);
}

static void test_sweep(void **state)
{
	(void)state;
	struct {
		char name[64];
		bool stays;
	} left[9] = { { .stays = false },      { .stays = true },      { "cordon-", true },
		      { "cordon-x-y", true }, { "cordon-1-A", true }, { .stays = true }, { .stays = true },
		      { .stays = false }, { "cordon-1-00000000ZZZZZZZZZZZZZZZZZZ", false } };
	char id[ID_SIZE];
	id_make(id);
	/* A pid that is somebody else's by now: too long ago for it not to be locked. */
	snprintf(left[6].name, sizeof(left[6].name), "cordon-%d-%s", (int)getpid(), id);
	id[0] = id[1] = id[2] = '0';
	snprintf(left[7].name, sizeof(left[7].name), "cordon-%d-%s", (int)getpid(), id);
	snprintf(left[0].name, sizeof(left[0].name), "cordon-%d-A", (int)ground_ended());
	snprintf(left[1].name, sizeof(left[1].name), "cordon-%d-A", (int)getpid());
	snprintf(left[5].name, sizeof(left[5].name), "cordon-%d-B", (int)ground_ended());
	int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC), locked = -1;
	for (size_t i = 0; i < ARRAY_SIZE(left); i++)
		assert_int_equal(mkdirat(fd, left[i].name, 0755), 0);
	locked = openat(fd, left[5].name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(flock(locked, LOCK_EX), 0);
	struct cgroup made = ground_make("/");
	cgroup_entered(&made);
	for (size_t i = 0; i < ARRAY_SIZE(left); i++)
		assert_int_equal(syscall(SYS_faccessat, fd, left[i].name, F_OK) == 0, left[i].stays);
	cgroup_remove(&made);
	close(locked);
	close(fd);
}

/* Where others may write, too, a group may be put in the place of the one that was made. */
static void test_anothers(void **state)
{
	(void)state;
	struct cgroup made;
	struct cgroup_search where = ground_search("/");
	char left[64];
	snprintf(left, sizeof(left), "cordon-%d-A", (int)ground_ended());
	int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(fd, left, 0755), 0);
	strcpy(others, left);
	cgroup_make(&where, &bounds, &made);
	assert_non_null(made.ops);
	cgroup_entered(&made);
	assert_int_equal(ground_leaves(root), 2);
	cgroup_remove(&made);
	strcpy(others, "/cordon-");
	cgroup_make(&where, &bounds, &made);
	*others = '\0';
	assert_null(made.ops);
	assert_non_null(strstr(made.why, strerror(EPERM)));
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, ground_setup, ground_teardown)
		TEST(test_most_at_birth),
		TEST(test_limits),
		TEST(test_limits_that_are_not_there),
		TEST(test_no_leaf),
		TEST(test_enter),
		TEST(test_usage),
		TEST(test_kill_without_the_file),
		TEST(test_freeze),
		TEST(test_freeze_that_cannot_be),
		TEST(test_sweep),
		TEST(test_anothers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A tree that is kept in memory: of a change that was told, that and no more is looked at, and none is missed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "cordon-internal.h"
#include "names-ground.h"

/* The names as one who never saw the tree finds them are the names that are remembered. */
static void compare_with_afresh(struct ground *ground, const char *about)
{
	struct arena arena = { 0 };
	struct names afresh;
	const struct name_rules rules = { &ground->deny, &ground->protect, &ground->exempt };
	struct cordon_error err = { 0 };
	ground_find(ground, true, BUDGET_US);
	assert_int_equal(names_find(&arena, ground->root_fd, ground->root, &rules, &(struct names_keep){ 0 }, BUDGET_US,
	                            &afresh, &err),
	                 0);
	if (ground->names.count != afresh.count || ground->names.directories != afresh.directories)
		fail_msg("%s: %zu names in %zu directories, not %zu in %zu", about, ground->names.count,
		         ground->names.directories, afresh.count, afresh.directories);
	for (size_t i = 0; i < afresh.count; i++) {
		const struct name *a = &ground->names.items[i], *b = &afresh.items[i];
		if (strcmp(a->path, b->path) || a->kind != b->kind || a->is_directory != b->is_directory ||
		    a->inode != b->inode || a->ctime_ns != b->ctime_ns || a->is_closed != b->is_closed ||
		    a->is_link != b->is_link)
			fail_msg("%s: %s is %s", about, a->path, b->path);
	}
	arena_free(&arena);
}

/* Nothing is read and nothing is compared: a budget of nothing reaches everything. */
static void test_remembers(void **state)
{
	struct ground *ground = *state;
	ground_many(ground, 200);
	ground_file(ground, "many/d7/sub/.env");
	for (int time = 0; time < 3; time++)
		ground_find(ground, true, BUDGET_US);
	for (int time = 0; time < 3; time++) {
		ground_find(ground, true, 0);
		assert_int_equal(ground->names.unchecked, 0);
		assert_true(ground_has(ground, NAME_MASKED, "many/d7/sub/.env"));
	}
	/* Of a change, no more than it. */
	ground_file(ground, "many/d150/sub/leaf/.env");
	assert_int_equal(unlinkat(ground->root_fd, "many/d7/sub/.env", 0), 0);
	ground_find(ground, true, 0);
	assert_int_equal(ground->names.unchecked, 0);
	assert_int_equal(ground->names.count, 1);
	assert_true(ground_has(ground, NAME_MASKED, "many/d150/sub/leaf/.env"));
	compare_with_afresh(ground, "after");
}

static void change_something(const struct ground *ground, unsigned *seed, char *about, size_t size)
{
	static const char *const names[] = { ".env", "x.pem", "plain", "a", "b", ".git", "config", "hooks", ".ssh" };
	char path[2][256] = { "", "" };
	for (int i = 0; i < 2; i++)
		for (int depth = rand_r(seed) % 4; depth >= 0; depth--)
			snprintf(path[i] + strlen(path[i]), sizeof(path[i]) - strlen(path[i]), "%s%s",
			         *path[i] ? "/" : "", names[(size_t)rand_r(seed) % ARRAY_SIZE(names)]);
	unsigned what = (unsigned)rand_r(seed) % 9;
	snprintf(about, size, "%u %s %s", what, path[0], path[1]);
	int fd;
	switch (what) {
	case 0:
		fd = openat(ground->root_fd, path[0], O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		if (fd >= 0)
			close(fd);
		break;
	case 1: case 2: case 3:
		mkdirat(ground->root_fd, path[0], 0755);
		break;
	case 4:
		renameat(ground->root_fd, path[0], ground->root_fd, path[1]);
		break;
	case 5:
		syscall(SYS_renameat2, ground->root_fd, path[0], ground->root_fd, path[1], 2u /* RENAME_EXCHANGE */);
		break;
	case 6:
		unlinkat(ground->root_fd, path[0], rand_r(seed) % 2 ? AT_REMOVEDIR : 0);
		break;
	case 7:
		(void)!fchmodat(ground->root_fd, path[0], rand_r(seed) % 3 ? 0755 : 0, 0);
		break;
	default:
		(void)!symlinkat(path[1], ground->root_fd, path[0]);
	}
}

static void test_any_change(void **state)
{
	struct ground *ground = *state;
	char about[640];
	for (unsigned round = 0; round < 600; round++) {
		unsigned seed = round;
		for (unsigned i = 0; i < 1 + round % 3; i++)
			change_something(ground, &seed, about, sizeof(about));
		compare_with_afresh(ground, about);
	}
}

/* More than are kept, each with another rule; and one that many take at once. */
static void test_many_trees(void **state)
{
	struct ground *ground = *state;
	ground_file(ground, "a/name-140");
	for (int time = 0; time < 2; time++)
		for (unsigned i = 0; i < 150; i++) {
			char rule[32];
			snprintf(rule, sizeof(rule), "**/name-%u", i);
			ground->deny = (struct strings){ 0 };
			assert_int_equal(strings_add(&ground->arena, &ground->deny, rule), 0);
			ground_find(ground, true, BUDGET_US);
			assert_int_equal(ground->names.count, i == 140);
		}
}

/* Between the first look, which watches nothing, and the second. */
static void test_told_before_it_was_watched(void **state)
{
	struct ground *ground = *state;
	ground_many(ground, 20);
	ground_settle();
	ground_find(ground, true, BUDGET_US);
	ground_file(ground, "many/d3/sub/.env");
	compare_with_afresh(ground, "not watched yet");
	ground_file(ground, "many/d4/sub/.env");
	compare_with_afresh(ground, "watched");
	/* More than are counted one by one. */
	for (unsigned i = 0; i < 300; i++) {
		char path[64];
		snprintf(path, sizeof(path), "many/e%u/sub/.env", i);
		ground_file(ground, path);
	}
	compare_with_afresh(ground, "many");
	for (unsigned i = 0; i < 300; i++) {
		char path[64];
		snprintf(path, sizeof(path), "many/e%u/sub/.env", i);
		assert_int_equal(unlinkat(ground->root_fd, path, 0), 0);
	}
	compare_with_afresh(ground, "many gone");
	ground_find(ground, true, 0);
	assert_int_equal(ground->names.unchecked, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROW_MEMORY(test_remembers), ROW_MEMORY(test_any_change), ROW_MEMORY(test_many_trees),
		ROW_MEMORY(test_told_before_it_was_watched),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

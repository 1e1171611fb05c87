/* Directories that a command closed, and those it had no way to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "planted-lab.h"
#include "paths/index/look.h"

/* Rights taken away so that nobody can look, list or move: given back first. */
static void test_locked(void **state)
{
	struct lab *lab = *state;
	lab_record(lab);
	lab_make(lab, "a/.git/hooks/pre-commit", "x", 0755);
	assert_int_equal(fchmodat(lab->root_fd, "a/.git/hooks", 0555, 0), 0);
	lab_make(lab, "b/.git/hooks/pre-commit", "y", 0755);
	assert_int_equal(fchmodat(lab->root_fd, "b/.git/hooks", 0111, 0), 0);
	assert_int_equal(fchmodat(lab->root_fd, "b/.git", 0111, 0), 0);
	assert_int_equal(fchmodat(lab->root_fd, "b", 0111, 0), 0);
	lab_check(lab, true);
	lab_assert_moved(lab, "a/.git/hooks/pre-commit", "x");
	lab_assert_moved(lab, "b/.git/hooks/pre-commit", "y");
}

/* A link covers nothing but what it leads to; any other masked name, what lies in it, if it still is what it was. */
static void test_covered(void **state)
{
	struct name before[] = {
		{ .path = "a/b.pem", .is_directory = true },
		{ .path = "file" },
		{ .path = "link", .is_link = true, .inode = 1, .ctime_ns = 2 },
	};
	const struct names names = { .items = before, .count = 3 };
	const struct {
		struct name name;
		bool covered;
	} rows[] = {
		{ { .path = "a/b.pem", .is_directory = true }, true },
		{ { .path = "a/b.pem" }, false },
		{ { .path = "a/b.pem/c/d" }, true },
		{ { .path = "a" }, false },
		{ { .path = "file" }, true },
		{ { .path = "file", .is_directory = true }, false },
		{ { .path = "file/c" }, false },
		{ { .path = "a/b.pem2" }, false },
		{ { .path = "link", .is_link = true, .inode = 1, .ctime_ns = 2 }, true },
		{ { .path = "link", .is_link = true, .inode = 1, .ctime_ns = 3 }, false },
		{ { .path = "link", .is_directory = true, .inode = 1, .ctime_ns = 2 }, false },
		{ { .path = "link/c" }, false },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_int_equal(planted_was_covered(&names, &rows[i].name), rows[i].covered);
}

/* Not by its number alone, which the next directory may get. */
static void test_replaced(void **state)
{
	struct lab *lab = *state;
	const char *const paths[] = { "kept", "moved", "gone", "made again" };
	struct name before[4] = { 0 };
	struct names names = { .items = before, .count = 4 };
	for (size_t i = 0; i < names.count; i++) {
		struct names_stat stat;
		assert_int_equal(mkdirat(lab->root_fd, paths[i], 0755), 0);
		assert_true(names_stat(lab->root_fd, paths[i], &stat));
		before[i] = (struct name){ .path = paths[i],
			                   .is_directory = true,
			                   .device = stat.device,
			                   .inode = stat.inode,
			                   .born_ns = stat.born_ns };
	}
	names.count -= !before[3].born_ns;
	/* The filesystem's clock goes by ticks. */
	usleep(20 * 1000);
	lab_make(lab, "kept/in it", "x", 0644);
	assert_int_equal(renameat(lab->root_fd, "moved", lab->root_fd, "away"), 0);
	assert_int_equal(unlinkat(lab->root_fd, "made again", AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(lab->root_fd, "gone", AT_REMOVEDIR), 0);
	assert_int_equal(mkdirat(lab->root_fd, "moved", 0755), 0);
	assert_int_equal(mkdirat(lab->root_fd, "made again", 0755), 0);
	planted_forget_replaced(lab->root_fd, &names);
	assert_int_equal(names.count, 1);
	assert_string_equal(names.items[0].path, "kept");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LAB_ROW(test_locked), LAB_ROW(test_replaced), cmocka_unit_test(test_covered),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

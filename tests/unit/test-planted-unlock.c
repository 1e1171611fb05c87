/* Directories that a command closed, and those it had no way to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "planted-lab.h"

/* Rights taken away so that nobody can look, list or move: given back first. */
static void test_locked(void **state)
{
	struct lab *lab = *state;
	lab_record(lab, UINT64_MAX);
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
		{ .path = "a/b.pem", .is_directory = true }, { .path = "file" }, { .path = "link", .is_link = true, .inode = 1, .ctime_ns = 2 },
	};
	const struct names names = { .items = before, .count = 3 };
	const struct {
		struct name name;
		bool covered;
	} rows[] = {
		{ { .path = "a/b.pem", .is_directory = true }, true }, { { .path = "a/b.pem" }, false },
		{ { .path = "a/b.pem/c/d" }, true }, { { .path = "a" }, false },
		{ { .path = "file" }, true }, { { .path = "file", .is_directory = true }, false }, { { .path = "file/c" }, false },
		{ { .path = "a/b.pem2" }, false }, { { .path = "link", .is_link = true, .inode = 1, .ctime_ns = 2 }, true },
		{ { .path = "link", .is_link = true, .inode = 1, .ctime_ns = 3 }, false },
		{ { .path = "link", .is_directory = true, .inode = 1, .ctime_ns = 2 }, false }, { { .path = "link/c" }, false },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_int_equal(planted_was_covered(&names, &rows[i].name), rows[i].covered);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LAB_ROW(test_locked), cmocka_unit_test(test_covered),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Links that a command may have made are followed as far as that cannot make the caller wait. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "session/beneath.h"

#include <cmocka.h>

static char root[] = "/tmp/cordon-beneath-XXXXXX";
static struct arena arena;

static int set_up(void **state)
{
	(void)state;
	return mkdtemp(root) && chdir(root) == 0 && mkdir("a", 0700) == 0 && mkdir("a/b", 0700) == 0 &&
	                       mkdir("other", 0700) == 0 && mknod("a/b/file", S_IFREG | 0600, 0) == 0 &&
	                       mkfifo("a/pipe", 0600) == 0
	               ? 0
	               : -1;
}

static int tear_down(void **state)
{
	static const char *const files[] = { "a/b/file", "a/pipe", "a/link", "a/second", "other/link" };
	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		unlink(files[i]);
	arena_free(&arena);
	return rmdir("a/b") | rmdir("a") | rmdir("other") | rmdir(root);
}

static const char *here(const char *path)
{
	return arena_printf(&arena, "%s/%s", root, path);
}

/* `a/link` with this text, where `a` is granted. */
static int follow(const char *text, struct place *ret_place, struct strings *ret_way)
{
	struct strings roots = { 0 };
	unlink("a/link");
	assert_int_equal(symlink(text, "a/link"), 0);
	assert_int_equal(strings_add(&arena, &roots, here("a")), 0);
	return beneath_follow(&arena, here("a/link"), &roots, ret_place, ret_way);
}

static void assert_leads(const char *text, const char *path, bool is_directory)
{
	struct place place;
	struct strings way;
	assert_int_equal(follow(text, &place, &way), 0);
	assert_string_equal(place.path, path);
	assert_int_equal(place.is_directory, is_directory);
}

static void test_where_links_lead(void **state)
{
	(void)state;
	assert_leads("b/file", here("a/b/file"), false);
	assert_leads("b//./", here("a/b"), true);
	assert_leads(here("a/b/file"), here("a/b/file"), false);
	assert_leads("../a/b", here("a/b"), true);
	assert_leads("../../../../../../..", "/", true);
	assert_leads(here("a/pipe"), here("a/pipe"), false);
	assert_leads("../other", here("other"), true);
}

static void test_what_it_depends_on(void **state)
{
	struct place place;
	struct strings way;
	(void)state;
	assert_int_equal(symlink(here("other/link"), "a/second"), 0);
	assert_int_equal(symlink("../a/b/../b/file", "other/link"), 0);
	assert_int_equal(follow("second", &place, &way), 0);
	assert_string_equal(place.path, here("a/b/file"));
	const char *const expected[] = { here("a/link"), here("a/second"), here("other/link"), here("other"),
		                         here("a/b") };
	assert_int_equal(way.count, sizeof(expected) / sizeof(expected[0]));
	for (size_t i = 0; i < way.count; i++)
		assert_string_equal(way.items[i], expected[i]);
}

static void test_links_that_lead_nowhere(void **state)
{
	struct place place;
	struct strings way;
	(void)state;
	assert_int_equal(follow("nothing", &place, &way), -ENOENT);
	assert_int_equal(follow("b/file/", &place, &way), -ENOTDIR);
	assert_int_equal(follow(here("a/link"), &place, &way), -ELOOP);
	assert_int_equal(follow("link", &place, &way), -ELOOP);
	char text[3800] = "";
	for (size_t length = strlen(text); length < sizeof(text) - 10; length += 5)
		strcpy(text + length, "b/../");
	assert_int_equal(follow(text, &place, &way), -ETIME);
}

/* Not granted, and mounted: who knows what it waits for. */
static void test_other_mounts_are_not_entered(void **state)
{
	struct place place;
	struct strings way;
	(void)state;
	assert_int_equal(follow("/proc/self/cwd", &place, &way), -EXDEV);
	assert_int_equal(follow("/proc", &place, &way), -EXDEV);
}

/* Every link on the way, and where it ends or would. */
static void test_the_whole_way_of_a_path(void **state)
{
	(void)state;
	const char *end;
	struct strings way;
	unlink("a/link");
	assert_int_equal(symlink("b/../b", "a/link"), 0);
	assert_int_equal(beneath_way(&arena, here("a/b//file"), &end, &way), 0);
	assert_string_equal(end, here("a/b/file"));
	assert_int_equal(way.count, 0);
	assert_int_equal(beneath_way(&arena, here("a/link/file"), &end, &way), 0);
	assert_string_equal(end, here("a/b/file"));
	assert_int_equal(way.count, 2);
	assert_string_equal(way.items[0], here("a/link"));
	assert_string_equal(way.items[1], here("a/b"));
	assert_int_equal(beneath_way(&arena, here("a/link/none/more"), &end, &way), -ENOENT);
	assert_string_equal(end, here("a/b/none/more"));
	assert_int_equal(beneath_way(&arena, here("none/more"), &end, &way), -ENOENT);
	assert_string_equal(end, here("none/more"));
	assert_int_equal(beneath_way(&arena, here("a/b/file/more"), &end, &way), -ENOTDIR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_where_links_lead),
		cmocka_unit_test(test_what_it_depends_on),
		cmocka_unit_test(test_links_that_lead_nowhere),
		cmocka_unit_test(test_other_mounts_are_not_entered),
		cmocka_unit_test(test_the_whole_way_of_a_path),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}

/* Where a command's control group is made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/remove.h"
#include "driver/linux/cgroup.h"
#include "driver/linux/launch.h"
#include "cgroup-ground.h"

#include <cmocka.h> /* last: it has a macro named fail */

static void test_nearest_that_can_all(void **state)
{
	(void)state;
	ground_user_tree();
	struct cgroup_place place = ground_look(USER "/app.slice/term.scope");
	assert_ptr_equal(place.ops, &cgroup_v2);
	assert_string_equal(place.path, ground_at(USER));
	assert_int_equal(place.offers, ALL);
	assert_string_equal(ground_get(ground_at(USER), "cgroup.subtree_control"), "memory pids cpu ");
	assert_string_equal(ground_get(ground_at(USER "/app.slice"), "cgroup.subtree_control"), "memory pids ");
}

static void test_less_where_there_is_no_more(void **state)
{
	(void)state;
	ground_user_tree();
	ground_put(ground_at(USER), "refused", ".");
	struct cgroup_place place = ground_look(USER "/app.slice/term.scope");
	assert_string_equal(place.path, ground_at(USER "/app.slice"));
	assert_int_equal(place.offers, BIT(LIMIT_MEMORY) | BIT(LIMIT_PROCESSES));
}

static void test_never_the_callers_own(void **state)
{
	(void)state;
	ground_user_tree();
	ground_put(ground_at(USER "/app.slice"), "refused", "cgroup.procs");
	struct cgroup_place place = ground_look(USER "/app.slice/term.scope");
	assert_null(place.ops);
	assert_non_null(strstr(place.why, "term.scope"));
}

static void test_none_split_by_threads(void **state)
{
	(void)state;
	ground_user_tree();
	ground_put(ground_at(USER "/app.slice"), "cgroup.type", "domain threaded\n");
	assert_null(ground_look(USER "/app.slice/term.scope").ops);
}

static void test_root_of_the_tree(void **state)
{
	(void)state;
	struct cgroup_place place = ground_look("/");
	assert_string_equal(place.path, root);
	assert_int_equal(place.offers, ALL);
}

static void test_odd_views(void **state)
{
	(void)state;
	static const char *const odd[] = { "/../../x", "", "x", "/gone/too" };
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++)
		assert_null(ground_look(odd[i]).ops);
}

/* A controller is in one tree only: what the caller's own lines say of version 1 need not be looked for in version 2.
 */
static void test_controllers_of_version_1(void **state)
{
	(void)state;
	assert_non_null(ground_look("/\n4:memory:/").ops);
	assert_non_null(ground_look("/\n4:memory,name=pids:/\n3:xpids:/pids").ops);
	struct cgroup_place place = ground_look("/\n4:memory:/\n9:cpu,pids:/");
	assert_null(place.ops);
	assert_non_null(strstr(place.why, "version 1"));
}

static void test_no_controllers(void **state)
{
	(void)state;
	ground_put(root, "cgroup.controllers", "");
	ground_put(root, "cgroup.subtree_control", "");
	struct cgroup_place place = ground_look("/");
	assert_null(place.ops);
	assert_non_null(strstr(place.why, "no controller"));
}

static void test_named(void **state)
{
	(void)state;
	ground_group("/mine", "memory ", "");
	struct cgroup_place place;
	struct cgroup_search where = { .directory = ground_at("/mine"), .root = root, .self = "/nowhere" };
	cgroup_look(&where, &place);
	assert_ptr_equal(place.ops, &cgroup_v2);
	assert_int_equal(place.offers, BIT(LIMIT_MEMORY));
	assert_string_equal(place.path, ground_at("/mine"));

	static const char *const wrong[] = { "/plain", "/missing" };
	mkdir(ground_at("/plain"), 0755);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		where.directory = ground_at(wrong[i]);
		cgroup_look(&where, &place);
		assert_null(place.ops);
		assert_non_null(strstr(place.why, where.directory));
	}
	ground_put(ground_at("/mine"), "refused", "cgroup.procs");
	where.directory = ground_at("/mine");
	cgroup_look(&where, &place);
	assert_null(place.ops);
	where.directory = CGROUP_NONE;
	cgroup_look(&where, &place);
	assert_null(place.ops);
	assert_non_null(strstr(place.why, "configuration"));
}

/* The subtree is removed and made again while a program runs. */
static void test_place_is_found_again(void **state)
{
	(void)state;
	ground_user_tree();
	struct cgroup made = ground_make(USER "/app.slice/term.scope");
	assert_non_null(made.ops);
	cgroup_remove(&made);
	remove_tree(AT_FDCWD, ground_at("/user.slice"));
	struct cgroup missing = ground_make(USER "/app.slice/term.scope");
	assert_null(missing.ops);
	/* What was not found is not looked for again, unless it is another search. */
	ground_user_tree();
	struct cgroup_search where = ground_search(USER "/app.slice/term.scope");
	ground_put(root, "self-again", ground_get(root, "self"));
	char self[128];
	snprintf(self, sizeof(self), "%s/self-again", root);
	where.self = self;
	cgroup_make(&where, &bounds, &made);
	assert_non_null(made.ops);
	remove_tree(AT_FDCWD, ground_at("/user.slice"));
	ground_user_tree();
	struct cgroup moved;
	cgroup_make(&where, &bounds, &moved);
	assert_non_null(moved.ops);
	cgroup_remove(&moved);
	cgroup_remove(&made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, ground_setup, ground_teardown)
		TEST(test_nearest_that_can_all),
		TEST(test_less_where_there_is_no_more),
		TEST(test_never_the_callers_own),
		TEST(test_none_split_by_threads),
		TEST(test_root_of_the_tree),
		TEST(test_odd_views),
		TEST(test_controllers_of_version_1),
		TEST(test_no_controllers),
		TEST(test_named),
		TEST(test_place_is_found_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

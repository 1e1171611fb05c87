/* The directories of a PATH, by what they really are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/search-path.h"

#include <cmocka.h>

#include "arena-ground.h"

static void directories(void **state)
{
	(void)state;
	char base[] = "/tmp/search-path-XXXXXX", command[64];
	struct strings found;
	assert_non_null(mkdtemp(base));
	assert_int_equal(mkdir(arena_printf(&arena, "%s/bin", base), 0755), 0);
	assert_int_equal(symlink("bin", arena_printf(&arena, "%s/link", base)), 0);
	const char *path = arena_printf(&arena, "%s/link::relative:.:%s/missing:/etc/passwd:%s/bin/:%s", base, base, base, base);
	assert_int_equal(search_path_directories(&arena, path, &found), 0);
	snprintf(command, sizeof(command), "rm -rf %s", base);
	assert_int_equal(system(command), 0);
	assert_int_equal(found.count, 2);
	assert_string_equal(found.items[0], arena_printf(&arena, "%s/bin", base));
	assert_string_equal(found.items[1], base);
	assert_int_equal(search_path_directories(&arena, NULL, &found), 0);
	assert_int_equal(found.count, 0);
	assert_int_equal(search_path_directories(&arena, "", &found), 0);
	assert_int_equal(found.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test_teardown(directories, free_arena) };
	return cmocka_run_group_tests_name("search-path", tests, NULL, NULL);
}

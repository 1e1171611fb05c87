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
#include "system-has.h"

static void directories(void **state)
{
	(void)state;
	char base[] = "/tmp/search-path-XXXXXX", command[64];
	struct strings found, links;
	assert_non_null(mkdtemp(base));
	assert_int_equal(mkdir(arena_printf(&arena, "%s/bin", base), 0755), 0);
	assert_true(!HAS_LINKS || symlink("bin", arena_printf(&arena, "%s/link", base)) == 0);
	const char *path =
		arena_printf(&arena, "%s/link::relative:.:%s/missing:/etc/passwd:%s/bin/:%s", base, base, base, base);
	assert_int_equal(search_path_directories(&arena, path, &found, &links), 0);
	snprintf(command, sizeof(command), "rm -rf %s", base);
	assert_int_equal(system(command), 0);
	assert_int_equal(found.count, 2);
	assert_int_equal(links.count, HAS_LINKS);
	if (HAS_LINKS)
		assert_string_equal(links.items[0], base);
	assert_string_equal(found.items[0], arena_printf(&arena, "%s/bin", base));
	assert_string_equal(found.items[1], base);
	assert_int_equal(search_path_directories(&arena, NULL, &found, &links), 0);
	assert_int_equal(found.count, 0);
	assert_int_equal(search_path_directories(&arena, "", &found, &links), 0);
	assert_int_equal(found.count, 0);
}

static void packages(void **state)
{
	(void)state;
	char base[] = "/tmp/search-path-XXXXXX", command[256];
	assert_non_null(mkdtemp(base));
	const char *bin = arena_printf(&arena, "%s/venv/bin", base);
	static const struct {
		const char *line;
		bool expected;
	} rows[] = {
		{ "mkdir -p venv/bin", false },
		{ "touch venv/pyvenv.cfg", false },
		{ "touch venv/bin/activate", true },
		{ "rm venv/pyvenv.cfg; ln -s bin/activate venv/pyvenv.cfg", false },
		{ "rm venv/pyvenv.cfg; touch venv/pyvenv.cfg; rm venv/bin/activate; ln -s /etc/passwd "
		  "venv/bin/activate",
		  false },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (!HAS_LINKS && strstr(rows[i].line, "ln -s"))
			continue;
		snprintf(command, sizeof(command), "cd %s && %s", base, rows[i].line);
		assert_int_equal(system(command), 0);
		assert_int_equal(search_path_is_of_packages(bin), rows[i].expected);
	}
	assert_true(search_path_is_of_packages("/a/node_modules/.bin"));
	assert_false(search_path_is_of_packages("/a/node_modules/.bin/x"));
	assert_false(search_path_is_of_packages("/a/my_node_modules/.bin"));
	snprintf(command, sizeof(command), "rm -rf %s", base);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test_teardown(directories, free_arena),
		                            cmocka_unit_test_teardown(packages, free_arena) };
	return cmocka_run_group_tests_name("search-path", tests, NULL, NULL);
}

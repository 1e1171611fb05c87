/* Which names of /etc are shown: the table, and what a configuration adds. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "host/etc.h"

#include <cmocka.h>

#include "arena-ground.h"

static char base[64];

static int setup(void **state)
{
	(void)state;
	strcpy(base, "/tmp/etc-XXXXXX");
	return mkdtemp(base) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[128];
	snprintf(command, sizeof(command), "rm -rf %s", base);
	return system(command) == 0 ? free_arena(state) : -1;
}

static void make(const char *name)
{
	const char *path = arena_printf(&arena, "%s/%s", base, name);
	if (strchr(name, '/'))
		mkdir(arena_strndup(&arena, path, (size_t)(strrchr(path, '/') - path)), 0755);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	close(fd);
}

static struct strings find(const struct strings *extra)
{
	struct strings paths;
	assert_int_equal(etc_find(&arena, base, extra, &paths), 0);
	for (size_t i = 0; i < paths.count; i++)
		paths.items[i] += strlen(base) + 1;
	return paths;
}

static void assert_names(const struct strings *paths, const char *const *names)
{
	size_t count = 0;
	for (; names[count]; count++) {
		assert_true(count < paths->count);
		assert_string_equal(paths->items[count], names[count]);
	}
	assert_int_equal(paths->count, count);
}

static void rows_are_unique_and_have_reasons(void **state)
{
	(void)state;
	for (size_t i = 0; i < etc_row_count; i++) {
		assert_true(*etc_rows[i].name && *etc_rows[i].name != '/' && *etc_rows[i].reason);
		assert_null(etc_refuses(arena_printf(&arena, "/etc/%s", etc_rows[i].name)));
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(etc_rows[i].name, etc_rows[j].name);
	}
}

static void what_is_listed_is_found(void **state)
{
	(void)state;
	static const char *const made[] = { "ssl/x",           "java-17-openjdk/x", "maven/m2.conf", "chromium.d/x",
		                            "default/cacerts", "default/grub",      "shadow",        "passwd",
		                            "group",           "sudoers",           "machine-id",    "hostname",
		                            "ssh/x",           "ImageMagick-6/x",   "javelin",       "zshrc",
		                            "hostsx",          ".java/x",           "pki/x" };
	for (size_t i = 0; i < ARRAY_SIZE(made); i++)
		make(made[i]);
	const char *const names[] = { ".java", "ImageMagick-6", "chromium.d", "default/cacerts", "java-17-openjdk",
		                      "maven", "pki",           "ssl",        "zshrc",           NULL };
	struct strings paths = find(NULL);
	assert_names(&paths, names);
}

static void a_configuration_adds(void **state)
{
	(void)state;
	static const char *const made[] = { "app/x",    "app-two/x", "app2",   "ssl/x",
		                            "deep/one", "deep/two",  "passwd", "gitconfig" };
	for (size_t i = 0; i < ARRAY_SIZE(made); i++)
		make(made[i]);
	const char *items[] = { "/etc/app*",     "/etc/app/x",   "/etc/ssl/x",
		                "/etc/deep/two", "/etc/missing", "/etc/missing/x",
		                "/etc/*wd",      "/etc/g*",      NULL };
	const struct strings extra = { items, ARRAY_SIZE(items) - 1, ARRAY_SIZE(items) - 1, true };
	const char *const names[] = { "app", "app-two", "app2", "deep/two", "ssl", NULL };
	struct strings paths = find(&extra);
	assert_names(&paths, names);
}

static void no_directory_is_no_names(void **state)
{
	(void)state;
	struct strings paths;
	assert_int_equal(etc_find(&arena, "/nonexistent", NULL, &paths), 0);
	assert_int_equal(paths.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(rows_are_unique_and_have_reasons, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_listed_is_found, setup, teardown),
		cmocka_unit_test_setup_teardown(a_configuration_adds, setup, teardown),
		cmocka_unit_test_setup_teardown(no_directory_is_no_names, setup, teardown),
	};
	return cmocka_run_group_tests_name("etc", tests, NULL, NULL);
}

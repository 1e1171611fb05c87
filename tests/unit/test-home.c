/* Where a command's home is, and mount points in one that commands have written to. */
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

#include "base/passwd.h"
#include "session/home.h"

#include <cmocka.h>

#include "arena-ground.h"

static char base[64];

static const char *at(const char *name)
{
	return arena_printf(&arena, "%s/%s", base, name);
}

static int setup(void **state)
{
	(void)state;
	strcpy(base, "/tmp/home-XXXXXX");
	return mkdtemp(base) ? chmod(base, 0755) : -1;
}

static int teardown(void **state)
{
	char command[128];
	snprintf(command, sizeof(command), "rm -rf %s", base);
	return system(command) == 0 ? free_arena(state) : -1;
}

static void put(const char *name, const char *text)
{
	FILE *file = fopen(at(name), "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static const char *choose(const char *variable, bool whole_view, const char **ret_alias)
{
	const char *path, *alias;
	struct cordon_error err;
	assert_int_equal(home_choose(&arena, variable, geteuid(), whole_view, &path, &alias, &err), 0);
	if (ret_alias)
		*ret_alias = alias;
	return path;
}

static void it_is_where_the_callers_is(void **state)
{
	(void)state;
	const char *alias;
	assert_int_equal(mkdir(at("ada"), 0700), 0);
	assert_string_equal(choose(at("ada"), false, &alias), at("ada"));
	assert_null(alias);
	assert_string_equal(choose(at("ada"), true, NULL), at("ada"));
	assert_string_equal(choose(arena_printf(&arena, "%s/./ada//", base), false, NULL), at("ada"));
	assert_string_equal(choose("/root", false, NULL), "/root");

	assert_int_equal(symlink("ada", at("link")), 0);
	assert_string_equal(choose(at("link"), false, &alias), at("ada"));
	assert_string_equal(alias, at("link"));
}

/* In the host's own tree the command of a root caller, another user, must be able to get there. */
static void one_that_cannot_be_reached_is_replaced(void **state)
{
	(void)state;
	char home[] = "/root/.cordon-test-home-XXXXXX";
	if (geteuid() != 0 || !mkdtemp(home)) {
		print_message("# skip: cannot: root: a directory beneath /root is needed\n");
		skip();
	}
	struct stat info;
	assert_int_equal(stat("/root", &info), 0);
	const char *wanted = info.st_mode & S_IXOTH ? home : HOME_IN_WHOLE_VIEW, *found = choose(home, true, NULL);
	const char *else_where = choose(home, false, NULL);
	assert_int_equal(rmdir(home), 0);
	assert_string_equal(found, wanted);
	assert_string_equal(else_where, home);
}

/* It is made in the private root, if that is not all of the host's tree. */
static void one_that_is_missing_is_made(void **state)
{
	(void)state;
	assert_string_equal(choose("/nonexistent", false, NULL), "/nonexistent");
	assert_string_equal(choose("/nonexistent", true, NULL), HOME_IN_WHOLE_VIEW);
	assert_string_equal(choose("/opt/nonexistent", false, NULL), HOME_INSIDE);
}

static void what_cannot_be_one_is_replaced(void **state)
{
	(void)state;
	static const char *const homes[] = { "/",
		                             "//",
		                             "/usr",
		                             "/usr/share",
		                             "/etc",
		                             "/proc/self",
		                             "/dev/shm",
		                             "/run/user",
		                             "/run/user/1000",
		                             "/tmp",
		                             "/var",
		                             "/home",
		                             "/bin",
		                             "relative",
		                             "~",
		                             "/etc/passwd",
		                             "/etc/passwd/x",
		                             "/home/a\nb",
		                             "/nix/store" };
	for (size_t i = 0; i < ARRAY_SIZE(homes); i++) {
		assert_string_equal(choose(homes[i], false, NULL), HOME_INSIDE);
		assert_string_equal(choose(homes[i], true, NULL), HOME_IN_WHOLE_VIEW);
	}
	assert_int_equal(symlink("/usr", at("usr")), 0);
	assert_string_equal(choose(at("usr"), false, NULL), HOME_INSIDE);
}

static void without_one_the_users_entry_counts(void **state)
{
	(void)state;
	const char *path, *alias;
	struct cordon_error err;
	char home[4096];
	assert_int_equal(home_choose(&arena, NULL, 0, false, &path, &alias, &err), 0);
	assert_true(passwd_home(PASSWD_FILE, 0, home, sizeof(home)));
	assert_string_equal(path, home);
	assert_int_equal(home_choose(&arena, "", 4000000001, false, &path, &alias, &err), -1);
	assert_int_equal(err.class, CORDON_E_INVALID_REQUEST);
	assert_non_null(strstr(err.reason, "4000000001"));
}

static void the_file_of_users_is_read_as_it_is(void **state)
{
	(void)state;
	char home[64], longest[5000];
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	put("passwd",
	    arena_printf(&arena,
	                 "root:x:0:0:root:/root:/bin/sh\n%s:x:7:7::/long:/bin/sh\nbad:x:5\nworse:x::8::/"
	                 "no:\nsign:x:-6:6::/no:\n"
	                 "relative:x:9:9::home:/bin/sh\nnone:x:11:11:::\nada:x:1000:1000:Ada,,,:/home/ada:/bin/bash",
	                 longest));
	const struct {
		unsigned uid;
		const char *home;
	} rows[] = { { 0, "/root" }, { 1000, "/home/ada" }, { 5, NULL },  { 6, NULL }, { 7, NULL },
		     { 8, NULL },    { 9, NULL },           { 11, NULL }, { 1, NULL }, { 4294967290u, NULL } };
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(passwd_home(at("passwd"), rows[i].uid, home, sizeof(home)), rows[i].home != NULL);
		if (rows[i].home)
			assert_string_equal(home, rows[i].home);
	}
	assert_false(passwd_home(at("passwd"), 1000, home, 5));
	assert_false(passwd_home(at("missing"), 0, home, sizeof(home)));
}

static int make_points(const char *const *paths, bool is_directory)
{
	struct places points = { 0 };
	struct cordon_error err;
	int fd = open(at("home"), O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (; *paths; paths++)
		assert_int_equal(
			places_add(&arena, &points, &(struct place){ .path = *paths, .is_directory = is_directory }),
			0);
	int result = home_make_points(fd, "/home/ada", &points, &err);
	close(fd);
	return result;
}

static mode_t kind(const char *name)
{
	struct stat info;
	return lstat(at(name), &info) < 0 ? 0 : info.st_mode & S_IFMT;
}

static void points_are_made(void **state)
{
	(void)state;
	assert_int_equal(mkdir(at("home"), 0700), 0);
	const char *const directories[] = {
		"/home/ada/src/project", "/home/ada/src", "/home/ada/src/project", "/home/ada", "/elsewhere", NULL
	};
	const char *const files[] = { "/home/ada/src/file", "/home/ada/.tool-versions", NULL };
	assert_int_equal(make_points(directories, true), 0);
	assert_int_equal(make_points(files, false), 0);
	assert_int_equal(make_points(files, false), 0);
	assert_int_equal(kind("home/src/project"), S_IFDIR);
	assert_int_equal(kind("home/src/file"), S_IFREG);
	assert_int_equal(kind("home/.tool-versions"), S_IFREG);
	assert_int_equal(kind("elsewhere"), 0);
}

static void links_are_made(void **state)
{
	(void)state;
	struct cordon_error err;
	char text[64];
	struct place items[] = { { .path = "/home/ada/models", .alias = "/mnt/models" },
		                 { .path = "/home/ada/a/b", .alias = "/mnt/b" } };
	const struct places points = { items, 2, 2 };
	assert_int_equal(mkdir(at("home"), 0700), 0);
	assert_int_equal(symlink("/planted", at("home/models")), 0);
	int fd = open(at("home"), O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (int time = 0; time < 2; time++)
		assert_int_equal(home_make_points(fd, "/home/ada", &points, &err), 0);
	close(fd);
	ssize_t length = readlink(at("home/models"), text, sizeof(text) - 1);
	assert_int_equal(length, strlen("/mnt/models"));
	assert_memory_equal(text, "/mnt/models", strlen("/mnt/models"));
	assert_int_equal(kind("home/models.cordon-aside-1"), S_IFLNK);
	assert_int_equal(kind("home/models.cordon-aside-2"), 0);
	assert_int_equal(kind("home/a/b"), S_IFLNK);
}

/* Links that lead out, files where directories are to be, and the other way round. */
static void what_lies_in_the_way_is_moved_aside(void **state)
{
	(void)state;
	assert_int_equal(mkdir(at("home"), 0700), 0);
	assert_int_equal(mkdir(at("outside"), 0700), 0);
	assert_int_equal(symlink(at("outside"), at("home/src")), 0);
	assert_int_equal(symlink("/nonexistent", at("home/src.cordon-aside-1")), 0);
	put("home/file", "kept\n");
	assert_int_equal(mkdir(at("home/directory"), 0700), 0);
	assert_int_equal(symlink(at("outside/made"), at("home/link")), 0);
	assert_int_equal(mkfifo(at("home/fifo"), 0600), 0);
	const char *const directories[] = { "/home/ada/src/project", "/home/ada/file/x", "/home/ada/fifo", NULL };
	const char *const files[] = { "/home/ada/directory", "/home/ada/link", NULL };
	assert_int_equal(make_points(directories, true), 0);
	assert_int_equal(make_points(files, false), 0);
	assert_int_equal(kind("home/src"), S_IFDIR);
	assert_int_equal(kind("home/src/project"), S_IFDIR);
	assert_int_equal(kind("home/src.cordon-aside-2"), S_IFLNK);
	assert_int_equal(kind("home/file/x"), S_IFDIR);
	assert_int_equal(kind("home/file.cordon-aside-1"), S_IFREG);
	assert_int_equal(kind("home/fifo"), S_IFDIR);
	assert_int_equal(kind("home/directory"), S_IFREG);
	assert_int_equal(kind("home/directory.cordon-aside-1"), S_IFDIR);
	assert_int_equal(kind("home/link"), S_IFREG);
	assert_int_equal(kind("outside/project"), 0);
	assert_int_equal(kind("outside/made"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(it_is_where_the_callers_is, setup, teardown),
		cmocka_unit_test_setup_teardown(one_that_cannot_be_reached_is_replaced, setup, teardown),
		cmocka_unit_test_setup_teardown(one_that_is_missing_is_made, setup, teardown),
		cmocka_unit_test_setup_teardown(what_cannot_be_one_is_replaced, setup, teardown),
		cmocka_unit_test_setup_teardown(without_one_the_users_entry_counts, setup, teardown),
		cmocka_unit_test_setup_teardown(the_file_of_users_is_read_as_it_is, setup, teardown),
		cmocka_unit_test_setup_teardown(points_are_made, setup, teardown),
		cmocka_unit_test_setup_teardown(links_are_made, setup, teardown),
		cmocka_unit_test_setup_teardown(what_lies_in_the_way_is_moved_aside, setup, teardown),
	};
	return cmocka_run_group_tests_name("home", tests, NULL, NULL);
}

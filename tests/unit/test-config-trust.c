/* The configuration's files, planted, foreign or written by others; and those that are named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cordon-internal.h"
#include "config/read.h"
#include "config/store.h"
#include "config-ground.h"
#include "skip.h"
#include "system-has.h"

static void planted_projects_are_refused(void **state)
{
	(void)state;
	char other[96];
	snprintf(other, sizeof(other), "%s/other", root);
	ground_put(other, "limits.memory = \"50M\"\n");
	if (HAS_LINKS) {
		assert_int_equal(symlink(other, project_file), 0);
		ground_expect_refused(".cordon.toml", "symbolic link");
		unlink(project_file);
		assert_int_equal(symlink("/nonexistent", project_file), 0);
		ground_expect_refused(".cordon.toml", "symbolic link");
		unlink(project_file);
	}
	if (HAS_SPECIAL_FILES) {
		assert_int_equal(mkfifo(project_file, 0644), 0);
		ground_expect_refused(".cordon.toml", "not a regular file");
		unlink(project_file);
	}
	assert_int_equal(mkdir(project_file, 0755), 0);
	ground_expect_refused(".cordon.toml", "not a regular file");
	rmdir(project_file);
	ground_put(project_file, "");
	assert_int_equal(truncate(project_file, 64 << 20), 0);
	ground_expect_refused(".cordon.toml", "larger than");
	unlink(project_file);
	ground_expect(2048, NULL);
}

static void foreign_files_are_refused(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip_cannot("root", "only root can give files away");
	ground_put(project_file, "limits.memory = \"50M\"\n");
	assert_int_equal(chown(project_file, 12345, 12345), 0);
	ground_expect_refused(".cordon.toml", "another user");
	/* Where it is the workspace's owner's, it is the project's own. */
	assert_int_equal(chown(workspace, 12345, 12345), 0);
	ground_open_store();
	ground_expect(50, NULL);
	unlink(project_file);
	ground_put(user_file, "limits.memory = \"50M\"\n");
	assert_int_equal(chown(user_file, 12345, 12345), 0);
	ground_expect_refused("user.toml", "another user");
}

static void what_others_write_is_refused(void **state)
{
	(void)state;
	static const mode_t modes[] = { 0664, 0646, 0620 };
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		ground_put(i ? user_file : system_file, "limits.memory = \"5M\"\n");
		assert_int_equal(chmod(i ? user_file : system_file, modes[i]), 0);
		ground_expect_refused(i ? "user.toml" : "system.toml", "by others");
		unlink(i ? user_file : system_file);
	}
	/* And where it was good before, what was then good stays. */
	ground_put(user_file, "limits.memory = \"5M\"\n");
	ground_expect(5, NULL);
	ground_put(user_file, "limits.memory = \"6M\"\n");
	assert_int_equal(chmod(user_file, 0666), 0);
	ground_expect(5, "user.toml: the configuration can be written by others");
	ground_expect(5, NULL);
	assert_int_equal(chmod(user_file, 0600), 0);
	ground_expect(6, NULL);
}

static void links_to_a_users_own_file_are_followed(void **state)
{
	(void)state;
	char other[96];
	snprintf(other, sizeof(other), "%s/dotfiles", root);
	ground_put(other, "limits.memory = \"50M\"\n");
	assert_int_equal(symlink(other, user_file), 0);
	ground_expect(50, NULL);
	ground_put(other, "limits.memory = \"51M\"\n");
	ground_expect(51, NULL);
}

static void the_only_file_must_be_good(void **state)
{
	(void)state;
	struct cordon_error err = { 0 };
	char only[96];
	snprintf(only, sizeof(only), "%s/only.toml", root);
	const struct config_files files = { .system = system_file, .user = user_file, .only = only };
	ground_put(system_file, "limits.memory = \"5M\"\n");
	ground_put(user_file, "broken");
	config_store_unref(store);
	assert_int_equal(config_store_open_files(data, &files, &store, &err), 0);
	if (host_watch)
		assert_int_equal(config_store_watch(store, host_watch, &err), 0);
	ground_expect_refused("only.toml", "cannot read");
	ground_put(only, "limits.memory = \"70M\"\n");
	ground_expect(70, NULL);
	ground_put(project_file, "limits.memory = \"7M\"\n");
	ground_expect(7, NULL);
	ground_put(only, "limits.memory = \"71M\"\nx");
	ground_expect_refused("only.toml:2:", "");
	unlink(only);
	ground_expect_refused("only.toml", "cannot read");
}

static void names_come_from_the_environment(void **state)
{
	(void)state;
	struct cordon_error err = { 0 };
	struct config_store *usual;
	setenv("HOME", "/home/x", 1);
	unsetenv("XDG_CONFIG_HOME");
	assert_int_equal(config_store_open(data, NULL, &usual, &err), 0);
	assert_string_equal(config_store_files(usual)->system, CONFIG_SYSTEM_FILE);
	assert_string_equal(config_store_files(usual)->user, "/home/x/.config/cordon/config.toml");
	assert_string_equal(config_store_files(usual)->home, "/home/x");
	config_store_unref(usual);
	setenv("XDG_CONFIG_HOME", "/xdg", 1);
	setenv("HOME", "relative", 1);
	assert_int_equal(config_store_open(data, "", &usual, &err), 0);
	assert_string_equal(config_store_files(usual)->user, "/xdg/cordon/config.toml");
	assert_null(config_store_files(usual)->home);
	assert_null(config_store_files(usual)->only);
	config_store_unref(usual);
	setenv("XDG_CONFIG_HOME", "relative", 1);
	assert_int_equal(config_store_open(data, NULL, &usual, &err), 0);
	assert_null(config_store_files(usual)->user);
	config_store_unref(usual);
}

/* A damaged kept file is as good as none. */
static void what_is_kept_is_not_trusted(void **state)
{
	(void)state;
	char path[96], other[96], name[512] = "";
	snprintf(other, sizeof(other), "%s/other", root);
	ground_put(user_file, "limits.memory = \"5M\"\n");
	ground_expect(5, NULL);
	snprintf(path, sizeof(path), "%s/config", data);
	DIR *directory = opendir(path);
	for (struct dirent *entry; (entry = readdir(directory));)
		if (entry->d_name[0] != '.')
			snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
	closedir(directory);
	ground_put(name, "limits.memory = \"5");
	ground_put(user_file, "broken");
	ground_open_store();
	ground_expect_refused("user.toml:1:", "");
	unlink(name);
	ground_put(other, "limits.memory = \"5M\"\n");
	if (HAS_LINKS) {
		assert_int_equal(symlink(other, name), 0);
		ground_open_store();
		ground_expect_refused("user.toml:1:", "");
		unlink(name);
	}
	ground_put(name, "limits.memory = \"5M\"\n");
	ground_expect(5, "user.toml:1:");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, ground_setup, ground_teardown)
#define WATCHED(name) { #name " (watched)", name, ground_setup_watched, ground_teardown, NULL }
	const struct CMUnitTest tests[] = {
		TEST(planted_projects_are_refused),
		TEST(foreign_files_are_refused),
		TEST(what_others_write_is_refused),
		TEST(links_to_a_users_own_file_are_followed),
		TEST(the_only_file_must_be_good),
		TEST(names_come_from_the_environment),
		TEST(what_is_kept_is_not_trusted),
		WATCHED(planted_projects_are_refused),
		WATCHED(foreign_files_are_refused),
		WATCHED(what_others_write_is_refused),
		WATCHED(links_to_a_users_own_file_are_followed),
		WATCHED(the_only_file_must_be_good),
		WATCHED(what_is_kept_is_not_trusted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

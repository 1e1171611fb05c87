/* Where cordon's own files lie: what is kept of it says the same as what is there now. */
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

#include "base/remove.h"
#include "session/own-ground.h"

#include <cmocka.h>

static char root[32], file[64], data[64];
static struct vigil *vigil;
static struct own_ground *ground;

static int set_up(void **state)
{
	(void)state;
	strcpy(root, "/tmp/cordon-ground-XXXXXX");
	if (!mkdtemp(root) || chdir(root) < 0)
		return -1;
	snprintf(file, sizeof(file), "%s/link/file", root);
	snprintf(data, sizeof(data), "%s/data", root);
	const char *files[2] = { file };
	return mkdir("a", 0700) | mkdir("b", 0700) | mkdir("data", 0700) | mkdir("other", 0700) | mknod("a/file", S_IFREG | 0600, 0) |
	               mknod("b/file", S_IFREG | 0600, 0) | symlink("a", "link") ||
	               !(vigil = vigil_new()) || !(ground = own_ground_new(vigil, files, data)) ? -1 : 0;
}

static int tear_down(void **state)
{
	(void)state;
	own_ground_free(ground);
	vigil_free(vigil);
	return remove_tree(AT_FDCWD, root);
}

static struct place place_of(const char *path)
{
	struct stat info;
	assert_int_equal(stat(path, &info), 0);
	return (struct place){ .path = path, .device = info.st_dev, .inode = info.st_ino, .is_directory = true };
}

static bool elsewhere_than(const char *workspace, const char *tree)
{
	struct place place = place_of(workspace), other = place_of(tree ? tree : workspace);
	vigil_hear(vigil);
	return own_ground_is_elsewhere(ground, 1, &place, &(struct places){ .items = &other, .count = tree ? 1 : 0 });
}

/* What is asked for once is not worth watching. */
static void know(void)
{
	assert_false(elsewhere_than("other", NULL));
	assert_true(elsewhere_than("other", NULL));
}

static void test_every_way_counts(void **state)
{
	static const char *const ways[] = { "a", "data", "link/file", "." };
	(void)state;
	know();
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		assert_false(elsewhere_than(ways[i], NULL));
		assert_false(elsewhere_than("other", ways[i]));
	}
	assert_true(elsewhere_than("b", "other"));
}

static void test_a_link_that_leads_elsewhere_now(void **state)
{
	(void)state;
	know();
	assert_true(elsewhere_than("b", NULL));
	assert_int_equal(symlink("b", "new"), 0);
	assert_int_equal(rename("new", "link"), 0);
	assert_false(elsewhere_than("b", NULL));
	assert_true(elsewhere_than("a", NULL));
}

static void test_a_directory_in_the_place_of_another(void **state)
{
	(void)state;
	know();
	assert_int_equal(rename("a", "gone"), 0);
	assert_int_equal(rename("other", "a"), 0);
	assert_false(elsewhere_than("a", NULL));
	assert_true(elsewhere_than("gone", NULL));
	assert_int_equal(rename("data", "away"), 0);
	assert_true(elsewhere_than("away", NULL));
	assert_int_equal(rename("away", "data"), 0);
	assert_false(elsewhere_than("data", NULL));
}

static void test_a_second_name(void **state)
{
	(void)state;
	know();
	assert_int_equal(link("a/file", "other/name"), 0);
	assert_false(elsewhere_than("b", NULL));
	assert_int_equal(unlink("other/name"), 0);
	assert_true(elsewhere_than("b", NULL));
}

static void test_another_mount(void **state)
{
	struct place place = place_of("other");
	struct places none = { 0 };
	(void)state;
	know();
	for (uint64_t mounts = 2; mounts < 4; mounts++) {
		assert_true(own_ground_is_elsewhere(ground, mounts, &place, &none));
		assert_true(own_ground_is_elsewhere(ground, mounts, &place, &none));
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = { TEST(test_every_way_counts), TEST(test_a_link_that_leads_elsewhere_now),
		                            TEST(test_a_directory_in_the_place_of_another), TEST(test_a_second_name),
		                            TEST(test_another_mount) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Removing trees that do not want to be removed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/remove.h"

/* Windows has no path that is longer than 32767. */
#ifdef _WIN32
#define DEEP 150
#else
#define DEEP 3000
#endif

struct ground {
	char root[64];
	int fd;
};

static int setup(void **state)
{
	struct ground *ground = calloc(1, sizeof(*ground));
	strcpy(ground->root, "/tmp/cordon-test-remove.XXXXXX");
	assert_non_null(mkdtemp(ground->root));
	ground->fd = open(ground->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(ground->fd >= 0 && mkdirat(ground->fd, "tree", 0700) == 0);
	*state = ground;
	return 0;
}

static int teardown(void **state)
{
	struct ground *ground = *state;
	remove_tree(ground->fd, "tree");
	close(ground->fd);
	/* Nothing was moved out, either. */
	int left = rmdir(ground->root);
	free(ground);
	return left;
}

static void make_file(int directory, const char *name)
{
	auto_close int fd = openat(directory, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
}

static void must_be_gone(const struct ground *ground)
{
	struct stat info;
	assert_int_equal(remove_tree(ground->fd, "tree"), 0);
	assert_int_equal(fstatat(ground->fd, "tree", &info, AT_SYMLINK_NOFOLLOW), -1);
	assert_int_equal(errno, ENOENT);
}

static int child_of(int parent, const char *name, mode_t mode)
{
	assert_int_equal(mkdirat(parent, name, mode), 0);
	return openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Deeper than a path may be long, with two branches on the way down, and with few descriptors to be had. */
static void deep(void **state)
{
	struct ground *ground = *state;
	struct rlimit before, few;
	int at = openat(ground->fd, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < DEEP; i++) {
		int next = child_of(at, "a-directory-of-some-length", 0700);
		make_file(at, "file");
		assert_true(next >= 0 && mkdirat(at, "b", 0700) == 0);
		close(at);
		at = next;
	}
	close(at);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){ 128, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	must_be_gone(ground);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void modes(void **state)
{
	struct ground *ground = *state;
	int at = openat(ground->fd, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC), top = at;
	for (int i = 0; i < 200; i++) {
		int next = child_of(at, "in", 0700);
		make_file(next, "file");
		if (at != top) {
			assert_int_equal(fchmod(at, i % 2 ? 0 : 0555), 0);
			close(at);
		}
		at = next;
	}
	close(at);
	assert_int_equal(fchmod(top, 0), 0);
	close(top);
	must_be_gone(ground);
}

static void links_and_other_kinds(void **state)
{
	struct ground *ground = *state;
	char outside[] = "/tmp/cordon-test-outside.XXXXXX", kept[64];
	assert_non_null(mkdtemp(outside));
	snprintf(kept, sizeof(kept), "%s/kept", outside);
	make_file(AT_FDCWD, kept);
	auto_close int at = openat(ground->fd, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(symlinkat(outside, at, "link"), 0);
	assert_int_equal(symlinkat("nowhere", at, "dangling"), 0);
	assert_int_equal(mkfifoat(at, "fifo", 0600), 0);
	must_be_gone(ground);
	assert_int_equal(symlinkat(outside, ground->fd, "tree"), 0);
	must_be_gone(ground);
	assert_int_equal(access(kept, F_OK), 0);
	assert_int_equal(unlink(kept) | rmdir(outside), 0);
}

static void what_is_not_there(void **state)
{
	struct ground *ground = *state;
	must_be_gone(ground);
	assert_int_equal(remove_tree(ground->fd, "tree"), 0);
	make_file(ground->fd, "tree");
	must_be_gone(ground);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(deep, setup, teardown),
		cmocka_unit_test_setup_teardown(modes, setup, teardown),
		cmocka_unit_test_setup_teardown(links_and_other_kinds, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_not_there, setup, teardown),
	};
	return cmocka_run_group_tests_name("remove", tests, NULL, NULL);
}

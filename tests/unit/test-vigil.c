/* Every way in which a path can come to be another file, or have other contents, breaks its post at once; what is beside it
 * does not. Changes are made by a shell, in a directory of their own. */
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/vigil.h"

#include <cmocka.h>

#include "base/remove.h"
#include "local-ground.h"

static char top[PATH_MAX];

static void sh(const char *script)
{
	char line[PATH_MAX * 2];
	snprintf(line, sizeof(line), "cd %s && { %s; }", top, script);
	assert_int_equal(system(line), 0);
}

static const char *at(const char *name)
{
	static char path[PATH_MAX * 2];
	snprintf(path, sizeof(path), "%s/%s", top, name);
	return path;
}

static int make(void **state)
{
	char name[PATH_MAX];
	(void)state;
	snprintf(name, sizeof(name), "%s/test-vigil-XXXXXX", local_ground());
	assert_non_null(mkdtemp(name));
	assert_non_null(realpath(name, top));
	static const char *const directories[] = { "a", "a/b", "a/b/c", "other" };
	for (size_t i = 0; i < sizeof(directories) / sizeof(*directories); i++)
		assert_int_equal(mkdir(at(directories[i]), 0755), 0);
	int fd = open(at("a/b/c/file"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644), to = open(top, O_PATH | O_CLOEXEC);
	assert_true(fd >= 0 && to >= 0);
	close(fd);
	assert_int_equal(linkat(to, "a/b/c/file", to, "other/twin", 0), 0);
	assert_int_equal(symlinkat("b", to, "a/link"), 0);
	assert_int_equal(symlinkat("c/file", to, "a/b/to-file"), 0);
	assert_int_equal(symlinkat(at("other/twin"), to, "away"), 0);
	close(to);
	return 0;
}

static int clean(void **state)
{
	(void)state;
	remove_tree(AT_FDCWD, top);
	return 0;
}

/* A post that watches `path` and has heard of nothing. */
static struct vigil_post *watch(struct vigil *vigil, const char *path, void (*how)(struct vigil_post *, const char *))
{
	struct vigil_post *post = vigil_post_new(vigil);
	assert_non_null(post);
	vigil_begin(post, 7);
	assert_false(vigil_watches(post));
	vigil_begin(post, 7);
	assert_true(vigil_watches(post));
	vigil_hear(vigil);
	how(post, at(path));
	vigil_hear(vigil);
	assert_true(vigil_stands(post, 7));
	return post;
}

static const struct {
	const char *path, *change;
	bool breaks;
	void (*how)(struct vigil_post *post, const char *path);
} cases[] = {
	{ "a/b/c/file", "echo 2 >a/b/c/file", true, vigil_watch },
	{ "a/b/c/file", "printf 2 | dd of=a/b/c/file conv=notrunc 2>/dev/null", true, vigil_watch },
	{ "a/b/c/file", "echo 2 >other/twin", true, vigil_watch },
	{ "a/b/c/file", "chmod 600 a/b/c/file", true, vigil_watch },
	{ "a/b/c/file", "rm a/b/c/file", true, vigil_watch },
	{ "a/b/c/file", "mv a/b/c/file a/b/c/gone", true, vigil_watch },
	{ "a/b/c/file", "echo 2 >a/b/c/new; mv a/b/c/new a/b/c/file", true, vigil_watch },
	{ "a/b/c/file", "rm a/b/c/file; ln -s ../../../away a/b/c/file", true, vigil_watch },
	{ "a/b/c/file", "chmod 700 a/b/c", true, vigil_watch },
	{ "a/b/c/file", "chmod 700 a", true, vigil_watch },
	{ "a/b/c/file", "mv a a2", true, vigil_watch },
	{ "a/b/c/file", "mv a a2; mkdir a", true, vigil_watch },
	{ "a/b/c/file", "mv a/b a/b2; ln -s b2 a/b", true, vigil_watch },
	{ "a/b/c/file", "rm -r a", true, vigil_watch },
	{ "a/b/c/file", "touch a/b/c/other a/b/other a/other", false, vigil_watch },
	{ "a/b/c/file", "cat a/b/c/file >/dev/null; ls -lR . >/dev/null", false, vigil_watch },
	{ "a/b/c", "touch a/b/c/other", false, vigil_watch },
	{ "a/b/c", "rmdir other 2>/dev/null; mv a/b/c a/b/d", true, vigil_watch },
	{ "a/b/missing", "touch a/b/missing", true, vigil_watch },
	{ "a/b/missing", "mkdir a/b/missing", true, vigil_watch },
	{ "a/b/missing/x/y", "mkdir a/b/missing", true, vigil_watch },
	{ "a/b/missing", "ln -s c a/b/missing", true, vigil_watch },
	{ "a/b/missing", "mv a/b/c a/b/missing", true, vigil_watch },
	{ "a/b/missing", "touch a/b/missing2", false, vigil_watch },
	{ "a/b/c/file/x", "rm a/b/c/file; mkdir a/b/c/file", true, vigil_watch },
	{ "a/link/to-file", "echo 2 >a/b/c/file", true, vigil_watch },
	{ "a/link/to-file", "rm a/link; ln -s nowhere a/link", true, vigil_watch },
	{ "a/link/to-file", "ln -sfn ../../other/twin a/b/to-file", true, vigil_watch },
	{ "a/b/../../away", "echo 2 >other/twin", true, vigil_watch },
	{ "away", "mv other other2", true, vigil_watch },
	{ "away", "touch other/new", false, vigil_watch },
	{ "away", "chmod 600 other/twin", false, vigil_watch_link },
	{ "away", "ln -sfn a away", true, vigil_watch_link },
	{ "a/b", "touch a/b/new", true, vigil_watch_names },
	{ "a/b", "rm a/b/to-file", true, vigil_watch_names },
	{ "a/link", "mkdir a/b/new", true, vigil_watch_names },
	{ "a/b", "mv other a/b/other", true, vigil_watch_names },
	{ "a/b", "touch a/new other/new", false, vigil_watch_names },
	{ "missing", "mkdir missing", true, vigil_watch_names },
};

static void a_change_breaks_its_post(void **state)
{
	struct vigil *vigil = vigil_new();
	assert_non_null(vigil);
	/* Who holds on to the way to all of them saves the kernel much. */
	struct vigil_post *way = watch(vigil, "", vigil_watch);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct vigil_post *post = watch(vigil, cases[i].path, cases[i].how);
		sh(cases[i].change);
		vigil_hear(vigil);
		if (vigil_stands(post, 7) == cases[i].breaks)
			fail_msg("%s: %s", cases[i].path, cases[i].change);
		/* Watched anew, it stands again, and what it no longer is about does not matter. */
		vigil_begin(post, 8);
		cases[i].how(post, at(cases[i].path));
		vigil_hear(vigil);
		vigil_hear(vigil);
		assert_true(vigil_stands(post, 8));
		assert_false(vigil_stands(post, 7));
		vigil_post_free(post);
		clean(state);
		make(state);
	}
	vigil_post_free(way);
	vigil_free(vigil);
}

static void posts_are_apart(void **state)
{
	(void)state;
	struct vigil *vigil = vigil_new();
	assert_non_null(vigil);
	struct vigil_post *one = watch(vigil, "a/b/c/file", vigil_watch), *two = watch(vigil, "a/b/c/file", vigil_watch);
	struct vigil_post *three = watch(vigil, "away", vigil_watch_link);
	vigil_post_free(one);
	sh("touch a/b/c/beside");
	vigil_hear(vigil);
	assert_true(vigil_stands(two, 7));
	sh("echo 2 >a/b/c/file");
	/* Nothing has been heard yet. */
	assert_true(vigil_stands(two, 7));
	vigil_hear(vigil);
	assert_false(vigil_stands(two, 7));
	assert_true(vigil_stands(three, 7));
	for (int time = 0; time < 3; time++) {
		vigil_begin(three, 7);
		vigil_watch(three, at("other"));
		sh("ln -sfn nowhere away");
		vigil_hear(vigil);
		assert_true(vigil_stands(three, 7));
	}
	sh("mv other other2");
	vigil_hear(vigil);
	assert_false(vigil_stands(three, 7));
	vigil_post_free(two);
	vigil_post_free(three);
	vigil_free(vigil);
}

static void what_was_left_out_breaks_all(void **state)
{
	(void)state;
	char text[32] = "0";
	FILE *file = fopen("/proc/sys/fs/inotify/max_queued_events", "re");
	if (file && !fgets(text, sizeof(text), file))
		text[0] = '\0';
	if (file)
		fclose(file);
	long most = strtol(text, NULL, 10);
	if (most <= 0 || most > 100000) {
		print_message("# the queue holds %ld, which is too many to fill\n", most);
		return;
	}
	struct vigil *vigil = vigil_new();
	assert_non_null(vigil);
	sh("touch a/b/c/x a/b/c/y");
	struct vigil_post *post = watch(vigil, "a/b/c/file", vigil_watch);
	for (long i = 0; i <= most; i++)
		assert_int_equal(chmod(at(i % 2 ? "a/b/c/x" : "a/b/c/y"), i % 4 < 2 ? 0600 : 0644), 0);
	vigil_hear(vigil);
	assert_false(vigil_stands(post, 7));
	vigil_post_free(post);
	vigil_free(vigil);
}

static void asleep_it_watches_nothing(void **state)
{
	(void)state;
	struct vigil *vigil = vigil_new();
	assert_non_null(vigil);
	struct vigil_post *post = vigil_post_new(vigil);
	assert_non_null(post);
	vigil_sleep(vigil, true);
	for (int time = 0; time < 3; time++) {
		vigil_begin(post, 7);
		vigil_watch(post, at("a/b/c/file"));
		assert_false(vigil_hear(vigil));
		assert_false(vigil_stands(post, 7));
	}
	vigil_sleep(vigil, false);
	vigil_begin(post, 7);
	vigil_watch(post, at("a/b/c/file"));
	assert_true(vigil_hear(vigil));
	assert_true(vigil_stands(post, 7));
	vigil_post_free(post);
	vigil_free(vigil);
}

static void what_cannot_be_watched_never_stands(void **state)
{
	(void)state;
	static const char *const paths[] = { "/proc/self/status", "relative", "" };
	struct vigil *vigil = vigil_new();
	assert_non_null(vigil);
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		struct vigil_post *post = vigil_post_new(vigil);
		assert_non_null(post);
		for (int time = 0; time < 3; time++) {
			vigil_begin(post, 7);
			vigil_watch(post, paths[i]);
			vigil_hear(vigil);
			assert_false(vigil_stands(post, 7));
		}
		vigil_post_free(post);
	}
	vigil_watch(NULL, "/");
	assert_false(vigil_watches(NULL));
	vigil_free(vigil);
}

/* It has its parent's descriptor, and what it reads there the parent would never hear of. */
static void a_forked_child_takes_nothing_away(void **state)
{
	(void)state;
	struct vigil *vigil = vigil_new();
	assert_non_null(vigil);
	struct vigil_post *post = watch(vigil, "a/b/c/file", vigil_watch);
	sh("echo 2 >a/b/c/file");
	pid_t child = fork();
	assert_true(child >= 0);
	if (!child) {
		vigil_hear(vigil);
		bool stands = vigil_stands(post, 7);
		vigil_begin(post, 7);
		vigil_watch(post, at("a/b/c/file"));
		vigil_hear(vigil);
		_exit(stands || vigil_stands(post, 7));
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	vigil_hear(vigil);
	assert_false(vigil_stands(post, 7));
	vigil_post_free(post);
	vigil_free(vigil);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_change_breaks_its_post, make, clean),
		cmocka_unit_test_setup_teardown(posts_are_apart, make, clean),
		cmocka_unit_test_setup_teardown(what_was_left_out_breaks_all, make, clean),
		cmocka_unit_test_setup_teardown(asleep_it_watches_nothing, make, clean),
		cmocka_unit_test_setup_teardown(what_cannot_be_watched_never_stands, make, clean),
		cmocka_unit_test_setup_teardown(a_forked_child_takes_nothing_away, make, clean),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

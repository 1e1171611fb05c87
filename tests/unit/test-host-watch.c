/* Every way in which a path can come to be another file, or have other contents, breaks its watches at once; what is
 * beside it does not. Changes are made by a shell, in a directory of their own. */
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

#include "base/host-watch.h"

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
	snprintf(name, sizeof(name), "%s/test-host-watch-XXXXXX", local_ground());
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

/* A watches that watches `path` and has heard of nothing. */
static struct host_watch_set *watch(struct host_watch *host_watch, const char *path,
                                    void (*how)(struct host_watch_set *, const char *))
{
	struct host_watch_set *watches = host_watch_set_new(host_watch);
	assert_non_null(watches);
	host_watch_begin(watches, 7);
	assert_false(host_watch_is_active(watches));
	host_watch_begin(watches, 7);
	assert_true(host_watch_is_active(watches));
	host_watch_poll(host_watch);
	how(watches, at(path));
	host_watch_poll(host_watch);
	assert_true(host_watch_unchanged(watches, 7));
	return watches;
}

static const struct {
	const char *path, *change;
	bool breaks;
	void (*how)(struct host_watch_set *watches, const char *path);
} cases[] = {
	{ "a/b/c/file", "echo 2 >a/b/c/file", true, host_watch_path },
	{ "a/b/c/file", "printf 2 | dd of=a/b/c/file conv=notrunc 2>/dev/null", true, host_watch_path },
	{ "a/b/c/file", "echo 2 >other/twin", true, host_watch_path },
	{ "a/b/c/file", "chmod 600 a/b/c/file", true, host_watch_path },
	{ "a/b/c/file", "rm a/b/c/file", true, host_watch_path },
	{ "a/b/c/file", "mv a/b/c/file a/b/c/gone", true, host_watch_path },
	{ "a/b/c/file", "echo 2 >a/b/c/new; mv a/b/c/new a/b/c/file", true, host_watch_path },
	{ "a/b/c/file", "rm a/b/c/file; ln -s ../../../away a/b/c/file", true, host_watch_path },
	{ "a/b/c/file", "chmod 700 a/b/c", true, host_watch_path },
	{ "a/b/c/file", "chmod 700 a", true, host_watch_path },
	{ "a/b/c/file", "mv a a2", true, host_watch_path },
	{ "a/b/c/file", "mv a a2; mkdir a", true, host_watch_path },
	{ "a/b/c/file", "mv a/b a/b2; ln -s b2 a/b", true, host_watch_path },
	{ "a/b/c/file", "rm -r a", true, host_watch_path },
	{ "a/b/c/file", "touch a/b/c/other a/b/other a/other", false, host_watch_path },
	{ "a/b/c/file", "cat a/b/c/file >/dev/null; ls -lR . >/dev/null", false, host_watch_path },
	{ "a/b/c", "touch a/b/c/other", false, host_watch_path },
	{ "a/b/c", "rmdir other 2>/dev/null; mv a/b/c a/b/d", true, host_watch_path },
	{ "a/b/missing", "touch a/b/missing", true, host_watch_path },
	{ "a/b/missing", "mkdir a/b/missing", true, host_watch_path },
	{ "a/b/missing/x/y", "mkdir a/b/missing", true, host_watch_path },
	{ "a/b/missing", "ln -s c a/b/missing", true, host_watch_path },
	{ "a/b/missing", "mv a/b/c a/b/missing", true, host_watch_path },
	{ "a/b/missing", "touch a/b/missing2", false, host_watch_path },
	{ "a/b/c/file/x", "rm a/b/c/file; mkdir a/b/c/file", true, host_watch_path },
	{ "a/link/to-file", "echo 2 >a/b/c/file", true, host_watch_path },
	{ "a/link/to-file", "rm a/link; ln -s nowhere a/link", true, host_watch_path },
	{ "a/link/to-file", "ln -sfn ../../other/twin a/b/to-file", true, host_watch_path },
	{ "a/b/../../away", "echo 2 >other/twin", true, host_watch_path },
	{ "away", "mv other other2", true, host_watch_path },
	{ "away", "touch other/new", false, host_watch_path },
	{ "away", "chmod 600 other/twin", false, host_watch_link },
	{ "away", "ln -sfn a away", true, host_watch_link },
	{ "a/b", "touch a/b/new", true, host_watch_names },
	{ "a/b", "rm a/b/to-file", true, host_watch_names },
	{ "a/link", "mkdir a/b/new", true, host_watch_names },
	{ "a/b", "mv other a/b/other", true, host_watch_names },
	{ "a/b", "touch a/new other/new", false, host_watch_names },
	{ "missing", "mkdir missing", true, host_watch_names },
};

static void a_change_breaks_its_post(void **state)
{
	struct host_watch *host_watch = host_watch_new();
	assert_non_null(host_watch);
	/* Who holds on to the way to all of them saves the kernel much. */
	struct host_watch_set *way = watch(host_watch, "", host_watch_path);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct host_watch_set *watches = watch(host_watch, cases[i].path, cases[i].how);
		sh(cases[i].change);
		host_watch_poll(host_watch);
		if (host_watch_unchanged(watches, 7) == cases[i].breaks)
			fail_msg("%s: %s", cases[i].path, cases[i].change);
		/* Watched anew, it stands again, and what it no longer is about does not matter. */
		host_watch_begin(watches, 8);
		cases[i].how(watches, at(cases[i].path));
		host_watch_poll(host_watch);
		host_watch_poll(host_watch);
		assert_true(host_watch_unchanged(watches, 8));
		assert_false(host_watch_unchanged(watches, 7));
		host_watch_set_free(watches);
		clean(state);
		make(state);
	}
	host_watch_set_free(way);
	host_watch_free(host_watch);
}

static void posts_are_apart(void **state)
{
	(void)state;
	struct host_watch *host_watch = host_watch_new();
	assert_non_null(host_watch);
	struct host_watch_set *one = watch(host_watch, "a/b/c/file", host_watch_path),
			      *two = watch(host_watch, "a/b/c/file", host_watch_path);
	struct host_watch_set *three = watch(host_watch, "away", host_watch_link);
	host_watch_set_free(one);
	sh("touch a/b/c/beside");
	host_watch_poll(host_watch);
	assert_true(host_watch_unchanged(two, 7));
	sh("echo 2 >a/b/c/file");
	/* Nothing has been heard yet. */
	assert_true(host_watch_unchanged(two, 7));
	host_watch_poll(host_watch);
	assert_false(host_watch_unchanged(two, 7));
	assert_true(host_watch_unchanged(three, 7));
	for (int time = 0; time < 3; time++) {
		host_watch_begin(three, 7);
		host_watch_path(three, at("other"));
		sh("ln -sfn nowhere away");
		host_watch_poll(host_watch);
		assert_true(host_watch_unchanged(three, 7));
	}
	sh("mv other other2");
	host_watch_poll(host_watch);
	assert_false(host_watch_unchanged(three, 7));
	host_watch_set_free(two);
	host_watch_set_free(three);
	host_watch_free(host_watch);
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
	struct host_watch *host_watch = host_watch_new();
	assert_non_null(host_watch);
	sh("touch a/b/c/x a/b/c/y");
	struct host_watch_set *watches = watch(host_watch, "a/b/c/file", host_watch_path);
	for (long i = 0; i <= most; i++)
		assert_int_equal(chmod(at(i % 2 ? "a/b/c/x" : "a/b/c/y"), i % 4 < 2 ? 0600 : 0644), 0);
	host_watch_poll(host_watch);
	assert_false(host_watch_unchanged(watches, 7));
	host_watch_set_free(watches);
	host_watch_free(host_watch);
}

static void asleep_it_watches_nothing(void **state)
{
	(void)state;
	struct host_watch *host_watch = host_watch_new();
	assert_non_null(host_watch);
	struct host_watch_set *watches = host_watch_set_new(host_watch);
	assert_non_null(watches);
	host_watch_pause(host_watch, true);
	for (int time = 0; time < 3; time++) {
		host_watch_begin(watches, 7);
		host_watch_path(watches, at("a/b/c/file"));
		assert_false(host_watch_poll(host_watch));
		assert_false(host_watch_unchanged(watches, 7));
	}
	host_watch_pause(host_watch, false);
	host_watch_begin(watches, 7);
	host_watch_path(watches, at("a/b/c/file"));
	assert_true(host_watch_poll(host_watch));
	assert_true(host_watch_unchanged(watches, 7));
	host_watch_set_free(watches);
	host_watch_free(host_watch);
}

static void what_cannot_be_watched_never_stands(void **state)
{
	(void)state;
	static const char *const paths[] = { "/proc/self/status", "relative", "" };
	struct host_watch *host_watch = host_watch_new();
	assert_non_null(host_watch);
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		struct host_watch_set *watches = host_watch_set_new(host_watch);
		assert_non_null(watches);
		for (int time = 0; time < 3; time++) {
			host_watch_begin(watches, 7);
			host_watch_path(watches, paths[i]);
			host_watch_poll(host_watch);
			assert_false(host_watch_unchanged(watches, 7));
		}
		host_watch_set_free(watches);
	}
	host_watch_path(NULL, "/");
	assert_false(host_watch_is_active(NULL));
	host_watch_free(host_watch);
}

/* It has its parent's descriptor, and what it reads there the parent would never hear of. */
static void a_forked_child_takes_nothing_away(void **state)
{
	(void)state;
	struct host_watch *host_watch = host_watch_new();
	assert_non_null(host_watch);
	struct host_watch_set *watches = watch(host_watch, "a/b/c/file", host_watch_path);
	sh("echo 2 >a/b/c/file");
	pid_t child = fork();
	assert_true(child >= 0);
	if (!child) {
		host_watch_poll(host_watch);
		bool stands = host_watch_unchanged(watches, 7);
		host_watch_begin(watches, 7);
		host_watch_path(watches, at("a/b/c/file"));
		host_watch_poll(host_watch);
		_exit(stands || host_watch_unchanged(watches, 7));
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	host_watch_poll(host_watch);
	assert_false(host_watch_unchanged(watches, 7));
	host_watch_set_free(watches);
	host_watch_free(host_watch);
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

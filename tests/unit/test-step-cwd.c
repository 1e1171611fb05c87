/* Step 2: the working directory is opened beneath the workspace or a granted root, or refused with the reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/remove.h"
#include "system-has.h"
#include "walk.h"

#include <cmocka.h>

struct ground {
	struct arena arena;
	char top[32];
	char work[64];
	struct place workspace;
	struct capability_set requested, configured, session;
	struct cwd_facts facts;
	struct verdict_cwd cwd;
	struct cordon_error err;
};

static char *in(struct ground *ground, const char *path)
{
	return arena_printf(&ground->arena, "%s/%s", ground->top, path);
}

static int set_up(void **state)
{
	struct ground *ground = calloc(1, sizeof(*ground));
	strcpy(ground->top, "/tmp/cordon-cwd-XXXXXX");
	assert_non_null(mkdtemp(ground->top));
	static const char *const directories[] = {
		"work", "work/sub", "data", "data/a", "data/a/deep", "data/ab", "out"
	};
	for (size_t i = 0; i < ARRAY_SIZE(directories); i++)
		assert_int_equal(mkdir(in(ground, directories[i]), 0700), 0);
	if (HAS_LINKS) {
		assert_int_equal(symlink("../out", in(ground, "work/leaves")), 0);
		assert_int_equal(symlink("sub", in(ground, "work/stays")), 0);
		assert_int_equal(symlink("nowhere", in(ground, "work/dangles")), 0);
		assert_int_equal(symlink("loop", in(ground, "work/loop")), 0);
	}
	snprintf(ground->work, sizeof(ground->work), "%s/work", ground->top);
	ground->workspace = (struct place){ .path = ground->work, .is_directory = true };
	ground->facts = (struct cwd_facts){
		.arena = &ground->arena, .workspace = &ground->workspace,
		.workspace_fd = open(ground->work, O_PATH | O_DIRECTORY | O_CLOEXEC),
		.granted = { &ground->requested, &ground->configured, &ground->session },
	};
	ground->cwd.fd = -1;
	*state = ground;
	return 0;
}

static int tear_down(void **state)
{
	struct ground *ground = *state;
	close(ground->facts.workspace_fd);
	remove_tree(AT_FDCWD, ground->top);
	arena_free(&ground->arena);
	free(ground);
	return 0;
}

static void assert_enters(struct ground *ground, const char *cwd, const char *expected)
{
	struct stat opened, named;
	ground->facts.cwd = cwd;
	assert_int_equal(cwd_step(&ground->facts, &ground->cwd, &ground->err), 0);
	assert_string_equal(ground->cwd.path, expected);
	assert_int_equal(fstat(ground->cwd.fd, &opened), 0);
	assert_int_equal(stat(expected, &named), 0);
	assert_int_equal(opened.st_ino, named.st_ino);
	if (ground->cwd.fd != ground->facts.workspace_fd)
		close(ground->cwd.fd);
	ground->cwd = (struct verdict_cwd){ .fd = -1 };
}

static void assert_denied(struct ground *ground, const char *cwd, const char *reason)
{
	ground->facts.cwd = cwd;
	assert_int_equal(cwd_step(&ground->facts, &ground->cwd, &ground->err), -1);
	assert_int_equal(ground->err.class, CORDON_E_CAPABILITY_DENIED);
	assert_string_equal(ground->err.boundary, "filesystem");
	assert_non_null(strstr(ground->err.reason, reason));
	assert_true(*ground->err.remediation);
	/* Untouched on failure. */
	assert_int_equal(ground->cwd.fd, -1);
	assert_null(ground->cwd.path);
}

static void test_the_workspace_is_the_default(void **state)
{
	struct ground *ground = *state;
	assert_enters(ground, NULL, ground->work);
	assert_int_equal(cwd_step(&ground->facts, &ground->cwd, &ground->err), 0);
	assert_int_equal(ground->cwd.fd, ground->facts.workspace_fd);
}

static void test_beneath_the_workspace(void **state)
{
	struct ground *ground = *state;
	const char *sub = in(ground, "work/sub");
	assert_enters(ground, "sub", sub);
	assert_enters(ground, "./sub//", sub);
	if (HAS_LINKS)
		assert_enters(ground, "stays", sub);
	assert_enters(ground, sub, sub);
	assert_enters(ground, in(ground, "out/../work/./sub/"), sub);
	assert_enters(ground, ground->work, ground->work);
}

static void test_by_the_name_the_workspace_was_given(void **state)
{
	struct ground *ground = *state;
	ground->workspace.alias = "/by/another/name";
	assert_enters(ground, "/by/another/name/sub", in(ground, "work/sub"));
	assert_enters(ground, "/by/another/name", ground->work);
}

static void test_from_the_callers_directory(void **state)
{
	struct ground *ground = *state;
	ground->facts.here = in(ground, "work/sub");
	assert_enters(ground, NULL, in(ground, "work/sub"));
	assert_enters(ground, "..", ground->work);
	assert_enters(ground, ground->work, ground->work);
	assert_denied(ground, "../..", "leads out");
	/* The grant that would allow it is a plain path. */
	char grant[sizeof(ground->err.grant)];
	snprintf(grant, sizeof(grant), "--read %s", ground->top);
	assert_string_equal(ground->err.grant, grant);
}

static void test_leaving_is_denied(void **state)
{
	struct ground *ground = *state;
	static const char leads_out[] = "leads out of the workspace and of every granted path";
	assert_denied(ground, "..", leads_out);
	assert_denied(ground, "sub/../../out", leads_out);
	if (HAS_LINKS)
		assert_denied(ground, "leaves", leads_out);
	assert_denied(ground, in(ground, "out"), leads_out);
	assert_denied(ground, in(ground, "work/../out"), leads_out);
	assert_denied(ground, "/", leads_out);
	assert_denied(ground, arena_printf(&ground->arena, "%s-beside", ground->work), leads_out);
}

static void test_what_is_not_there_is_denied(void **state)
{
	struct ground *ground = *state;
	assert_denied(ground, "missing", "cannot enter the working directory");
	if (HAS_LINKS) {
		assert_denied(ground, "dangles", "cannot enter the working directory");
		assert_denied(ground, "loop", "loop of symbolic links");
	}
	assert_int_equal(close(open(in(ground, "work/file"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);
	assert_denied(ground, "file", "cannot enter the working directory");
}

static void test_granted_roots(void **state)
{
	struct ground *ground = *state;
	struct capability_set *const sets[] = { &ground->requested, &ground->configured, &ground->session };
	const char *deep = in(ground, "data/a/deep");
	for (size_t i = 0; i < ARRAY_SIZE(sets); i++) {
		assert_denied(ground, deep, "leads out");
		strings_add(&ground->arena, &sets[i]->fs_read, in(ground, "data/a/"));
		assert_enters(ground, deep, deep);
		assert_enters(ground, in(ground, "data/a"), in(ground, "data/a"));
		/* Component-wise: /data/ab is not beneath /data/a. */
		assert_denied(ground, in(ground, "data/ab"), "leads out");
		sets[i]->fs_read = (struct strings){ 0 };
		strings_add(&ground->arena, &sets[i]->fs_write, in(ground, "data//a"));
		assert_enters(ground, deep, deep);
		sets[i]->fs_write = (struct strings){ 0 };
	}
}

static void test_a_link_does_not_lead_out_of_a_granted_root(void **state)
{
	struct ground *ground = *state;
	assert_int_equal(symlink("../../out", in(ground, "data/a/leaves")), 0);
	strings_add(&ground->arena, &ground->requested.fs_write, in(ground, "data/a"));
	assert_denied(ground, in(ground, "data/a/leaves"), "leads out");
}

static void test_a_control_character_is_an_invalid_request(void **state)
{
	struct ground *ground = *state;
	ground->facts.cwd = "sub\n";
	assert_int_equal(cwd_step(&ground->facts, &ground->cwd, &ground->err), -1);
	assert_int_equal(ground->err.class, CORDON_E_INVALID_REQUEST);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_the_workspace_is_the_default),
		CASE(test_beneath_the_workspace),
		CASE(test_by_the_name_the_workspace_was_given),
		CASE(test_from_the_callers_directory),
		CASE(test_leaving_is_denied),
		CASE(test_what_is_not_there_is_denied),
		CASE(test_granted_roots),
		CASE(test_a_link_does_not_lead_out_of_a_granted_root),
		CASE(test_a_control_character_is_an_invalid_request),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Which settings of the user's git configuration hold inside. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/git-user.h"

#include <cmocka.h>

#include "arena-ground.h"

static struct git_user parse(const char *text)
{
	struct git_user user = { .arena = &arena };
	git_user_parse(&user, text, strlen(text));
	assert_false(user.failed);
	return user;
}

static void assert_kept(const char *text, const char *kept)
{
	struct git_user user = parse(text);
	assert_string_equal(user.kept ? user.kept : "", kept);
	assert_null(user.left);
}

static void assert_left(const char *text, const char *left)
{
	struct git_user user = parse(text);
	assert_null(user.kept);
	assert_string_equal(user.left ? user.left : "", left);
}

static void what_is_harmless_is_kept(void **state)
{
	(void)state;
	assert_kept("[init]\n\tdefaultBranch = main\n[pull]\nrebase\n", "[init]\n\tdefaultbranch = \"main\"\n[pull]\n\trebase\n");
	assert_kept("[alias]\n\tco = checkout\n", "[alias]\n\tco = \"checkout\"\n");
	assert_kept("[color \"diff\"]\n\tmeta = \"a \\\"b\\\" \\\\\"\n", "[color \"diff\"]\n\tmeta = \"a \\\"b\\\" \\\\\"\n");
}

static void what_runs_or_redirects_is_left_out(void **state)
{
	(void)state;
	assert_left("[alias]\n\tx = !rm -rf /\n\ty = \"  !sh\"\n", " alias.x alias.y");
	assert_left("[core]\n\tpager = less\n\teditor = vi\n\thooksPath = /x\n", " core.pager core.editor core.hookspath");
	assert_left("[credential]\n\thelper = store\n[credential \"https://a\"]\n\thelper = x\n", " credential.helper");
	assert_left("[url \"https://token:secret@host/\"]\n\tinsteadOf = https://host/\n", " url.insteadof");
	assert_left("[http]\n\textraHeader = Authorization: secret\n", " http.extraheader");
	assert_left("[include]\n\tpath = other\n[filter \"lfs\"]\n\tclean = git-lfs clean\n", " include.path filter.clean");
	assert_left("[nobody]\n\tknows = this\n", " nobody.knows");
	assert_left("[init]\n\tdefaultBranch = \"a\\nb\"\n", " init.defaultbranch");
}

/* No secret by its name, no key to sign with; who commits comes by another way. */
static void what_is_not_for_here_is_not_named(void **state)
{
	(void)state;
	struct git_user user = parse("[user]\n\tname = Ada\n\temail = a@b\n\tsigningKey = x\n[commit]\n\tgpgSign = true\n[tag]\n\tgpgSign\n");
	assert_null(user.kept);
	assert_null(user.left);
}

static void bad_bytes_end_it(void **state)
{
	(void)state;
	assert_kept("[init]\n\tdefaultBranch = main\n[broken\n[pull]\n\trebase = true\n", "[init]\n\tdefaultbranch = \"main\"\n");
	struct git_user user = { .arena = &arena };
	char *text = arena_alloc(&arena, 400 * 1024);
	size_t length = 0;
	while (length < 300 * 1024)
		length += (size_t)sprintf(text + length, "[alias]\n\ta%zu = checkout\n[x]\n\ty%zu = 1\n", length, length);
	git_user_parse(&user, text, length);
	assert_true(user.kept_length < 64 * 1024 && user.left_length < 4096 && !user.failed);
	assert_int_equal(strlen(user.kept), user.kept_length);
}

static void the_files_are_those_of_git(void **state)
{
	(void)state;
	char home[] = "/tmp/git-user-XXXXXX", command[128];
	const char *text, *none[] = { NULL };
	assert_non_null(mkdtemp(home));
	assert_int_equal(git_user_settings(&arena, home, NULL, none, NULL, &text), 0);
	assert_null(text);
	FILE *file = fopen(arena_printf(&arena, "%s/.gitconfig", home), "w");
	fputs("[init]\n\tdefaultBranch = main\n[core]\n\tpager = x\n", file);
	fclose(file);
	assert_int_equal(git_user_settings(&arena, home, NULL, none, NULL, &text), 0);
	assert_non_null(strstr(text, "[init]\n\tdefaultbranch = \"main\"\n"));
	assert_non_null(strstr(text, "# core.pager\n"));
	const char *elsewhere[] = { "GIT_CONFIG_GLOBAL=/dev/null", NULL };
	assert_int_equal(git_user_settings(&arena, home, NULL, elsewhere, NULL, &text), 0);
	assert_null(text);
	snprintf(command, sizeof(command), "rm -rf %s", home);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(what_is_harmless_is_kept, free_arena),
		cmocka_unit_test_teardown(what_runs_or_redirects_is_left_out, free_arena),
		cmocka_unit_test_teardown(what_is_not_for_here_is_not_named, free_arena),
		cmocka_unit_test_teardown(bad_bytes_end_it, free_arena),
		cmocka_unit_test_teardown(the_files_are_those_of_git, free_arena),
	};
	return cmocka_run_group_tests_name("git-user", tests, NULL, NULL);
}

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
	assert_kept("[init]\n\tdefaultBranch = main\n[pull]\nrebase\n",
	            "[init]\n\tdefaultbranch = \"main\"\n[pull]\n\trebase\n");
	assert_kept("[alias]\n\tco = checkout\n", "[alias]\n\tco = \"checkout\"\n");
	assert_kept("[color \"diff\"]\n\tmeta = \"a \\\"b\\\" \\\\\"\n",
	            "[color \"diff\"]\n\tmeta = \"a \\\"b\\\" \\\\\"\n");
}

static void what_runs_or_redirects_is_left_out(void **state)
{
	(void)state;
	assert_left("[alias]\n\tx = !rm -rf /\n\ty = \"  !sh\"\n", " alias.x alias.y");
	assert_left("[core]\n\tpager = less\n\teditor = vi\n\thooksPath = /x\n",
	            " core.pager core.editor core.hookspath");
	assert_left("[credential]\n\thelper = store\n[credential \"https://a\"]\n\thelper = x\n", " credential.helper");
	assert_left("[url \"https://token:secret@host/\"]\n\tinsteadOf = https://host/\n", " url.insteadof");
	assert_left("[http]\n\textraHeader = Authorization: secret\n", " http.extraheader");
	assert_left("[include]\n\tpath = other\n[filter \"lfs\"]\n\tclean = git-lfs clean\n",
	            " include.path filter.clean");
	assert_left("[nobody]\n\tknows = this\n", " nobody.knows");
	assert_left("[init]\n\tdefaultBranch = \"a\\nb\"\n", " init.defaultbranch");
}

/* Who commits comes by another way; the keys to sign with are not inside, and without them git would commit nothing. */
static void signing_is_left_out_and_named(void **state)
{
	(void)state;
	assert_left(
		"[user]\n\tname = Ada\n\temail = a@b\n\tsigningKey = x\n[commit]\n\tgpgSign = true\n[tag]\n\tgpgSign\n",
		" user.signingkey commit.gpgsign tag.gpgsign");
	assert_kept("[commit]\n\tgpgSign = false\n", "[commit]\n\tgpgsign = \"false\"\n");
}

#define LFS_PROCESS "[filter \"lfs\"]\n\tprocess = "
#define LFS_REQUIRED "[filter \"lfs\"]\n\trequired = "

/* git dies of a filter that is required and has no program; of git-lfs only what it writes itself is kept. */
static void a_filter_is_whole_or_left_out(void **state)
{
	(void)state;
	static const char *const own =
		LFS_REQUIRED "true\n\tclean = git-lfs clean -- %f\n\tsmudge = git-lfs smudge -- %f\n"
			     "\tprocess = git-lfs filter-process\n";
	static const struct {
		const char *text;
		bool has_lfs;
		const char *kept, *left;
	} rows[] = {
		{ own, true,
		  "[filter \"lfs\"]\n\tclean = \"git-lfs clean -- %f\"\n[filter \"lfs\"]\n\tsmudge = \"git-lfs smudge "
		  "-- %f\"\n" LFS_PROCESS "\"git-lfs filter-process\"\n" LFS_REQUIRED "\"true\"\n",
		  "" },
		{ own, false, "", " filter.clean filter.smudge filter.process filter.required" },
		{ LFS_REQUIRED "true\n", true, "", " filter.required" },
		{ LFS_REQUIRED "true\n\tclean = git-lfs clean -- %f\n\tsmudge = sh -c x\n", true, "",
		  " filter.smudge filter.clean filter.required" },
		{ LFS_PROCESS "\"git-lfs filter-process; sh\"\n", true, "", " filter.process" },
		{ LFS_PROCESS "git-lfs filter-process --skip\n", true,
		  LFS_PROCESS "\"git-lfs filter-process --skip\"\n", "" },
		{ "[filter \"other\"]\n\tprocess = git-lfs filter-process\n\trequired\n", true, "",
		  " filter.process filter.required" },
		{ "[filter]\n\tprocess = git-lfs filter-process\n", true, "", " filter.process" },
		{ "[filter \"x\"]\n\trequired = false\n", true, "[filter \"x\"]\n\trequired = \"false\"\n", "" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct git_user user = parse(rows[i].text);
		git_user_end(&user, rows[i].has_lfs);
		assert_string_equal(user.kept ? user.kept : "", rows[i].kept);
		assert_string_equal(user.left ? user.left : "", rows[i].left);
	}
}

static void bad_bytes_end_it(void **state)
{
	(void)state;
	assert_kept("[init]\n\tdefaultBranch = main\n[broken\n[pull]\n\trebase = true\n",
	            "[init]\n\tdefaultbranch = \"main\"\n");
	struct git_user user = { .arena = &arena };
	char *text = arena_alloc(&arena, 400 * 1024);
	size_t length = 0;
	while (length < 300 * 1024)
		length +=
			(size_t)sprintf(text + length, "[alias]\n\ta%zu = checkout\n[x]\n\ty%zu = 1\n", length, length);
	git_user_parse(&user, text, length);
	assert_true(user.kept_length < 64 * 1024 && user.left_length < 4096 && !user.failed);
	assert_int_equal(strlen(user.kept), user.kept_length);
}

static void the_files_are_those_of_git(void **state)
{
	(void)state;
	char home[] = "/tmp/git-user-XXXXXX", command[128];
	assert_non_null(mkdtemp(home));
	const char *text, *of_system = arena_printf(&arena, "GIT_CONFIG_SYSTEM=%s/system", home);
	const char *none[] = { "GIT_CONFIG_NOSYSTEM=1", NULL },
		   *both[] = { of_system, "GIT_CONFIG_NOSYSTEM=off", NULL };
	struct git_user_search search = { .home = home, .environment = none };
	assert_int_equal(git_user_settings(&arena, &search, &text), 0);
	assert_null(text);
	FILE *file = fopen(arena_printf(&arena, "%s/.gitconfig", home), "w");
	fputs("[init]\n\tdefaultBranch = main\n[core]\n\tpager = x\n", file);
	fclose(file);
	assert_int_equal(git_user_settings(&arena, &search, &text), 0);
	assert_non_null(strstr(text, "[init]\n\tdefaultbranch = \"main\"\n"));
	assert_non_null(strstr(text, "# core.pager\n"));
	const char *elsewhere[] = { "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", NULL };
	search.environment = elsewhere;
	assert_int_equal(git_user_settings(&arena, &search, &text), 0);
	assert_null(text);
	/* The host's comes first, so that the user's counts. */
	file = fopen(strchr(of_system, '/'), "w");
	fputs("[init]\n\tdefaultBranch = hosts\n[pull]\n\trebase = true\n", file);
	fclose(file);
	search.environment = both;
	assert_int_equal(git_user_settings(&arena, &search, &text), 0);
	assert_non_null(strstr(text, "[init]\n\tdefaultbranch = \"hosts\"\n[pull]\n\trebase = "
	                             "\"true\"\n[init]\n\tdefaultbranch = \"main\"\n"));
	snprintf(command, sizeof(command), "rm -rf %s", home);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(what_is_harmless_is_kept, free_arena),
		cmocka_unit_test_teardown(what_runs_or_redirects_is_left_out, free_arena),
		cmocka_unit_test_teardown(signing_is_left_out_and_named, free_arena),
		cmocka_unit_test_teardown(a_filter_is_whole_or_left_out, free_arena),
		cmocka_unit_test_teardown(bad_bytes_end_it, free_arena),
		cmocka_unit_test_teardown(the_files_are_those_of_git, free_arena),
	};
	return cmocka_run_group_tests_name("git-user", tests, NULL, NULL);
}

/* Where a `.git` file leads, and the other small files of git. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "paths/planted/git-file.h"

static const struct {
	const char *text, *path, *target;       /* NULL: refused */
} git_files[] = {
	{ "gitdir: ../.git/modules/m\n", "/root/m/.git", "/root/.git/modules/m" },
	{ "gitdir: ../.git/modules/m\r\n\n", "/root/m/.git", "/root/.git/modules/m" },
	{ "gitdir: ../../.git/modules/a/b", "/root/x/y/.git", "/root/.git/modules/a/b" },
	{ "gitdir: ../../.git/modules/a", "/root/r/x/y/.git", "/root/r/.git/modules/a" },
	{ "gitdir: .git/modules/a", "/root/r/.git", "/root/r/.git/modules/a" },
	{ "gitdir: /root/.git/worktrees/w", "/root/w/.git", "/root/.git/worktrees/w" },
	{ "gitdir: /root/r/.git/worktrees/w", "/root/w/.git", "/root/r/.git/worktrees/w" },
	{ "gitdir: /rootless/.git/worktrees/w", "/root/w/.git", "/rootless/.git/worktrees/w" },
	{ "gitdir: /root/../root/.git/worktrees/w", "/root/w/.git", NULL },
	{ "gitdir: /root", "/root/w/.git", NULL },
	{ "gitdir: /root/.git/worktrees/", "/root/w/.git", NULL },
	{ "gitdir: /.git/worktrees/w", "/root/w/.git", "/.git/worktrees/w" },
	{ "gitdir: ../../.git/modules/m", "/root/m/.git", "/.git/modules/m" },
	{ "gitdir: ../../../.git/modules/m", "/root/m/.git", NULL },
	{ "gitdir: ../.git/modules", "/root/m/.git", NULL },
	{ "gitdir: ../.git/modules/", "/root/m/.git", NULL },
	{ "gitdir: ../.git/modules/x/..", "/root/m/.git", NULL },
	{ "gitdir: ../x/../.git/modules/m", "/root/m/.git", NULL },
	{ "gitdir: .././.git/modules/m", "/root/m/.git", NULL },
	{ "gitdir: ../x.git/modules/m", "/root/m/.git", NULL },
	{ "gitdir: ../x.git/modules/.git/modules/m", "/root/m/.git", "/root/x.git/modules/.git/modules/m" },
	{ "gitdir: ../evil", "/root/m/.git", NULL },
	{ "gitdir: ../.git/modules/m\nx", "/root/m/.git", NULL },
	{ "gitdir:../.git/modules/m", "/root/m/.git", NULL },
	{ "GITDIR: ../.git/modules/m", "/root/m/.git", NULL },
	{ "gitdir: ", "/root/m/.git", NULL },
	{ "gitdir: ..", "/root/m/.git", NULL },
	{ "", "/root/m/.git", NULL },
};

static void test_git_files(void **state)
{
	(void)state;
	char target[64];
	for (size_t i = 0; i < ARRAY_SIZE(git_files); i++) {
		const char *text = git_files[i].text, *wanted = git_files[i].target ? git_files[i].target : "(none)";
		bool found = git_file_target(text, strlen(text), git_files[i].path, target, sizeof(target));
		if (strcmp(found ? target : "(none)", wanted))
			fail_msg("%s: %s", text, found ? target : "(none)");
	}
	assert_false(git_file_target("gitdir: ../.git/modules/m\0", 26, "/m/.git", target, sizeof(target)));
	assert_false(git_file_target("gitdir: ../.git/modules/m", 25, "/m/.git", target, 15));
	assert_true(git_file_target("gitdir: ../.git/modules/m", 25, "/m/.git", target, 16));
	assert_true(git_file_is_worktree(".git/worktrees/w"));
	assert_true(git_file_is_worktree("r/.git/modules/m/worktrees/w"));
	assert_false(git_file_is_worktree(".git/worktrees"));
	assert_false(git_file_is_worktree(".git/worktrees/w/x"));
	assert_false(git_file_is_worktree("worktrees/w"));
	assert_true(git_file_is_up_two("../..\n", 6));
	assert_false(git_file_is_up_two("../../\n", 7));
	assert_false(git_file_is_up_two("../../..", 8));
}

static void test_links(void **state)
{
	(void)state;
	static const char *const own[] = { ".git/COMMIT_EDITMSG",   "a/.git/modules", ".git/modules/a/b",
		                           ".GIT/Logs/HEAD",        "/r/.git/x",      "a/.git/hooks",
		                           ".git/tmp/wt/.git/index" };
	static const char *const others[] = { ".git",          "x.git/logs", ".git/tmp/wt/link", ".git/modulesx/a",
		                              "git/logs/HEAD", "a",          ".git/hooks/x",     ".git/" };
	static const struct {
		const char *path, *text;
		bool usual;
	} links[] = {
		{ ".git/HEAD", "refs/heads/main", true },
		{ ".git/HEAD", "refs/../../x", false },
		{ ".git/HEAD", "/refs/x", false },
		{ ".git/index", "refs/heads/main", false },
		{ ".git/.#COMMIT_EDITMSG", "me@host.12:34", true },
		{ ".git/.#COMMIT_EDITMSG", "..", false },
		{ ".git/modules/.#x", "../x", false },
		{ ".git/modules/.#x", "x/y", false },
	};
	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		if (!git_file_is_gits_own(own[i]))
			fail_msg("%s is git's own", own[i]);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (git_file_is_gits_own(others[i]))
			fail_msg("%s is not git's own", others[i]);
	for (size_t i = 0; i < ARRAY_SIZE(links); i++)
		if (git_file_is_usual_link(links[i].path, links[i].text) != links[i].usual)
			fail_msg("%s -> %s", links[i].path, links[i].text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_git_files), cmocka_unit_test(test_links),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Where git finds a repository and its configuration, and what only looks like it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "planted-lab.h"
#include "system-has.h"

/* Other ways than .git/config by which git comes to a configuration. */
static void test_ways_to_a_configuration(void **state)
{
	struct lab *lab = *state;
	static const char evil[] = "[core]\nfsmonitor = /x\n", good[] = "[core]\nbare = false\n";
	char absolute[160];
	snprintf(absolute, sizeof(absolute), "gitdir: %s/.git/worktrees/w\n", lab->root);
	lab_record(lab);
	lab_make(lab, ".git/config", good, 0644);
	lab_make(lab, ".git/commondir", "../evil\n", 0644);
	lab_make(lab, ".git/config.worktree", evil, 0644);
	lab_make(lab, ".git/modules/a/b/config", evil, 0644);
	lab_make(lab, ".git/modules/a/b/hooks/pre-commit", "x", 0755);
	lab_make(lab, ".git/modules/a/b/refs/heads/config", "no configuration, a branch", 0644);
	lab_make(lab, ".git/modules/config/config", good, 0644);
	lab_make(lab, ".git/modules/src/hooks/HEAD", "ref: x\n", 0644);
	lab_make(lab, ".git/modules/.env/config", evil, 0644);
	lab_make(lab, ".git/modules/m/config", "[core]\nworktree = ../../../m\n", 0644);
	lab_make(lab, ".git/worktrees/w/commondir", "../..\n", 0644);
	lab_make(lab, ".git/worktrees/w/gitdir", "/anywhere/.git\n", 0644);
	lab_make(lab, ".git/worktrees/v/commondir", "../../../evil\n", 0644);
	lab_make(lab, ".git/worktrees/u/config", evil, 0644);
	lab_make(lab, ".git/modules/m/worktrees/t/commondir", "../..", 0644);
	lab_make(lab, "evil/config", evil, 0644);
	lab_make(lab, "m/.git", "gitdir: ../.git/modules/m\n", 0644);
	lab_make(lab, "w/.git", absolute, 0644);
	lab_make(lab, "t/.git", "gitdir: ../.git/modules/m/worktrees/t\n", 0644);
	lab_make(lab, "v/.git", "gitdir: ../.git/worktrees/v\n", 0644);
	lab_make(lab, "b/.git", "gitdir: ../.git/modules/a/b\n", 0644);
	lab_make(lab, "e/.git", "gitdir: ../evil\n", 0644);
	lab_make(lab, "n/.git", "gitdir: ../.git/modules/not-there\n", 0644);
	lab_make(lab, "d/.git/HEAD", "", 0644);
	lab_make(lab, "k/x", "", 0644);
	if (HAS_LINKS)
		assert_int_equal(symlinkat("../evil", lab->root_fd, "k/.git"), 0);
	else
		lab_make(lab, "k/.git", "gitdir: ../evil\n", 0644);
	lab_check(lab, true);
	static const char *const gone[] = { ".git/commondir",
		                            ".git/config.worktree",
		                            ".git/modules/a/b/config",
		                            ".git/modules/a/b/hooks/pre-commit",
		                            ".git/worktrees/v/commondir",
		                            ".git/worktrees/u/config",
		                            "v/.git",
		                            "b/.git",
		                            "e/.git",
		                            "n/.git",
		                            "k/.git",
		                            ".git/modules/.env/config" };
	static const char *const kept[] = { ".git/config",
		                            ".git/modules/config/config",
		                            ".git/modules/m/config",
		                            ".git/worktrees/w/commondir",
		                            ".git/worktrees/w/gitdir",
		                            ".git/modules/m/worktrees/t/commondir",
		                            "m/.git",
		                            "w/.git",
		                            "t/.git" };
	for (size_t i = 0; i < ARRAY_SIZE(gone); i++)
		if (!lab_get(lab, gone[i]) || !lab_get(lab, gone[i])->quarantined_as || lab_exists(lab, gone[i]))
			fail_msg("%s is kept", gone[i]);
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		if (!lab_get(lab, kept[i]) || lab_get(lab, kept[i])->harmful || !lab_exists(lab, kept[i]))
			fail_msg("%s is not kept", kept[i]);
	assert_int_equal(lab->planted.count, ARRAY_SIZE(gone) + ARRAY_SIZE(kept));
	assert_int_equal(lab->planted.harmful, ARRAY_SIZE(gone));
	const struct name *hooks = names_get(&lab->after_names, NAME_PROTECTED, ".git/modules/src/hooks");
	assert_non_null(hooks);
	const struct git_tree tree = { lab->root_fd, lab->root, &lab->after_names };
	assert_true(planted_is_repository(&tree, hooks));
	assert_false(
		planted_is_repository(&tree, names_get(&lab->after_names, NAME_PROTECTED, ".git/modules/a/b/hooks")));
}

/* A submodule's working tree is the directory that leads to it, and nothing that a link leads to. */
static void test_worktrees_elsewhere(void **state)
{
	struct lab *lab = *state;
	static const char *const values[] = { "../../../esc",
		                              "../../../none",
		                              "../../../plain",
		                              "../../../esc/in",
		                              "../../..",
		                              "/tmp",
		                              "~/x",
		                              "../../../m\nworktree = ../../../esc" };
	assert_int_equal(mkdirat(lab->root_fd, "away", 0755), 0);
	assert_int_equal(mkdirat(lab->root_fd, "plain", 0755), 0);
	assert_true(!HAS_LINKS || symlinkat("away", lab->root_fd, "esc") == 0);
	lab_make(lab, "away/.git", "gitdir: ../.git/modules/m\n", 0644);
	lab_make(lab, "away/in/.git", "gitdir: ../../.git/modules/m\n", 0644);
	lab_record(lab);
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		char text[128];
		snprintf(text, sizeof(text), "[core]\nworktree = %s\n", values[i]);
		lab_make(lab, ".git/modules/m/config", text, 0644);
		lab_make(lab, "m/.git", "gitdir: ../.git/modules/m\n", 0644);
		lab_check(lab, true);
		if (lab_exists(lab, ".git/modules/m/config") || lab_exists(lab, "m/.git"))
			fail_msg("%s is kept", values[i]);
	}
	lab_make(lab, ".git/modules/m/config", "[core]\nworktree = ../../../m\n", 0644);
	lab_make(lab, "m/.git", "gitdir: ../.git/modules/m\n", 0644);
	lab_make(lab, "n/.git", "gitdir: ../.git/modules/m\n", 0644);
	lab_check(lab, true);
	assert_true(lab_exists(lab, ".git/modules/m/config"));
	assert_true(lab_exists(lab, "m/.git"));
	assert_false(lab_exists(lab, "n/.git"));
}

/* A `.git` file that is as it was, and where it leads is not. One that was never guarded is its owner's. */
static void test_repository_swapped(void **state)
{
	struct lab *lab = *state;
	lab_make(lab, ".git/modules/m/config", "", 0644);
	lab_make(lab, "m/.git", "gitdir: ../.git/modules/m\n", 0644);
	lab_make(lab, "own/.git", "gitdir: ../elsewhere\n", 0644);
	lab_make(lab, "elsewhere/config", "[core]\nfsmonitor = /x\n", 0644);
	lab_record(lab);
	lab_check(lab, true);
	assert_int_equal(lab->planted.count, 0);
	assert_int_equal(renameat(lab->root_fd, ".git/modules/m", lab->root_fd, "old"), 0);
	assert_true(!HAS_LINKS || symlinkat("../../elsewhere", lab->root_fd, ".git/modules/m") == 0);
	lab_check(lab, true);
	lab_assert_moved(lab, "m/.git", "gitdir: ../.git/modules/m\n");
	if (HAS_LINKS)
		lab_assert_moved(lab, ".git/modules/m", "../../elsewhere");
	assert_int_equal(lab->planted.count, 1 + HAS_LINKS);
	assert_true(lab_exists(lab, "own/.git"));
}

/* Hooks that pass themselves off as a submodule's repository can be moved away and back, by two commands even. */
static void test_hooks_like_a_repository(void **state)
{
	const char *const aside[] = { ".git/modules/sub/hooks", ".git/modules/sub" };
	struct lab *lab = *state;
	lab_make(lab, ".git/modules/sub/hooks/HEAD", "ref: refs/heads/main\n", 0644);
	lab_record(lab);
	lab_make(lab, ".git/modules/sub/hooks/HEAD", "ref: refs/heads/other\n", 0644);
	lab_check(lab, true);
	assert_int_equal(lab->planted.count, 0);
	for (size_t i = 0; i < sizeof(aside) / sizeof(*aside); i++) {
		lab_make(lab, ".git/modules/sub/hooks/update", "x", 0755);
		lab_record(lab);
		assert_int_equal(renameat(lab->root_fd, aside[i], lab->root_fd, "away"), 0);
		assert_int_equal(renameat(lab->root_fd, "away", lab->root_fd, aside[i]), 0);
		lab_check(lab, true);
		lab_assert_moved(lab, ".git/modules/sub/hooks/update", "x");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LAB_ROW(test_ways_to_a_configuration),
		LAB_ROW(test_worktrees_elsewhere),
		LAB_ROW(test_repository_swapped),
		LAB_ROW(test_hooks_like_a_repository),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

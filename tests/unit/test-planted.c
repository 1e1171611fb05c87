/* What a command planted: hooks and configuration that would run go, what git itself makes stays. */
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

#include <cmocka.h>

#include "base/remove.h"
#include "cordon-internal.h"
#include "planted-lab.h"
#include "paths/planted/git-config.h"
#include "skip.h"
#include "system-has.h"

static void test_git_init_is_kept(void **state)
{
	struct lab *lab = *state;
	char command[256];
	lab_record(lab);
	snprintf(command, sizeof(command), "HOME=/nonexistent git init -q %s/new 2>&1", lab->root);
	if (system(command))
		skip_cannot("git", "it is to make a repository");
	lab_check(lab, true);
	assert_int_equal(lab->planted.count, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_string_equal(lab->planted.items[i].note, "created by the command; kept");
		assert_null(lab->planted.items[i].quarantined_as);
	}
	assert_true(lab_exists(lab, "new/.git/config"));
	assert_true(lab_exists(lab, "new/.git/hooks"));
}

static void test_hooks(void **state)
{
	struct lab *lab = *state;
	const char *second = HAS_SPECIAL_FILES ? ".git/hooks/new\nline" : ".git/hooks/new line";
	lab_record(lab);
	lab_make(lab, ".git/hooks/pre-commit", "#!/bin/sh\n", 0755);
	lab_make(lab, ".git/hooks/post-merge", "not executable", 0644);
	lab_make(lab, ".git/hooks/pre-push.sample", "sample", 0755);
	lab_make(lab, "other", "linked", 0755);
	lab_make(lab, "elsewhere/.git/hooks/x", "x", HAS_MODES ? 0111 : 0644);
	assert_true(!HAS_LINKS || symlinkat("/bin/true", lab->root_fd, ".git/hooks/post-checkout") == 0);
	assert_int_equal(linkat(lab->root_fd, "other", lab->root_fd, second, 0), 0);
	lab_check(lab, true);
	lab_assert_moved(lab, ".git/hooks/pre-commit", "#!/bin/sh\n");
	if (HAS_LINKS)
		lab_assert_moved(lab, ".git/hooks/post-checkout", "/bin/true");
	lab_assert_moved(lab, second, "linked");
	const struct planted_file *unreadable = lab_get(lab, "elsewhere/.git/hooks/x");
	assert_non_null(unreadable);
	assert_non_null(unreadable->quarantined_as);
	/* Without a bit for it, git runs every hook. */
	assert_int_equal(lab_exists(lab, ".git/hooks/post-merge"), HAS_MODES);
	assert_true(lab_exists(lab, ".git/hooks/pre-push.sample"));
	struct stat stat;
	assert_int_equal(fstatat(lab->root_fd, "other", &stat, 0), 0);
	assert_true(!HAS_MODES || (stat.st_mode & 0777) == 0755);
	assert_int_equal(lab->planted.count, 4);
}

static void test_kept_by_policy(void **state)
{
	struct lab *lab = *state;
	lab_record(lab);
	lab_make(lab, ".git/hooks/pre-commit", "x", 0755);
	lab_check(lab, false);
	assert_string_equal(lab_get(lab, ".git/hooks/pre-commit")->note, "a git hook that would run; kept");
	assert_true(lab_exists(lab, ".git/hooks/pre-commit"));
}

static void test_links_in_place(void **state)
{
	struct lab *lab = *state;
	char target[128];
	lab_make(lab, "evil/pre-commit", "x", 0755);
	lab_make(lab, "evil/config", "[core]\nfsmonitor=/x\n", 0644);
	lab_make(lab, ".git/HEAD", "", 0644);
	lab_record(lab);
	snprintf(target, sizeof(target), "%s/evil", lab->root);
	assert_int_equal(symlinkat(target, lab->root_fd, ".git/hooks"), 0);
	assert_int_equal(symlinkat("../evil/config", lab->root_fd, ".git/config"), 0);
	lab_check(lab, true);
	lab_assert_moved(lab, ".git/hooks", target);
	lab_assert_moved(lab, ".git/config", "../evil/config");
	assert_true(lab_exists(lab, "evil/pre-commit"));
	assert_true(lab_exists(lab, "evil/config"));
}

/* Where git writes, and on the way to what it reads. What was there before is its owner's. */
static void test_links_in_a_repository(void **state)
{
	struct lab *lab = *state;
	static const char *const gone[] = { ".git/COMMIT_EDITMSG",    ".git/logs/HEAD",
		                            ".git/modules/lib",       ".git/modules/a/b",
		                            ".git/refs/heads/config", "x/.git/modules",
		                            "x/.git/worktrees",       ".git/old" };
	lab_make(lab, ".git/logs/x", "", 0644);
	lab_make(lab, ".git/modules/a/HEAD", "", 0644);
	lab_make(lab, ".git/refs/heads/x", "", 0644);
	lab_make(lab, ".git/annex/x", "", 0644);
	lab_make(lab, ".git/hooks/x", "", 0644);
	lab_make(lab, "x/.git/x", "", 0644);
	assert_int_equal(symlinkat("../elsewhere", lab->root_fd, ".git/objects"), 0);
	assert_int_equal(symlinkat("../mine", lab->root_fd, ".git/old"), 0);
	lab_record(lab);
	assert_int_equal(unlinkat(lab->root_fd, ".git/old", 0), 0);
	for (size_t i = 0; i < ARRAY_SIZE(gone); i++)
		assert_int_equal(symlinkat("/evil", lab->root_fd, gone[i]), 0);
	assert_int_equal(symlinkat("/evil", lab->root_fd, ".git/hooks/update"), 0);
	assert_int_equal(symlinkat("refs/heads/main", lab->root_fd, ".git/HEAD"), 0);
	assert_int_equal(symlinkat("x", lab->root_fd, ".git/annex/y"), 0);
	lab_check(lab, false);
	assert_int_equal(lab->planted.count, ARRAY_SIZE(gone) + 1);
	lab_check(lab, true);
	for (size_t i = 0; i < ARRAY_SIZE(gone); i++)
		lab_assert_moved(lab, gone[i], "/evil");
	lab_assert_moved(lab, ".git/hooks/update", "/evil");
	assert_int_equal(lab->planted.count, ARRAY_SIZE(gone) + 1);
	assert_true(lab_exists(lab, ".git/objects"));
}

static void test_config_and_others(void **state)
{
	struct lab *lab = *state;
	static char large[GIT_CONFIG_SIZE_MAX + 2];
	memset(large, '#', sizeof(large) - 1);
	lab_record(lab);
	lab_make(lab, "a/.git/config", "[core]\n\tsshCommand = evil\n", 0644);
	lab_make(lab, "b/.git/config", "[user]\n\tname = x\n", 0644);
	lab_make(lab, "c/.git/config", large, 0644);
	lab_make(lab, "d/.git/modules/s/config", "[core]\n\tworktree = ../../../s\n", 0644);
	lab_make(lab, "d/s/.git", "gitdir: ../.git/modules/s\n", 0644);
	lab_make(lab, "e/.git/modules/s/config", "[core]\n\tworktree = ../../../../../s\n", 0644);
	lab_make(lab, "f/.git/config", "[core]\npager = x\n", HAS_MODES ? 0 : 0644);
	lab_make(lab, ".cordon.toml", "[sandbox]\n", 0644);
	lab_make(lab, "IDENTITY.md", "me", 0644);
	lab_make(lab, "h/.cordon.toml/x", "no policy, and yet it refuses what comes", 0644);
	assert_int_equal(mkdirat(lab->root_fd, "g", 0755), 0);
	assert_int_equal(mkdirat(lab->root_fd, "g/.git", 0755), 0);
	assert_true(!HAS_SPECIAL_FILES || mkfifoat(lab->root_fd, "g/.git/config", 0600) == 0);
	lab_check(lab, true);
	lab_assert_moved(lab, "a/.git/config", "[core]\n\tsshCommand = evil\n");
	assert_non_null(strstr(lab_get(lab, "a/.git/config")->note, "core.sshcommand would run a program"));
	assert_null(lab_get(lab, "b/.git/config")->quarantined_as);
	assert_non_null(lab_get(lab, "c/.git/config")->quarantined_as);
	assert_null(lab_get(lab, "d/.git/modules/s/config")->quarantined_as);
	assert_null(lab_get(lab, "d/s/.git")->quarantined_as);
	assert_non_null(lab_get(lab, "e/.git/modules/s/config")->quarantined_as);
	assert_non_null(lab_get(lab, "f/.git/config")->quarantined_as);
	if (HAS_SPECIAL_FILES)
		assert_non_null(lab_get(lab, "g/.git/config")->quarantined_as);
	lab_assert_moved(lab, ".cordon.toml", "[sandbox]\n");
	assert_non_null(lab_get(lab, "h/.cordon.toml")->quarantined_as);
	assert_false(lab_exists(lab, "h/.cordon.toml"));
	assert_null(lab_get(lab, "IDENTITY.md")->quarantined_as);
	assert_int_equal(lab->planted.count, 10 + HAS_SPECIAL_FILES);
}

/* Under a driver that cannot keep what exists from change. */
static void test_changed(void **state)
{
	struct lab *lab = *state;
	lab_make(lab, ".git/hooks/pre-commit", "mine", 0755);
	lab_make(lab, ".git/hooks/pre-push", "mine too", 0755);
	lab_make(lab, ".git/config", "[filter \"lfs\"]\nclean = git-lfs\n", 0644);
	lab_make(lab, "b/.git/config", "[user]\nname = x\n", 0644);
	lab_make(lab, "c/.git/config", "[filter \"lfs\"]\nclean = git-lfs\n", 0644);
	lab_make(lab, ".cordon.toml", "a", 0644);
	for (int bound = 0; bound < 2; bound++) {
		lab_record(lab);
		lab_check(lab, true);
		assert_int_equal(lab->planted.count, 0);
	}
	lab_make(lab, ".git/hooks/pre-commit", "evil", 0755);
	lab_make(lab, ".git/hooks/update", "evil, too", 0755);
	lab_make(lab, ".git/config", "[filter \"lfs\"]\nclean = git-lfs\n[user]\nname = y\n", 0644);
	lab_make(lab, "b/.git/config", "[user]\nname = x\n[core]\npager = evil\n", 0644);
	lab_make(lab, ".cordon.toml", "b", 0644);
	lab_check(lab, true);
	lab_assert_moved(lab, ".git/hooks/pre-commit", "evil");
	lab_assert_moved(lab, ".git/hooks/update", "evil, too");
	assert_true(lab_exists(lab, ".git/hooks/pre-push"));
	assert_string_equal(lab_get(lab, ".git/config")->note, "changed by the command; kept");
	assert_non_null(lab_get(lab, "b/.git/config")->quarantined_as);
	assert_null(lab_get(lab, "c/.git/config"));
	assert_string_equal(lab_get(lab, ".cordon.toml")->note, "changed by the command; kept");
	assert_int_equal(lab->planted.count, 5);
}

/* What an owner's configuration runs is its owner's, but nothing that only looks like it. */
static void test_owners_settings(void **state)
{
	struct lab *lab = *state;
	static char large[GIT_CONFIG_SIZE_MAX + 2], value[5000];
	memset(large, '#', sizeof(large) - 1);
	snprintf(value, sizeof(value), "[core]\npager = %04500d\n", 1);
	lab_make(lab, "a/.git/config", "[core]\nsshCommand = ssh\n[credential \"x\"]\nhelper = store\n", 0644);
	lab_make(lab, "b/.git/config", large, 0644);
	lab_make(lab, "c/.git/config", value, 0644);
	lab_make(lab, "d/.git/config", "[core]\npager = less\neditor = vi\n", 0644);
	lab_record(lab);
	lab_make(lab, "a/.git/config", "[core]\nsshCommand = \"ssh\\ncredential.x.helper\\nstore\"\n", 0644);
	lab_make(lab, "b/.git/config", large, 0644);
	value[strlen(value) - 2] = '2';
	lab_make(lab, "c/.git/config", value, 0644);
	lab_make(lab, "d/.git/config", "[core]\neditor = vi\n[user]\nname = x\n[core]\npager = less\n", 0644);
	lab_check(lab, true);
	for (const char *name = "abc"; *name; name++) {
		char path[] = "a/.git/config";
		path[0] = *name;
		if (!lab_get(lab, path) || !lab_get(lab, path)->quarantined_as)
			fail_msg("%s is kept", path);
	}
	assert_null(lab_get(lab, "d/.git/config")->quarantined_as);
	lab_make(lab, "d/.git/config", "[core]\npager = less\neditor = emacs\n", 0644);
	lab_check(lab, true);
	assert_non_null(lab_get(lab, "d/.git/config")->quarantined_as);
}

/* In a repository that was there, new remotes and branches are fine, and those of its owner stay as they are. */
static void test_redirected(void **state)
{
	struct lab *lab = *state;
	static const char owners[] =
		"[remote \"origin\"]\nurl = https://example.org/x\n[branch \"main\"]\nremote = origin\n";
	char text[512];
	lab_make(lab, "a/.git/config", owners, 0644);
	lab_make(lab, "b/.git/config", owners, 0644);
	lab_make(lab, "c/.git/config", owners, 0644);
	lab_record(lab);
	snprintf(text, sizeof(text), "%s[remote \"fork\"]\nurl = x:y\n[branch \"b\"]\nremote = fork\n", owners);
	lab_make(lab, "a/.git/config", text, 0644);
	snprintf(text, sizeof(text), "%s[remote \"origin\"]\npushurl = x:y\n", owners);
	lab_make(lab, "b/.git/config", text, 0644);
	lab_make(lab, "c/.git/config.worktree", "[remote \"origin\"]\nurl = x:y\n", 0644);
	lab_make(lab, "d/.git/config", "[remote \"origin\"]\nurl = x:y\n", 0644);
	lab_check(lab, true);
	assert_null(lab_get(lab, "a/.git/config")->quarantined_as);
	assert_null(lab_get(lab, "d/.git/config")->quarantined_as);
	assert_non_null(lab_get(lab, "c/.git/config.worktree")->quarantined_as);
	assert_non_null(
		strstr(lab_get(lab, "b/.git/config")->note, "remote.origin.pushurl would make git push elsewhere"));
}

/* What a person had in progress is theirs, if no command changed it. */
static void test_operations_in_progress(void **state)
{
	struct lab *lab = *state;
	static const char opts[] = "[options]\nstrategy = evil\n", todo[] = "pick 1\nexec make\n";
	lab_make(lab, "a/.git/config", "", 0644);
	lab_make(lab, "a/.git/rebase-merge/git-rebase-todo", todo, 0644);
	lab_make(lab, "a/.git/rebase-merge/strategy", "mine\n", 0644);
	lab_make(lab, "a/.git/worktrees/w/commondir", "../..\n", 0644);
	lab_record(lab);
	lab_check(lab, true);
	assert_int_equal(lab->planted.count, 0);
	lab_make(lab, "a/.git/rebase-merge/strategy", "evil\n", 0644);
	lab_make(lab, "a/.git/worktrees/w/sequencer/opts", opts, 0644);
	lab_make(lab, "b/.git/config", "", 0644);
	lab_make(lab, "b/.git/modules/m/config", "", 0644);
	lab_make(lab, "b/.git/modules/m/rebase-apply/apply-opt", "'--build-fake-ancestor=x'", 0644);
	lab_make(lab, "b/.git/rebase-merge/git-rebase-todo", "pick 1\n", 0644);
	lab_check(lab, true);
	lab_assert_moved(lab, "a/.git/rebase-merge/strategy", "evil\n");
	lab_assert_moved(lab, "a/.git/worktrees/w/sequencer/opts", opts);
	lab_assert_moved(lab, "b/.git/modules/m/rebase-apply/apply-opt", "'--build-fake-ancestor=x'");
	assert_true(lab_exists(lab, "a/.git/rebase-merge/git-rebase-todo"));
	assert_true(lab_exists(lab, "b/.git/rebase-merge/git-rebase-todo"));
	assert_int_equal(lab->planted.harmful, 3);
}

/* A second name, made while the first was new: what is written by it later changes the first, whatever keeps that. */
static void test_second_names(void **state)
{
	struct lab *lab = *state;
	lab_make(lab, "a/.git/config", "[user]\nname = x\n", 0644);
	lab_make(lab, "a/.git/hooks/pre-commit", "x", 0644);
	assert_int_equal(linkat(lab->root_fd, "a/.git/config", lab->root_fd, "c", 0), 0);
	assert_int_equal(linkat(lab->root_fd, "a/.git/hooks/pre-commit", lab->root_fd, "h", 0), 0);
	lab_record(lab);
	lab_check(lab, true);
	assert_int_equal(lab->planted.count, 0);
	lab_make(lab, "c", "[core]\npager = evil\n", 0644);
	lab_make(lab, "h", "evil", 0755);
	lab_make(lab, "b/.git/config", "[user]\nname = x\n", 0644);
	lab_make(lab, "b/.git/hooks/pre-commit", "x", 0644);
	assert_int_equal(linkat(lab->root_fd, "b/.git/config", lab->root_fd, "c2", 0), 0);
	assert_int_equal(linkat(lab->root_fd, "b/.git/hooks/pre-commit", lab->root_fd, "h2", 0), 0);
	lab_check(lab, true);
	lab_assert_moved(lab, "a/.git/config", "[core]\npager = evil\n");
	lab_assert_moved(lab, "a/.git/hooks/pre-commit", "evil");
	lab_assert_moved(lab, "b/.git/config", "[user]\nname = x\n");
	lab_assert_moved(lab, "b/.git/hooks/pre-commit", "x");
	assert_int_equal(lab->planted.count, 4);
}

static void test_other_filesystem(void **state)
{
	struct lab *lab = *state;
	char other[] = "/dev/shm/cordon-planted-XXXXXX";
	if (!mkdtemp(other))
		skip_cannot("dev-shm", "another filesystem is needed");
	close(lab->quarantine_fd);
	lab->quarantine_fd = open(other, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	lab_record(lab);
	lab_make(lab, ".git/hooks/pre-commit", "content", 0755);
	lab_make(lab, ".git/hooks/pre-push", "to be run only", 0111);
	lab_make(lab, ".cordon.toml/a/b/file", "deep", 0111);
	lab_make(lab, ".cordon.toml/1/2/3/4/5/6/7/8/9/1/2/3/4/5/6/7/8/9/1/2/3/4/5/6/7/8/9/1/2/3/4/5/6/7/8/9/file",
	         "too deep", 0644);
	assert_int_equal(symlinkat("/etc", lab->root_fd, ".cordon.toml/a/link"), 0);
	lab_make(lab, "sub/.git/HEAD", "", 0644);
	assert_int_equal(mkfifoat(lab->root_fd, "sub/.git/config", 0600), 0);
	assert_int_equal(mkfifoat(lab->root_fd, ".cordon.toml/a/fifo", 0600), 0);
	assert_int_equal(fchmodat(lab->root_fd, ".cordon.toml/a/b", 0, 0), 0);
	lab_check(lab, true);
	lab_assert_moved(lab, ".git/hooks/pre-commit", "content");
	lab_assert_moved(lab, ".git/hooks/pre-push", "to be run only");
	assert_true(!lab_exists(lab, ".cordon.toml") && !lab_exists(lab, "sub/.git/config"));
	char path[256], text[8] = "";
	snprintf(path, sizeof(path), "%s/a/b/file", lab_get(lab, ".cordon.toml")->quarantined_as);
	int file = openat(lab->quarantine_fd, path, O_RDONLY | O_CLOEXEC);
	struct stat stat;
	assert_true(fstat(file, &stat) == 0 && (stat.st_mode & 07777) == 0600 && read(file, text, sizeof(text)) == 4);
	assert_string_equal(text, "deep");
	close(file);
	assert_int_equal(fstatat(lab->quarantine_fd, lab_get(lab, "sub/.git/config")->quarantined_as, &stat,
	                         AT_SYMLINK_NOFOLLOW),
	                 0);
	assert_true(S_ISFIFO(stat.st_mode));
	assert_int_equal(remove_tree(AT_FDCWD, other), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LAB_ROW(test_git_init_is_kept),
		LAB_ROW(test_hooks),
		LAB_ROW(test_kept_by_policy),
		LAB_ROW(test_links_in_place),
		LAB_ROW(test_links_in_a_repository),
		LAB_ROW(test_config_and_others),
		LAB_ROW(test_changed),
		LAB_ROW(test_owners_settings),
		LAB_ROW(test_redirected),
		LAB_ROW(test_operations_in_progress),
		LAB_ROW(test_second_names),
		LAB_ROW(test_other_filesystem),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

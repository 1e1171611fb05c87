/* What a command planted: hooks and configuration that would run go, what git itself makes stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cordon.h"
#include "policy/capability.h"
#include "session/git-config.h"
#include "session/git-file.h"
#include "session/planted.h"
#include "skip.h"

struct repository {
	char root[64], quarantine[64];
	int root_fd, quarantine_fd;
	struct arena arena;
	struct capability_set set;
	struct names before_names, after_names;
	struct planted_before before;
	struct planted planted;
};

static int setup_in(void **state, const char *directory)
{
	struct repository *test = calloc(1, sizeof(*test));
	assert_non_null(test);
	snprintf(test->root, sizeof(test->root), "%s/cordon-planted-XXXXXX", directory);
	strcpy(test->quarantine, test->root);
	assert_non_null(mkdtemp(test->root));
	assert_non_null(mkdtemp(test->quarantine));
	test->root_fd = open(test->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	test->quarantine_fd = open(test->quarantine, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(capability_baseline(&test->arena, true, &test->set), 0);
	assert_int_equal(strings_add(&test->arena, &test->set.protect, "IDENTITY.md"), 0);
	*state = test;
	return 0;
}

static int setup(void **state)
{
	return setup_in(state, "/tmp");
}

/* For what takes a disk's filesystem long. */
static int setup_in_memory(void **state)
{
	return setup_in(state, access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
}

static int teardown(void **state)
{
	struct repository *test = *state;
	char command[256];
	snprintf(command, sizeof(command), "chmod -R u+rwX %s; rm -rf %s %s", test->root, test->root, test->quarantine);
	int status = system(command);
	close(test->root_fd);
	close(test->quarantine_fd);
	arena_free(&test->arena);
	free(test);
	return status;
}

static void find(struct repository *test, struct names *ret_names)
{
	struct name_rules rules = { NULL, &test->set.protect, &test->set.exempt };
	struct cordon_error err;
	assert_int_equal(names_find(&test->arena, test->root_fd, test->root, &rules, &(struct names_keep){ 0 }, 800, ret_names, &err), 0);
}

static void record(struct repository *test, uint64_t budget_us)
{
	struct cordon_error err;
	find(test, &test->before_names);
	assert_int_equal(planted_record(&test->arena, test->root_fd, test->root, &test->before_names, budget_us, &test->before,
	                                &err), 0);
}

static void check(struct repository *test, bool move)
{
	struct cordon_error err;
	do
		find(test, &test->after_names);
	while (planted_unlock(test->root_fd, &test->before_names, &test->after_names));
	assert_int_equal(planted_check(&test->arena, test->root_fd, &test->before, &test->after_names,
	                               move ? test->quarantine_fd : -1, &test->planted, &err), 0);
}

static const struct planted_file *get(const struct repository *test, const char *path)
{
	for (size_t i = 0; i < test->planted.count; i++)
		if (!strcmp(test->planted.items[i].path, path))
			return &test->planted.items[i];
	return NULL;
}

static void make(const struct repository *test, const char *path, const char *text, mode_t mode)
{
	char part[256];
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
		assert_true(mkdirat(test->root_fd, part, 0755) == 0 || errno == EEXIST);
	}
	int fd = openat(test->root_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static bool exists(const struct repository *test, const char *path)
{
	return faccessat(test->root_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Moved: gone from the workspace, whole in quarantine, not executable. */
static void assert_moved(const struct repository *test, const char *path, const char *text)
{
	const struct planted_file *file = get(test, path);
	char content[256];
	struct stat stat;
	assert_non_null(file);
	assert_non_null(strstr(file->note, "moved to quarantine"));
	assert_false(exists(test, path));
	assert_int_equal(fstatat(test->quarantine_fd, file->quarantined_as, &stat, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISREG(stat.st_mode));
	assert_int_equal(stat.st_mode & 07777, 0600);
	int fd = openat(test->quarantine_fd, file->quarantined_as, O_RDONLY | O_CLOEXEC);
	ssize_t length = read(fd, content, sizeof(content) - 1);
	close(fd);
	assert_int_equal(length, strlen(text));
	assert_memory_equal(content, text, length);
}

static void test_git_init_is_kept(void **state)
{
	struct repository *test = *state;
	char command[256];
	record(test, UINT64_MAX);
	snprintf(command, sizeof(command), "HOME=/nonexistent git init -q %s/new 2>&1", test->root);
	if (system(command))
		skip_cannot("git", "it is to make a repository");
	check(test, true);
	assert_int_equal(test->planted.count, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_string_equal(test->planted.items[i].note, "created by the command; kept");
		assert_null(test->planted.items[i].quarantined_as);
	}
	assert_true(exists(test, "new/.git/config"));
	assert_true(exists(test, "new/.git/hooks"));
}

static void test_hooks(void **state)
{
	struct repository *test = *state;
	record(test, UINT64_MAX);
	make(test, ".git/hooks/pre-commit", "#!/bin/sh\n", 0755);
	make(test, ".git/hooks/post-merge", "not executable", 0644);
	make(test, ".git/hooks/pre-push.sample", "sample", 0755);
	make(test, "other", "linked", 0755);
	make(test, "elsewhere/.git/hooks/x", "x", 0111);
	assert_int_equal(symlinkat("/bin/true", test->root_fd, ".git/hooks/post-checkout"), 0);
	assert_int_equal(linkat(test->root_fd, "other", test->root_fd, ".git/hooks/new\nline", 0), 0);
	check(test, true);
	assert_moved(test, ".git/hooks/pre-commit", "#!/bin/sh\n");
	assert_moved(test, ".git/hooks/post-checkout", "/bin/true");
	assert_moved(test, ".git/hooks/new\nline", "linked");
	const struct planted_file *unreadable = get(test, "elsewhere/.git/hooks/x");
	assert_non_null(unreadable);
	assert_non_null(unreadable->quarantined_as);
	assert_true(exists(test, ".git/hooks/post-merge"));
	assert_true(exists(test, ".git/hooks/pre-push.sample"));
	struct stat stat;
	assert_int_equal(fstatat(test->root_fd, "other", &stat, 0), 0);
	assert_int_equal(stat.st_mode & 0777, 0755);
	assert_int_equal(test->planted.count, 4);
}

static void test_kept_by_policy(void **state)
{
	struct repository *test = *state;
	record(test, UINT64_MAX);
	make(test, ".git/hooks/pre-commit", "x", 0755);
	check(test, false);
	assert_string_equal(get(test, ".git/hooks/pre-commit")->note, "a git hook that would run; kept");
	assert_true(exists(test, ".git/hooks/pre-commit"));
}

static void test_links_in_place(void **state)
{
	struct repository *test = *state;
	char target[128];
	make(test, "evil/pre-commit", "x", 0755);
	make(test, "evil/config", "[core]\nfsmonitor=/x\n", 0644);
	make(test, ".git/HEAD", "", 0644);
	record(test, UINT64_MAX);
	snprintf(target, sizeof(target), "%s/evil", test->root);
	assert_int_equal(symlinkat(target, test->root_fd, ".git/hooks"), 0);
	assert_int_equal(symlinkat("../evil/config", test->root_fd, ".git/config"), 0);
	check(test, true);
	assert_moved(test, ".git/hooks", target);
	assert_moved(test, ".git/config", "../evil/config");
	assert_true(exists(test, "evil/pre-commit"));
	assert_true(exists(test, "evil/config"));
}

static void test_config_and_others(void **state)
{
	struct repository *test = *state;
	static char large[GIT_CONFIG_SIZE_MAX + 2];
	memset(large, '#', sizeof(large) - 1);
	record(test, UINT64_MAX);
	make(test, "a/.git/config", "[core]\n\tsshCommand = evil\n", 0644);
	make(test, "b/.git/config", "[user]\n\tname = x\n", 0644);
	make(test, "c/.git/config", large, 0644);
	make(test, "d/.git/modules/s/config", "[core]\n\tworktree = ../../../s\n", 0644);
	make(test, "d/s/.git", "gitdir: ../.git/modules/s\n", 0644);
	make(test, "e/.git/modules/s/config", "[core]\n\tworktree = ../../../../../s\n", 0644);
	make(test, "f/.git/config", "[core]\npager = x\n", 0000);
	make(test, ".cordon.toml", "[sandbox]\n", 0644);
	make(test, "IDENTITY.md", "me", 0644);
	make(test, "h/.cordon.toml/x", "no policy, and yet it refuses what comes", 0644);
	assert_int_equal(mkdirat(test->root_fd, "g", 0755), 0);
	assert_int_equal(mkdirat(test->root_fd, "g/.git", 0755), 0);
	assert_int_equal(mkfifoat(test->root_fd, "g/.git/config", 0600), 0);
	check(test, true);
	assert_moved(test, "a/.git/config", "[core]\n\tsshCommand = evil\n");
	assert_non_null(strstr(get(test, "a/.git/config")->note, "core.sshcommand would run a program"));
	assert_null(get(test, "b/.git/config")->quarantined_as);
	assert_non_null(get(test, "c/.git/config")->quarantined_as);
	assert_null(get(test, "d/.git/modules/s/config")->quarantined_as);
	assert_null(get(test, "d/s/.git")->quarantined_as);
	assert_non_null(get(test, "e/.git/modules/s/config")->quarantined_as);
	assert_non_null(get(test, "f/.git/config")->quarantined_as);
	assert_non_null(get(test, "g/.git/config")->quarantined_as);
	assert_moved(test, ".cordon.toml", "[sandbox]\n");
	assert_non_null(get(test, "h/.cordon.toml")->quarantined_as);
	assert_false(exists(test, "h/.cordon.toml"));
	assert_null(get(test, "IDENTITY.md")->quarantined_as);
	assert_int_equal(test->planted.count, 11);
}

/* Rights taken away so that nobody can look, list or move: given back first. */
static void test_locked(void **state)
{
	struct repository *test = *state;
	record(test, UINT64_MAX);
	make(test, "a/.git/hooks/pre-commit", "x", 0755);
	assert_int_equal(fchmodat(test->root_fd, "a/.git/hooks", 0555, 0), 0);
	make(test, "b/.git/hooks/pre-commit", "y", 0755);
	assert_int_equal(fchmodat(test->root_fd, "b/.git/hooks", 0111, 0), 0);
	assert_int_equal(fchmodat(test->root_fd, "b/.git", 0111, 0), 0);
	assert_int_equal(fchmodat(test->root_fd, "b", 0111, 0), 0);
	check(test, true);
	assert_moved(test, "a/.git/hooks/pre-commit", "x");
	assert_moved(test, "b/.git/hooks/pre-commit", "y");
}

/* A link covers nothing but what it leads to; any other masked name, what lies in it. */
static void test_covered(void **state)
{
	struct name before[] = {
		{ .path = "a/b.pem", .is_directory = true }, { .path = "link", .is_link = true, .inode = 1, .ctime_ns = 2 },
	};
	const struct names names = { .items = before, .count = 2 };
	const struct {
		struct name name;
		bool covered;
	} rows[] = {
		{ { .path = "a/b.pem" }, true }, { { .path = "a/b.pem/c/d" }, true }, { { .path = "a" }, false },
		{ { .path = "a/b.pem2" }, false }, { { .path = "link", .is_link = true, .inode = 1, .ctime_ns = 2 }, true },
		{ { .path = "link", .is_link = true, .inode = 1, .ctime_ns = 3 }, false },
		{ { .path = "link", .is_directory = true, .inode = 1, .ctime_ns = 2 }, false }, { { .path = "link/c" }, false },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_int_equal(planted_was_covered(&names, &rows[i].name), rows[i].covered);
}

/* Under a driver that cannot keep what exists from change. */
static void test_changed(void **state)
{
	struct repository *test = *state;
	make(test, ".git/hooks/pre-commit", "mine", 0755);
	make(test, ".git/hooks/pre-push", "mine too", 0755);
	make(test, ".git/config", "[filter \"lfs\"]\nclean = git-lfs\n", 0644);
	make(test, "b/.git/config", "[user]\nname = x\n", 0644);
	make(test, "c/.git/config", "[filter \"lfs\"]\nclean = git-lfs\n", 0644);
	make(test, ".cordon.toml", "a", 0644);
	for (int bound = 0; bound < 2; bound++) {
		record(test, bound ? UINT64_MAX : 0);
		check(test, true);
		assert_int_equal(test->planted.count, 0);
	}
	make(test, ".git/hooks/pre-commit", "evil", 0755);
	make(test, ".git/hooks/update", "evil, too", 0755);
	make(test, ".git/config", "[filter \"lfs\"]\nclean = git-lfs\n[user]\nname = y\n", 0644);
	make(test, "b/.git/config", "[user]\nname = x\n[core]\npager = evil\n", 0644);
	make(test, ".cordon.toml", "b", 0644);
	check(test, true);
	assert_moved(test, ".git/hooks/pre-commit", "evil");
	assert_moved(test, ".git/hooks/update", "evil, too");
	assert_true(exists(test, ".git/hooks/pre-push"));
	assert_string_equal(get(test, ".git/config")->note, "changed by the command; kept");
	assert_non_null(get(test, "b/.git/config")->quarantined_as);
	assert_null(get(test, "c/.git/config"));
	assert_string_equal(get(test, ".cordon.toml")->note, "changed by the command; kept");
	assert_int_equal(test->planted.count, 5);
}

/* What an owner's configuration runs is its owner's, but nothing that only looks like it. */
static void test_owners_settings(void **state)
{
	struct repository *test = *state;
	static char large[GIT_CONFIG_SIZE_MAX + 2], value[5000];
	memset(large, '#', sizeof(large) - 1);
	snprintf(value, sizeof(value), "[core]\npager = %04500d\n", 1);
	make(test, "a/.git/config", "[core]\nsshCommand = ssh\n[credential \"x\"]\nhelper = store\n", 0644);
	make(test, "b/.git/config", large, 0644);
	make(test, "c/.git/config", value, 0644);
	make(test, "d/.git/config", "[core]\npager = less\neditor = vi\n", 0644);
	record(test, UINT64_MAX);
	make(test, "a/.git/config", "[core]\nsshCommand = \"ssh\\ncredential.x.helper\\nstore\"\n", 0644);
	make(test, "b/.git/config", large, 0644);
	value[strlen(value) - 2] = '2';
	make(test, "c/.git/config", value, 0644);
	make(test, "d/.git/config", "[core]\neditor = vi\n[user]\nname = x\n[core]\npager = less\n", 0644);
	check(test, true);
	for (const char *name = "abcd"; *name; name++) {
		char path[] = "a/.git/config";
		path[0] = *name;
		if (!get(test, path) || !get(test, path)->quarantined_as)
			fail_msg("%s is kept", path);
	}
	make(test, "d/.git/config", "[user]\nname = x\n[core]\npager = less\neditor = vi\n", 0644);
	check(test, true);
	assert_null(get(test, "d/.git/config")->quarantined_as);
}

/* Other ways than .git/config by which git comes to a configuration. */
static void test_ways_to_a_configuration(void **state)
{
	struct repository *test = *state;
	static const char evil[] = "[core]\nfsmonitor = /x\n", good[] = "[core]\nbare = false\n";
	char absolute[160];
	snprintf(absolute, sizeof(absolute), "gitdir: %s/.git/worktrees/w\n", test->root);
	record(test, UINT64_MAX);
	make(test, ".git/config", good, 0644);
	make(test, ".git/commondir", "../evil\n", 0644);
	make(test, ".git/config.worktree", evil, 0644);
	make(test, ".git/modules/a/b/config", evil, 0644);
	make(test, ".git/modules/a/b/hooks/pre-commit", "x", 0755);
	make(test, ".git/modules/a/b/refs/heads/config", "no configuration, a branch", 0644);
	make(test, ".git/modules/config/config", good, 0644);
	make(test, ".git/modules/src/hooks/HEAD", "ref: x\n", 0644);
	make(test, ".git/modules/.env/config", evil, 0644);
	make(test, ".git/modules/m/config", "[core]\nworktree = ../../../m\n", 0644);
	make(test, ".git/worktrees/w/commondir", "../..\n", 0644);
	make(test, ".git/worktrees/w/gitdir", "/anywhere/.git\n", 0644);
	make(test, ".git/worktrees/v/commondir", "../../../evil\n", 0644);
	make(test, ".git/worktrees/u/config", evil, 0644);
	make(test, ".git/modules/m/worktrees/t/commondir", "../..", 0644);
	make(test, "evil/config", evil, 0644);
	make(test, "m/.git", "gitdir: ../.git/modules/m\n", 0644);
	make(test, "w/.git", absolute, 0644);
	make(test, "t/.git", "gitdir: ../.git/modules/m/worktrees/t\n", 0644);
	make(test, "v/.git", "gitdir: ../.git/worktrees/v\n", 0644);
	make(test, "b/.git", "gitdir: ../.git/modules/a/b\n", 0644);
	make(test, "e/.git", "gitdir: ../evil\n", 0644);
	make(test, "n/.git", "gitdir: ../.git/modules/not-there\n", 0644);
	make(test, "d/.git/HEAD", "", 0644);
	make(test, "k/x", "", 0644);
	assert_int_equal(symlinkat("../evil", test->root_fd, "k/.git"), 0);
	check(test, true);
	static const char *const gone[] = { ".git/commondir", ".git/config.worktree", ".git/modules/a/b/config",
		".git/modules/a/b/hooks/pre-commit", ".git/worktrees/v/commondir", ".git/worktrees/u/config", "v/.git", "b/.git",
		"e/.git", "n/.git", "k/.git", ".git/modules/.env/config" };
	static const char *const kept[] = { ".git/config", ".git/modules/config/config", ".git/modules/m/config",
		".git/worktrees/w/commondir", ".git/worktrees/w/gitdir", ".git/modules/m/worktrees/t/commondir", "m/.git",
		"w/.git", "t/.git" };
	for (size_t i = 0; i < ARRAY_SIZE(gone); i++)
		if (!get(test, gone[i]) || !get(test, gone[i])->quarantined_as || exists(test, gone[i]))
			fail_msg("%s is kept", gone[i]);
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		if (!get(test, kept[i]) || get(test, kept[i])->harmful || !exists(test, kept[i]))
			fail_msg("%s is not kept", kept[i]);
	assert_int_equal(test->planted.count, ARRAY_SIZE(gone) + ARRAY_SIZE(kept));
	assert_int_equal(test->planted.harmful, ARRAY_SIZE(gone));
	const struct name *hooks = names_get(&test->after_names, NAME_PROTECTED, ".git/modules/src/hooks");
	assert_non_null(hooks);
	assert_true(planted_is_repository(test->root_fd, hooks));
	assert_false(planted_is_repository(test->root_fd, names_get(&test->after_names, NAME_PROTECTED, ".git/modules/a/b/hooks")));
}

/* A submodule's working tree is the directory that leads to it, and nothing that a link leads to. */
static void test_worktrees_elsewhere(void **state)
{
	struct repository *test = *state;
	static const char *const values[] = { "../../../esc", "../../../none", "../../../plain", "../../../esc/in", "../../..",
		"/tmp", "~/x", "../../../m\nworktree = ../../../esc" };
	assert_int_equal(mkdirat(test->root_fd, "away", 0755), 0);
	assert_int_equal(mkdirat(test->root_fd, "plain", 0755), 0);
	assert_int_equal(symlinkat("away", test->root_fd, "esc"), 0);
	make(test, "away/.git", "gitdir: ../.git/modules/m\n", 0644);
	make(test, "away/in/.git", "gitdir: ../../.git/modules/m\n", 0644);
	record(test, UINT64_MAX);
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		char text[128];
		snprintf(text, sizeof(text), "[core]\nworktree = %s\n", values[i]);
		make(test, ".git/modules/m/config", text, 0644);
		make(test, "m/.git", "gitdir: ../.git/modules/m\n", 0644);
		check(test, true);
		if (exists(test, ".git/modules/m/config") || exists(test, "m/.git"))
			fail_msg("%s is kept", values[i]);
	}
	make(test, ".git/modules/m/config", "[core]\nworktree = ../../../m\n", 0644);
	make(test, "m/.git", "gitdir: ../.git/modules/m\n", 0644);
	make(test, "n/.git", "gitdir: ../.git/modules/m\n", 0644);
	check(test, true);
	assert_true(exists(test, ".git/modules/m/config"));
	assert_true(exists(test, "m/.git"));
	assert_false(exists(test, "n/.git"));
}

/* Hooks that pass themselves off as a submodule's repository can be moved away and back, by two commands even. */
static void test_hooks_like_a_repository(void **state)
{
	const char *const aside[] = { ".git/modules/sub/hooks", ".git/modules/sub" };
	struct repository *test = *state;
	make(test, ".git/modules/sub/hooks/HEAD", "ref: refs/heads/main\n", 0644);
	record(test, UINT64_MAX);
	make(test, ".git/modules/sub/hooks/HEAD", "ref: refs/heads/other\n", 0644);
	check(test, true);
	assert_int_equal(test->planted.count, 0);
	for (size_t i = 0; i < sizeof(aside) / sizeof(*aside); i++) {
		make(test, ".git/modules/sub/hooks/update", "x", 0755);
		record(test, UINT64_MAX);
		assert_int_equal(renameat(test->root_fd, aside[i], test->root_fd, "away"), 0);
		assert_int_equal(renameat(test->root_fd, "away", test->root_fd, aside[i]), 0);
		check(test, true);
		assert_moved(test, ".git/modules/sub/hooks/update", "x");
	}
}

/* Where git looks if a `.git` is no repository any more: a directory above it that is one itself. */
static void test_repositories_above(void **state)
{
	struct repository *test = *state;
	static const char evil[] = "[core]\nworktree = .\nfsmonitor = /x\n";
	static const char *const grounds[] = { "", "a/", "a/b/" };
	char path[64];
	make(test, "a/b/.git/config", "", 0644);
	make(test, "a/b/.git/HEAD", "ref: refs/heads/main\n", 0644);
	make(test, "a/b/.git/objects/x", "", 0644);
	make(test, "a/b/.git/refs/x", "", 0644);
	make(test, "own/.git/config", "", 0644);
	make(test, "own/HEAD", "", 0644);
	make(test, "own/objects/x", "", 0644);
	make(test, "own/refs/x", "", 0644);
	make(test, "own/config", evil, 0644);
	make(test, "own/hooks/update", "mine", 0755);
	record(test, UINT64_MAX);
	check(test, true);
	assert_int_equal(test->planted.count, 0);
	assert_int_equal(unlinkat(test->root_fd, "a/b/.git/HEAD", 0), 0);
	for (size_t i = 0; i < ARRAY_SIZE(grounds); i++) {
		static const char *const files[] = { "HEAD", "objects/x", "refs/x", "hooks/pre-push.sample" };
		for (size_t j = 0; j < ARRAY_SIZE(files); j++) {
			snprintf(path, sizeof(path), "%s%s", grounds[i], files[j]);
			make(test, path, "", 0755);
		}
		snprintf(path, sizeof(path), "%sconfig", grounds[i]);
		make(test, path, i ? evil : "[core]\nbare = true\n", 0644);
	}
	check(test, true);
	assert_moved(test, "a/config", evil);
	assert_moved(test, "a/b/config", evil);
	assert_string_equal(get(test, "a/b/.git")->note, "was a git repository and is none any more; kept");
	assert_int_equal(test->planted.count, 3);
	/* In a further command, which finds such a repository. */
	record(test, UINT64_MAX);
	check(test, true);
	assert_int_equal(test->planted.count, 0);
	make(test, "config", evil, 0644);
	make(test, "hooks/update", "x", 0755);
	make(test, "a/b/commondir", "evil\n", 0644);
	make(test, "own/hooks/update", "other", 0755);
	check(test, true);
	assert_moved(test, "config", evil);
	assert_moved(test, "hooks/update", "x");
	assert_moved(test, "a/b/commondir", "evil\n");
	assert_moved(test, "own/hooks/update", "other");
	assert_true(exists(test, "own/config"));
	assert_int_equal(test->planted.count, 4);
}

/* A `.git` file that is as it was, and where it leads is not. One that was never guarded is its owner's. */
static void test_repository_swapped(void **state)
{
	struct repository *test = *state;
	make(test, ".git/modules/m/config", "", 0644);
	make(test, "m/.git", "gitdir: ../.git/modules/m\n", 0644);
	make(test, "own/.git", "gitdir: ../elsewhere\n", 0644);
	make(test, "elsewhere/config", "[core]\nfsmonitor = /x\n", 0644);
	record(test, UINT64_MAX);
	check(test, true);
	assert_int_equal(test->planted.count, 0);
	assert_int_equal(renameat(test->root_fd, ".git/modules/m", test->root_fd, "old"), 0);
	assert_int_equal(symlinkat("../../elsewhere", test->root_fd, ".git/modules/m"), 0);
	check(test, true);
	assert_moved(test, "m/.git", "gitdir: ../.git/modules/m\n");
	assert_int_equal(test->planted.count, 1);
	assert_true(exists(test, "own/.git"));
}

/* A second name, made while the first was new: what is written by it later changes the first, whatever keeps that. */
static void test_second_names(void **state)
{
	struct repository *test = *state;
	make(test, "a/.git/config", "[user]\nname = x\n", 0644);
	make(test, "a/.git/hooks/pre-commit", "x", 0644);
	assert_int_equal(linkat(test->root_fd, "a/.git/config", test->root_fd, "c", 0), 0);
	assert_int_equal(linkat(test->root_fd, "a/.git/hooks/pre-commit", test->root_fd, "h", 0), 0);
	record(test, UINT64_MAX);
	check(test, true);
	assert_int_equal(test->planted.count, 0);
	make(test, "c", "[core]\npager = evil\n", 0644);
	make(test, "h", "evil", 0755);
	make(test, "b/.git/config", "[user]\nname = x\n", 0644);
	make(test, "b/.git/hooks/pre-commit", "x", 0644);
	assert_int_equal(linkat(test->root_fd, "b/.git/config", test->root_fd, "c2", 0), 0);
	assert_int_equal(linkat(test->root_fd, "b/.git/hooks/pre-commit", test->root_fd, "h2", 0), 0);
	check(test, true);
	assert_moved(test, "a/.git/config", "[core]\npager = evil\n");
	assert_moved(test, "a/.git/hooks/pre-commit", "evil");
	assert_moved(test, "b/.git/config", "[user]\nname = x\n");
	assert_moved(test, "b/.git/hooks/pre-commit", "x");
	assert_int_equal(test->planted.count, 4);
}

/* More than can be judged: what was there before is judged first, and what is left over goes. */
static void test_too_many(void **state)
{
	struct repository *test = *state;
	enum { MANY = 10100 };
	make(test, "zz/.git/config", "[user]\nname = x\n", 0644);
	record(test, UINT64_MAX);
	for (int i = 0; i < MANY; i++) {
		char path[32];
		snprintf(path, sizeof(path), "d%05d/.git/config", i);
		make(test, path, "", 0644);
	}
	make(test, "zz/.git/config", "[user]\nname = y\n", 0644);
	check(test, true);
	assert_int_equal(test->planted.count, MANY + 1);
	assert_true(test->planted.harmful >= 101);
	assert_string_equal(get(test, "zz/.git/config")->note, "changed by the command; kept");
	assert_string_equal(get(test, "d10099/.git/config")->note, "too much to be judged; moved to quarantine");
	assert_false(exists(test, "d10099/.git/config"));
}

/* A hook among more entries than are looked at. */
static void test_hidden_in_a_crowd(void **state)
{
	struct repository *test = *state;
	make(test, ".git/hooks/0.sample", "", 0644);
	record(test, UINT64_MAX);
	make(test, ".git/hooks/pre-commit", "x", 0755);
	for (int i = 1; i < 10100; i++) {
		char path[48];
		snprintf(path, sizeof(path), ".git/hooks/%d.sample", i);
		assert_int_equal(linkat(test->root_fd, ".git/hooks/0.sample", test->root_fd, path, 0), 0);
	}
	make(test, ".git/hooks/sub/file", "y", 0644);
	int held = openat(test->root_fd, ".git/hooks", O_PATH | O_CLOEXEC), inner = openat(held, "sub", O_PATH | O_CLOEXEC);
	check(test, true);
	/* Another command may have it open still, but has no way into the quarantine by it. */
	assert_true(mkdirat(held, "new", 0700) < 0 && mkdirat(inner, "new", 0700) < 0);
	close(held);
	close(inner);
	assert_int_equal(test->planted.count, 1);
	assert_string_equal(get(test, ".git/hooks")->note, "git hooks without number that could run; moved to quarantine");
	assert_false(exists(test, ".git/hooks"));
	int taken = openat(test->quarantine_fd, get(test, ".git/hooks")->quarantined_as, O_PATH | O_CLOEXEC);
	assert_int_equal(faccessat(taken, "pre-commit", F_OK, 0), 0);
	assert_int_equal(faccessat(taken, "10099.sample", F_OK, 0), 0);
	assert_int_equal(faccessat(taken, "sub/file", F_OK, 0), 0);
	close(taken);
}

static const struct {
	const char *text, *path, *target;       /* NULL: refused */
} git_files[] = {
	{ "gitdir: ../.git/modules/m\n", "m/.git", ".git/modules/m" },
	{ "gitdir: ../.git/modules/m\r\n\n", "m/.git", ".git/modules/m" },
	{ "gitdir: ../../.git/modules/a/b", "x/y/.git", ".git/modules/a/b" },
	{ "gitdir: ../../.git/modules/a", "r/x/y/.git", "r/.git/modules/a" },
	{ "gitdir: .git/modules/a", "r/.git", "r/.git/modules/a" },
	{ "gitdir: /root/.git/worktrees/w", "w/.git", ".git/worktrees/w" },
	{ "gitdir: /root/r/.git/worktrees/w", "w/.git", "r/.git/worktrees/w" },
	{ "gitdir: /rootless/.git/worktrees/w", "w/.git", NULL },
	{ "gitdir: /root/../root/.git/worktrees/w", "w/.git", NULL },
	{ "gitdir: /root", "w/.git", NULL },
	{ "gitdir: /root/.git/worktrees/", "w/.git", NULL },
	{ "gitdir: /.git/worktrees/w", "w/.git", NULL },
	{ "gitdir: ../../.git/modules/m", "m/.git", NULL },
	{ "gitdir: ../.git/modules", "m/.git", NULL },
	{ "gitdir: ../.git/modules/", "m/.git", NULL },
	{ "gitdir: ../.git/modules/x/..", "m/.git", NULL },
	{ "gitdir: ../x/../.git/modules/m", "m/.git", NULL },
	{ "gitdir: .././.git/modules/m", "m/.git", NULL },
	{ "gitdir: ../x.git/modules/m", "m/.git", NULL },
	{ "gitdir: ../x.git/modules/.git/modules/m", "m/.git", "x.git/modules/.git/modules/m" },
	{ "gitdir: ../evil", "m/.git", NULL },
	{ "gitdir: ../.git/modules/m\nx", "m/.git", NULL },
	{ "gitdir:../.git/modules/m", "m/.git", NULL },
	{ "GITDIR: ../.git/modules/m", "m/.git", NULL },
	{ "gitdir: ", "m/.git", NULL },
	{ "gitdir: ..", "m/.git", NULL },
	{ "", "m/.git", NULL },
};

static void test_git_files(void **state)
{
	(void)state;
	char target[64];
	for (size_t i = 0; i < ARRAY_SIZE(git_files); i++) {
		const char *text = git_files[i].text, *wanted = git_files[i].target ? git_files[i].target : "(none)";
		bool found = git_file_target(text, strlen(text), git_files[i].path, "/root", target, sizeof(target));
		if (strcmp(found ? target : "(none)", wanted))
			fail_msg("%s: %s", text, found ? target : "(none)");
	}
	assert_false(git_file_target("gitdir: ../.git/modules/m\0", 26, "m/.git", "/root", target, sizeof(target)));
	assert_false(git_file_target("gitdir: ../.git/modules/m", 25, "m/.git", "/root", target, 15));
	assert_true(git_file_target("gitdir: ../.git/modules/m", 25, "m/.git", "/root", target, 16));
	assert_true(git_file_is_worktree(".git/worktrees/w"));
	assert_true(git_file_is_worktree("r/.git/modules/m/worktrees/w"));
	assert_false(git_file_is_worktree(".git/worktrees"));
	assert_false(git_file_is_worktree(".git/worktrees/w/x"));
	assert_false(git_file_is_worktree("worktrees/w"));
	assert_true(git_file_is_up_two("../..\n", 6));
	assert_false(git_file_is_up_two("../../\n", 7));
	assert_false(git_file_is_up_two("../../..", 8));
}

static void test_other_filesystem(void **state)
{
	struct repository *test = *state;
	char other[] = "/dev/shm/cordon-planted-XXXXXX";
	if (!mkdtemp(other))
		skip_cannot("dev-shm", "another filesystem is needed");
	close(test->quarantine_fd);
	test->quarantine_fd = open(other, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	record(test, UINT64_MAX);
	make(test, ".git/hooks/pre-commit", "content", 0755);
	check(test, true);
	assert_moved(test, ".git/hooks/pre-commit", "content");
	assert_int_equal(unlinkat(test->quarantine_fd, get(test, ".git/hooks/pre-commit")->quarantined_as, 0), 0);
	assert_int_equal(rmdir(other), 0);
}

static const struct {
	const char *text, *key; /* NULL: harmless */
} configs[] = {
	{ "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n", NULL },
	{ "[remote \"origin\"]\n\turl = https://example.com/x\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n", NULL },
	{ "[branch \"main\"]\nremote = origin\nmerge = refs/heads/main\n", NULL },
	{ "", NULL },
	{ "# [core]\n;fsmonitor=x\n", NULL },
	{ "[core]fsmonitor=/x", "core.fsmonitor" },
	{ "[CORE]\r\nFsMonitor = /x\r\n", "core.fsmonitor" },
	{ "\xef\xbb\xbf[core]\nfsmonitor = /x", "core.fsmonitor" },
	{ "[core]\nfsmonitor = true\n", NULL },
	{ "[core]\nfsmonitor\n", NULL },
	{ "[core]\nfsmonitor = tr\\\nue\n", NULL },
	{ "[core]\nfsmonitor = \"tr\"ue ; yes\n", NULL },
	{ "[core]\nfsmonitor = true\\nx\n", "core.fsmonitor" },
	{ "[core]\nx = y\\\n\nhooksPath = .husky\n", "core.hookspath" },
	{ "[core]\nx = \"y # z\" ; hooksPath = .husky\n", NULL },
	{ "[core] # comment\n[ core]\n", "the file" },
	{ "[core \"x\"]\nfsmonitor=/x\n", NULL },
	{ "[filter \"a\\\"b.c\"]\nclean = x\n", "filter.a\"b.c.clean" },
	{ "[filter.a]\nsmudge = x\n", "filter.a.smudge" },
	{ "[alias]\nst = grep -Oevil x\n", "alias.st" },
	{ "[alias]\nst = \"!evil\"\n", "alias.st" },
	{ "[alias \"st\"]\ncommand = rebase --exec evil\n", "alias.st.command" },
	{ "[alias]\nst =\n", NULL },
	{ "[rebase]\ninstructionFormat = %s%nexec evil\n", "rebase.instructionformat" },
	{ "[mergetool \"vimdiff\"]\nlayout = evil\n", "mergetool.vimdiff.layout" },
	{ "[pager]\nlog = true\n", NULL },
	{ "[pager]\nlog = evil\n", "pager.log" },
	{ "[credential]\nhelper =\n", NULL },
	{ "[credential \"https://a.b\"]\nhelper = x\n", "credential.https://a.b.helper" },
	{ "[include]\npath = x\n", "include.path" },
	{ "[includeIf \"gitdir:~/\"]\npath = x\n", "includeif.gitdir:~/.path" },
	{ "[url \"ext::sh -c x\"]\ninsteadOf = https://\n", "url.ext::sh -c x.insteadof" },
	{ "[url \"git@x:\"]\ninsteadOf = https://x/\n", NULL },
	{ "[remote \"o\"]\nurl = ext::sh\n", "remote.o.url" },
	{ "[submodule \"s\"]\nupdate = merge\n", NULL },
	{ "[submodule \"s\"]\nupdate = !x\n", "submodule.s.update" },
	{ "[protocol \"ext\"]\nallow = always\n", "protocol.ext.allow" },
	{ "[protocol \"file\"]\nallow = always\n", NULL },
	{ "[core]\nworktree = /home/me\n", "core.worktree" },
	{ "[core]\nworktree = ..\n", "core.worktree" },
	{ "[gpg \"ssh\"]\nprogram = x\n", "gpg.ssh.program" },
	{ "[core", "the file" },
	{ "[core]\nkey = \"open\n", "the file" },
	{ "[core]\nkey = \\x\n", "the file" },
	{ "[core]\n9key = x\n", "the file" },
	{ "[core]\nkey = x\n=\n", "the file" },
	{ "[a \"b\n\"]\n", "the file" },
};

static void test_configurations(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(configs); i++) {
		struct git_config_verdict verdict;
		git_config_judge(configs[i].text, strlen(configs[i].text), false, &verdict);
		const char *found = verdict.reason ? verdict.key : "(none)", *wanted = configs[i].key ? configs[i].key : "(none)";
		if (strcmp(found, wanted))
			fail_msg("%s: %s", configs[i].text, found);
	}
	struct git_config_verdict verdict;
	git_config_judge("[core]\n\0", 8, false, &verdict);
	assert_string_equal(verdict.key, "the file");
}

int main(void)
{
#define ROW(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		ROW(test_git_init_is_kept), ROW(test_hooks), ROW(test_kept_by_policy), ROW(test_links_in_place),
		ROW(test_config_and_others), ROW(test_locked), ROW(test_changed), ROW(test_owners_settings), ROW(test_other_filesystem),
		ROW(test_ways_to_a_configuration), ROW(test_repository_swapped), ROW(test_worktrees_elsewhere),
		ROW(test_repositories_above), ROW(test_second_names),
		cmocka_unit_test_setup_teardown(test_too_many, setup_in_memory, teardown),
		cmocka_unit_test_setup_teardown(test_hidden_in_a_crowd, setup_in_memory, teardown),
		ROW(test_covered), ROW(test_hooks_like_a_repository),
		cmocka_unit_test(test_git_files),
		cmocka_unit_test(test_configurations),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

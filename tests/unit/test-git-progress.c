/* Files of an operation of git in progress: which of them would run something. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/remove.h"
#include "paths/planted/git-progress.h"
#include "paths/index/look.h"
#include "skip.h"
#include "system-has.h"

#define MERGE "rebase-merge/"
#define APPLY "rebase-apply/"
#define TODO MERGE "git-rebase-todo"

static const struct {
	const char *name, *text;
	bool harmless;
} texts[] = {
	{ MERGE "strategy", "ort\n", true },
	{ MERGE "strategy", "recursive", true },
	{ MERGE "strategy", "subtree\r\n", true },
	{ MERGE "strategy", "", true },
	{ MERGE "strategy", "evil\n", false },
	{ MERGE "strategy", "x/../evil", false },
	{ MERGE "strategy", "ort\n\n", false },
	{ MERGE "strategy", " ort", false },
	{ APPLY "strategy", "evil", false },
	{ MERGE "strategy_opts", " '--evil'", true },
	{ MERGE "done", "exec evil\n", true },
	{ TODO, "pick 1234 exec\n# exec x\n\np 1\nfixup -C 1\nmerge -C 1 x # y\nupdate-ref refs/heads/x\nbreak\nnoop\n",
	  true },
	{ TODO, "exec evil\n", false },
	{ TODO, "pick 1\n \tx\tevil", false },
	{ TODO, "pick 1\r\nexec\r\n", false },
	{ TODO, "EXEC evil\n", false },
	{ TODO, "future-command x\n", false },
	{ TODO, "; exec\n-x\n\t\n", true },
	{ TODO, "", true },
	{ "sequencer/todo", "revert 1 x\n", true },
	{ "sequencer/todo", "exec x\n", false },
	{ "sequencer/opts", "[options]\n\tsignoff = true\n\tmainline = 1\n\tstrategy = ort\n\tstrategy-option = evil\n",
	  true },
	{ "sequencer/opts", "[options]\n\tstrategy = evil\n", false },
	{ "sequencer/opts", "[OPTIONS]\n\tStrategy = x/../y", false },
	{ "sequencer/opts", "[options]\n\tstrategy = ort\n\tstrategy = evil\n\tstrategy = ort\n", false },
	{ "sequencer/opts", "[options]\n\tfuture = x\n", false },
	{ "sequencer/opts", "[options\n", false },
	{ "sequencer/opts", "", true },
	{ APPLY "apply-opt", "\n", true },
	{ APPLY "apply-opt", " '--whitespace=fix' '-C3' '-p1' '--exclude=it'\\''s'\n", true },
	{ APPLY "apply-opt", "'--build-fake-ancestor=/x'", false },
	{ APPLY "apply-opt", "'-C3' '--build-fake-ancestor' '/x'", false },
	{ APPLY "apply-opt", "''\\''' 'x'", false },
	{ APPLY "apply-opt", "-C3", false },
	{ APPLY "apply-opt", "'-C3", false },
	{ APPLY "apply-opt", "'-C''3'", false },
	{ APPLY "gpg_sign_opt", "-Skey\n", true },
	{ APPLY "gpg_sign_opt", "--no-gpg-sign", true },
	{ APPLY "gpg_sign_opt", "--x", false },
	{ MERGE "gpg_sign_opt", "-S", true },
	{ MERGE "gpg_sign_opt", "x", false },
	{ "BISECT_NAMES", " '--' 'a' 'it'\\''s'\n", true },
	{ "BISECT_NAMES", "\n", true },
	{ "BISECT_NAMES", "; evil\n", false },
	{ "BISECT_NAMES", "'a' $(evil)\n", false },
	{ "BISECT_NAMES", "'a'\nevil\n", false },
	{ "BISECT_NAMES", "'a", false },
};

static void test_texts(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (!git_progress_reason(texts[i].name, texts[i].text, strlen(texts[i].text)) != texts[i].harmless)
			fail_msg("%s: %s", texts[i].name, texts[i].text);
	assert_non_null(git_progress_reason(TODO, "pick 1\0", 7));
}

/* ---- In a directory -------------------------------------------------------------------------------------------- */

struct ground {
	char path[64];
	int fd;
	char found[1024];       /* names, each after a blank */
	size_t count;
};

static int set_up(void **state)
{
	struct ground *ground = calloc(1, sizeof(*ground));
	assert_non_null(ground);
	strcpy(ground->path, "/tmp/cordon-progress-XXXXXX");
	assert_non_null(mkdtemp(ground->path));
	ground->fd = open(ground->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = ground;
	return 0;
}

static int tear_down(void **state)
{
	struct ground *ground = *state;
	close(ground->fd);
	assert_int_equal(remove_tree(AT_FDCWD, ground->path), 0);
	free(ground);
	return 0;
}

static void make(const struct ground *ground, const char *name, const char *text)
{
	char directory[64];
	snprintf(directory, sizeof(directory), "%.*s", strchr(name, '/') ? (int)strcspn(name, "/") : 0, name);
	if (*directory)
		mkdirat(ground->fd, directory, 0755);
	int fd = openat(ground->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static int take(void *arg, const char *name, const struct names_stat *stat, const char *reason)
{
	struct ground *ground = arg;
	assert_true(*reason && stat->inode);
	strcat(strcat(ground->found, " "), name);
	ground->count++;
	return 0;
}

static const char *judge(struct ground *ground)
{
	*ground->found = '\0';
	ground->count = 0;
	assert_int_equal(git_progress_judge(ground->fd, UINT64_MAX, take, ground), 0);
	return ground->found;
}

static void test_files(void **state)
{
	struct ground *ground = *state;
	assert_string_equal(judge(ground), "");
	make(ground, TODO, "exec evil\n");
	make(ground, MERGE "strategy", "ort\n");
	make(ground, "sequencer/opts", "[options]\nstrategy = evil\n");
	make(ground, "BISECT_NAMES", "; evil");
	assert_string_equal(judge(ground), " BISECT_NAMES " TODO " sequencer/opts");
	static char large[GIT_PROGRESS_SIZE_MAX + 2];
	memset(large, '#', sizeof(large) - 1);
	make(ground, TODO, large);
	assert_int_equal(unlinkat(ground->fd, "sequencer/opts", 0), 0);
	assert_true(!HAS_LINKS || symlinkat("/dev/null", ground->fd, "sequencer/opts") == 0);
	assert_int_equal(unlinkat(ground->fd, MERGE "strategy", 0), 0);
	assert_true(!HAS_SPECIAL_FILES || mkfifoat(ground->fd, MERGE "strategy", 0600) == 0);
	assert_int_equal(unlinkat(ground->fd, "BISECT_NAMES", 0), 0);
	assert_int_equal(mkdirat(ground->fd, "BISECT_NAMES", 0755), 0);
	const char *others = HAS_LINKS && HAS_SPECIAL_FILES ? " " MERGE "strategy sequencer/opts" : "";
	assert_string_equal(judge(ground), *others ? " " TODO " " MERGE "strategy sequencer/opts" : " " TODO);
	large[sizeof(large) - 2] = '\0';
	make(ground, TODO, large);
	assert_string_equal(judge(ground), others);
	/* One that may not be listed hides nothing from git, so it must hide nothing here. */
	if (HAS_MODES) {
		assert_int_equal(fchmodat(ground->fd, "sequencer", 0311, 0), 0);
		assert_string_equal(judge(ground), others);
		assert_int_equal(fchmodat(ground->fd, "sequencer", 0755, 0), 0);
	}
}

static int stop(void *arg, const char *name, const struct names_stat *stat, const char *reason)
{
	(void)name, (void)stat, (void)reason;
	++*(int *)arg;
	return -1;
}

static void test_stops(void **state)
{
	struct ground *ground = *state;
	int calls = 0;
	make(ground, TODO, "exec evil\n");
	make(ground, MERGE "strategy", "evil\n");
	assert_int_equal(git_progress_judge(ground->fd, UINT64_MAX, stop, &calls), -1);
	assert_int_equal(calls, 1);
	make(ground, MERGE "strategy", "ort\n");
	make(ground, TODO, "pick 1\n");
	assert_string_equal(judge(ground), "");
	assert_int_equal(git_progress_judge(ground->fd, 0, take, ground), 0);
	assert_string_equal(ground->found, " " TODO " " MERGE "strategy");
}

/* What git itself leaves when an operation stops is harmless. */
static void test_real_operations(void **state)
{
	struct ground *ground = *state;
	static const char *const operations[] = { "rebase -q main side",
		"rebase -q --apply --whitespace=nowarn main side",
		"rebase -q -s resolve -X ours main side", "rebase -q -S --merge main side",
		"rebase -i --autosquash main side",
		"cherry-pick -x -s -X patience main..side", "cherry-pick --strategy=resolve main..side",
		"revert --no-edit side side~",
		"bisect start side side~3 -- a \"it's\"" };
	static const char setup[] =
		"set -e; cd %s; export HOME=/nonexistent GIT_EDITOR=true GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x "
		"GIT_COMMITTER_NAME=x GIT_COMMITTER_EMAIL=x; rm -rf r; git init -q -b main r; cd r; c() { echo $1 > "
	        "$2; git add $2; "
		"git commit -qm \"$1\"; }; c 1 a; git checkout -qb side; c 2 a; c 3 b; c 4 c; git checkout -q main; c "
	        "9 a; "
		"git %s > /dev/null 2>&1 || :; ls .git | grep -q -e rebase- -e sequencer -e BISECT_NAMES";
	for (size_t i = 0; i < ARRAY_SIZE(operations); i++) {
		char line[1024];
		snprintf(line, sizeof(line), setup, ground->path, operations[i]);
		if (system(line)) {
			if (system("git --version > /dev/null"))
				skip_cannot("git", "it is to stop in the middle");
			fail_msg("%s did not stop", operations[i]);
		}
		int kept = ground->fd;
		ground->fd = openat(kept, "r/.git", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		judge(ground);
		close(ground->fd);
		ground->fd = kept;
		if (ground->count)
			fail_msg("%s:%s", operations[i], ground->found);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts), cmocka_unit_test_setup_teardown(test_files, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_stops, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_real_operations, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

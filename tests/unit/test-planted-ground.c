/* Directories that are repositories although they are not called `.git`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "planted-lab.h"

/* Where git looks if a `.git` is no repository any more: a directory above it that is one itself. */
static void test_repositories_above(void **state)
{
	struct lab *lab = *state;
	static const char evil[] = "[core]\nworktree = .\nfsmonitor = /x\n";
	static const char *const grounds[] = { "", "a/", "a/b/" };
	char path[64];
	lab_make(lab, "a/b/.git/config", "", 0644);
	lab_make(lab, "a/b/.git/HEAD", "ref: refs/heads/main\n", 0644);
	lab_make(lab, "a/b/.git/objects/x", "", 0644);
	lab_make(lab, "a/b/.git/refs/x", "", 0644);
	lab_make(lab, "own/.git/config", "", 0644);
	lab_make(lab, "own/HEAD", "", 0644);
	lab_make(lab, "own/objects/x", "", 0644);
	lab_make(lab, "own/refs/x", "", 0644);
	lab_make(lab, "own/config", evil, 0644);
	lab_make(lab, "own/hooks/update", "mine", 0755);
	lab_record(lab);
	lab_check(lab, true);
	assert_int_equal(lab->planted.count, 0);
	assert_int_equal(unlinkat(lab->root_fd, "a/b/.git/HEAD", 0), 0);
	for (size_t i = 0; i < ARRAY_SIZE(grounds); i++) {
		static const char *const files[] = { "HEAD", "objects/x", "refs/x", "hooks/pre-push.sample" };
		for (size_t j = 0; j < ARRAY_SIZE(files); j++) {
			snprintf(path, sizeof(path), "%s%s", grounds[i], files[j]);
			lab_make(lab, path, "", 0755);
		}
		snprintf(path, sizeof(path), "%sconfig", grounds[i]);
		lab_make(lab, path, i ? evil : "[core]\nbare = true\n", 0644);
	}
	lab_check(lab, true);
	lab_assert_moved(lab, "a/config", evil);
	lab_assert_moved(lab, "a/b/config", evil);
	assert_int_equal(lab->planted.count, 2);
	/* In a further command, which finds such a repository. */
	lab_record(lab);
	lab_check(lab, true);
	assert_int_equal(lab->planted.count, 0);
	lab_make(lab, "config", evil, 0644);
	lab_make(lab, "hooks/update", "x", 0755);
	lab_make(lab, "a/b/commondir", "evil\n", 0644);
	lab_make(lab, "own/hooks/update", "other", 0755);
	lab_check(lab, true);
	lab_assert_moved(lab, "config", evil);
	lab_assert_moved(lab, "hooks/update", "x");
	lab_assert_moved(lab, "a/b/commondir", "evil\n");
	lab_assert_moved(lab, "own/hooks/update", "other");
	assert_true(lab_exists(lab, "own/config"));
	assert_int_equal(lab->planted.count, 4);
}

/* A root that is a `.git` itself. */
static void test_root_in_a_repository(void **state)
{
	struct lab *lab = *state;
	static const char evil[] = "[core]\nfsmonitor = /x\n";
	static const char *const gone[] = { "config", "config.worktree", "modules/m/config", "worktrees/w/commondir" };
	static const char *const kept[] = { "HEAD", "objects/x", "refs/heads/config", "modules/m/hooks/HEAD" };
	assert_int_equal(mkdirat(lab->root_fd, ".git", 0755), 0);
	int above = lab->root_fd;
	lab->root_fd = openat(above, ".git", O_PATH | O_DIRECTORY | O_CLOEXEC);
	strcat(lab->root, "/.git");
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		lab_make(lab, kept[i], "", 0644);
	lab_make(lab, "config", "", 0644);
	lab_record(lab);
	for (size_t i = 0; i < ARRAY_SIZE(gone); i++)
		lab_make(lab, gone[i], evil, 0644);
	lab_make(lab, "hooks/update", "x", 0755);
	lab_check(lab, false);
	assert_int_equal(lab->planted.count, ARRAY_SIZE(gone) + 1);
	lab_check(lab, true);
	for (size_t i = 0; i < ARRAY_SIZE(gone); i++)
		lab_assert_moved(lab, gone[i], evil);
	lab_assert_moved(lab, "hooks/update", "x");
	assert_int_equal(lab->planted.count, ARRAY_SIZE(gone) + 1);
	close(lab->root_fd);
	lab->root_fd = above;
	*strrchr(lab->root, '/') = '\0';
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LAB_ROW(test_repositories_above), LAB_ROW(test_root_in_a_repository),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

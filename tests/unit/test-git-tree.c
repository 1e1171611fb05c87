/* Where the top of a git working tree is, and which repository outside of it is its own: one that leads back. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/git-tree.h"

#include <cmocka.h>

#include "arena-ground.h"
#include "system-has.h"

static char base[64];

static const char *at(const char *name)
{
	return arena_printf(&arena, "%s/%s", base, name);
}

static void make(const char *name)
{
	assert_true(mkdir(at(name), 0755) == 0);
}

static void put(const char *name, const char *text)
{
	unlink(at(name));
	FILE *file = fopen(at(name), "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void make_repository(const char *name)
{
	make(name);
	make(arena_printf(&arena, "%s/objects", name));
	make(arena_printf(&arena, "%s/refs", name));
	put(arena_printf(&arena, "%s/HEAD", name), "ref: refs/heads/main\n");
	put(arena_printf(&arena, "%s/config", name), "[core]\n\tbare = false\n");
}

/* main/ with a linked worktree, tree/, and a submodule, main/sub/. */
static int setup(void **state)
{
	(void)state;
	strcpy(base, "/tmp/git-tree-XXXXXX");
	if (!mkdtemp(base))
		return -1;
	make("main");
	make_repository("main/.git");
	make("main/deep");
	make("main/deep/er");
	make("main/.git/worktrees");
	make("main/.git/worktrees/tree");
	make("tree");
	put("tree/.git", arena_printf(&arena, "gitdir: %s\n", at("main/.git/worktrees/tree")));
	put("main/.git/worktrees/tree/commondir", "../..\n");
	put("main/.git/worktrees/tree/gitdir", arena_printf(&arena, "%s\n", at("tree/.git")));
	make("main/.git/modules");
	make_repository("main/.git/modules/sub");
	make("main/sub");
	put("main/sub/.git", "gitdir: ../.git/modules/sub\n");
	put("main/.git/modules/sub/config", "[core]\n\tworktree = ../../../sub\n");
	return 0;
}

static int teardown(void **state)
{
	char command[128];
	snprintf(command, sizeof(command), "rm -rf %s", base);
	return system(command) == 0 ? free_arena(state) : -1;
}

static const char *top_of(const char *here, const char *home)
{
	const char *top, *refused;
	assert_int_equal(git_tree_top(&arena, at(here), home ? at(home) : NULL, &top, &refused), 0);
	assert_null(refused);
	return top;
}

/* The repository's path, or why there is none. */
static const char *common_of(const char *name)
{
	struct place place;
	const char *refused;
	int fd = open(at(name), O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(git_tree_common(&arena, fd, at(name), &place, &refused), 0);
	close(fd);
	assert_false(place.path && refused);
	return place.path ? place.path : refused ? refused : "";
}

static void the_top_is_found_from_beneath(void **state)
{
	(void)state;
	assert_string_equal(top_of("main", NULL), at("main"));
	assert_string_equal(top_of("main/deep/er", NULL), at("main"));
	assert_string_equal(top_of("main/sub", NULL), at("main/sub"));
	assert_string_equal(top_of("tree", NULL), at("tree"));
	make("beside");
	assert_null(top_of("beside", NULL));
}

static void what_only_is_called_git_is_none(void **state)
{
	(void)state;
	make("main/deep/.git");
	assert_string_equal(top_of("main/deep/er", NULL), at("main"));
	put("main/deep/.git/HEAD", "ref: x\n");
	assert_string_equal(top_of("main/deep/er", NULL), at("main/deep"));
}

/* A home that is a repository is found, and refused as a workspace by others; what lies above it is not looked at. */
static void a_home_ends_the_search(void **state)
{
	(void)state;
	assert_null(top_of("main/deep/er", "main/deep"));
	assert_null(top_of("main/deep/er", "main/deep/er"));
	assert_string_equal(top_of("main/deep/er", "main"), at("main"));
}

static void another_owner_ends_the_search(void **state)
{
	(void)state;
	const char *top, *refused;
	if (geteuid() != 0) {
		print_message("# skip: cannot: root: only root can give a directory away\n");
		skip();
	}
	assert_int_equal(chown(at("main"), 65533, 65533), 0);
	assert_int_equal(git_tree_top(&arena, at("main/deep/er"), NULL, &top, &refused), 0);
	assert_string_equal(top, at("main"));
	assert_string_equal(refused, "it belongs to another user");
	assert_int_equal(chown(at("main"), 0, 0), 0);
	assert_int_equal(chown(at("main/deep"), 65533, 65533), 0);
	assert_null(top_of("main/deep/er", NULL));
}

static void a_worktree_and_a_submodule_have_their_repository(void **state)
{
	(void)state;
	assert_string_equal(common_of("main"), "");
	assert_string_equal(common_of("main/deep"), "");
	assert_string_equal(common_of("tree"), at("main/.git"));
	assert_string_equal(common_of("main/sub"), at("main/.git/modules/sub"));
	put("tree/.git", "gitdir: ../main/.git/worktrees/tree");
	put("main/.git/worktrees/tree/gitdir", "../../../../tree/.git\n");
	assert_string_equal(common_of("tree"), at("main/.git"));
}

static void what_does_not_lead_back_is_refused(void **state)
{
	(void)state;
	make("other");
	put("other/.git", arena_printf(&arena, "gitdir: %s\n", at("main/.git/worktrees/tree")));
	assert_string_equal(common_of("other"), "names a repository that is another directory's");
	put("other/.git", arena_printf(&arena, "gitdir: %s\n", at("main/.git/modules/sub")));
	assert_string_equal(common_of("other"), "names a repository that is another directory's");
	put("other/.git", arena_printf(&arena, "gitdir: %s\n", at("main/.git")));
	assert_string_equal(common_of("other"), "names a repository that does not name this directory");
	/* The line of a worktree's gitdir ends in /.git, or it is of something else. */
	put("main/.git/worktrees/tree/gitdir", arena_printf(&arena, "%s\n", at("tree")));
	assert_string_equal(common_of("tree"), "names a repository that does not name it");
	put("main/.git/worktrees/tree/gitdir", "");
	assert_string_equal(common_of("tree"), "names a repository that does not name it");
}

/* A worktree's directory decides by its place which repository is meant, not by what it says of itself. */
static void a_common_directory_elsewhere_is_refused(void **state)
{
	(void)state;
	make("victim");
	make_repository("victim/.git");
	put("main/.git/worktrees/tree/commondir", arena_printf(&arena, "%s\n", at("victim/.git")));
	assert_string_equal(common_of("tree"), "names a repository that is not laid out as git lays it out");
	put("main/.git/worktrees/tree/commondir", "../../..\n");
	assert_string_equal(common_of("tree"), "names a repository that is not laid out as git lays it out");
	put("main/.git/worktrees/tree/commondir", "../../\n../..\n");
	assert_string_not_equal(common_of("tree"), at("main/.git"));
}

static void bad_files_are_refused(void **state)
{
	(void)state;
	static const char *const texts[] = {
		"",    "gitdir:",     "gitdir: ",       "gitdir: \n",        "gitdir: a\nb\n", "gitdir: /nonexistent\n",
		"x\n", "gitdir: /\n", "gitdir: /etc\n", "gitdir: a\x1b[2J\n"
	};
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		put("tree/.git", texts[i]);
		assert_int_not_equal(*common_of("tree"), '/');
		assert_int_not_equal(*common_of("tree"), '\0');
	}
	unlink(at("tree/.git"));
	if (HAS_LINKS) {
		assert_int_equal(symlink(at("main/.git"), at("tree/.git")), 0);
		assert_string_equal(common_of("tree"), "");
		unlink(at("tree/.git"));
	}
	if (HAS_SPECIAL_FILES) {
		assert_int_equal(mkfifo(at("tree/.git"), 0600), 0);
		assert_string_equal(common_of("tree"), "");
	}
}

/* Its hooks could not be covered: names are protected in what is called `.git`. */
static void a_repository_by_another_name_is_refused(void **state)
{
	(void)state;
	make_repository("bare");
	make("bare/worktrees");
	make("bare/worktrees/tree");
	put("bare/worktrees/tree/commondir", "../..\n");
	put("bare/worktrees/tree/gitdir", arena_printf(&arena, "%s\n", at("tree/.git")));
	put("tree/.git", "gitdir: ../bare/worktrees/tree\n");
	assert_non_null(strstr(common_of("tree"), "not called .git"));
}

static void a_repository_of_another_user_is_refused(void **state)
{
	(void)state;
	if (geteuid() != 0) {
		print_message("# skip: cannot: root: only root can give a directory away\n");
		skip();
	}
	static const char *const names[] = { "main/.git", "main/.git/worktrees/tree", "main/.git/worktrees/tree/gitdir",
		                             "tree", "tree/.git" };
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_int_equal(chown(at(names[i]), 65533, 65533), 0);
		assert_int_not_equal(*common_of("tree"), '/');
		assert_int_not_equal(*common_of("tree"), '\0');
		assert_int_equal(chown(at(names[i]), 0, 0), 0);
	}
	assert_string_equal(common_of("tree"), at("main/.git"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_top_is_found_from_beneath, setup, teardown),
		cmocka_unit_test_setup_teardown(what_only_is_called_git_is_none, setup, teardown),
		cmocka_unit_test_setup_teardown(a_home_ends_the_search, setup, teardown),
		cmocka_unit_test_setup_teardown(another_owner_ends_the_search, setup, teardown),
		cmocka_unit_test_setup_teardown(a_worktree_and_a_submodule_have_their_repository, setup, teardown),
		cmocka_unit_test_setup_teardown(what_does_not_lead_back_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(a_common_directory_elsewhere_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(bad_files_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(a_repository_by_another_name_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(a_repository_of_another_user_is_refused, setup, teardown),
	};
	return cmocka_run_group_tests_name("git-tree", tests, NULL, NULL);
}

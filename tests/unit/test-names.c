/* Finding names: what is found and what is not, and that a hostile tree does no harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cordon-internal.h"
#include "names-ground.h"
#include "system-has.h"
#include "paths/index/look.h"
#include "paths/index/walk.h"

static void make_socket(const struct ground *ground, const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", ground->root, name);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
}

static void test_kinds(void **state)
{
	struct ground *ground = *state;
	const char *hooks = HAS_CASE ? "sub/.git/hooks" : "other/.git/hooks";
	ground_file(ground, ".env");
	ground_file(ground, "a/b/.env.local");
	ground_file(ground, "a/plain");
	ground_file(ground, "home/.ssh/id_rsa");
	ground_file(ground, ".git/config");
	ground_file(ground, "sub/.GIT/Config");
	ground_directory(ground, hooks);
	ground_file(ground, "config");
	ground_file(ground, ".cordon.toml");
	if (HAS_SPECIAL_FILES) {
		ground_file(ground, "new\nline/\xff.pem");
		assert_int_equal(mkfifoat(ground->root_fd, "a/fifo", 0600), 0);
		make_socket(ground, "a/sock");
	}
	if (HAS_LINKS) {
		assert_int_equal(symlinkat("/etc", ground->root_fd, "a/link"), 0);
		assert_int_equal(symlinkat("elsewhere", ground->root_fd, "a/x.pem"), 0);
	}
	for (int round = 0; round < 2; round++) {
		const struct names *names = ground_find(ground, round, BUDGET_US);
		assert_int_equal(names->count, 7 + 3 * HAS_SPECIAL_FILES + HAS_LINKS);
		assert_true(ground_has(ground, NAME_MASKED, ".env"));
		assert_true(ground_has(ground, NAME_MASKED, "a/b/.env.local"));
		assert_true(names_get(names, NAME_MASKED, "home/.ssh")->is_directory);
		assert_true(!HAS_LINKS || names_get(names, NAME_MASKED, "a/x.pem")->is_link);
		assert_false(ground_has(ground, NAME_MASKED, "home/.ssh/id_rsa"));
		assert_true(ground_has(ground, NAME_PROTECTED, ".git/config"));
		assert_true(ground_has(ground, NAME_PROTECTED, "sub/.GIT/Config"));
		assert_true(names_get(names, NAME_PROTECTED, hooks)->is_directory);
		assert_true(names_get(names, NAME_PROTECTED, ".cordon.toml")->inode != 0);
		if (HAS_SPECIAL_FILES) {
			assert_true(ground_has(ground, NAME_MASKED, "new\nline/\xff.pem"));
			assert_true(ground_has(ground, NAME_SOCKET, "a/sock"));
			assert_true(names_get(names, NAME_FIFO, "a/fifo")->is_fifo);
		}
		assert_null(names->note);
		assert_int_equal(names->unchecked, 0);
	}
}

static void test_absolute_glob(void **state)
{
	struct ground *ground = *state;
	char inside[128];
	snprintf(inside, sizeof(inside), "%s/data/**", ground->root);
	assert_int_equal(strings_add(&ground->arena, &ground->deny, inside), 0);
	assert_int_equal(strings_add(&ground->arena, &ground->deny, "/elsewhere/**"), 0);
	assert_int_equal(strings_add(&ground->arena, &ground->deny, "top/secret"), 0);
	ground_file(ground, "data/x/y");
	ground_file(ground, "data/z");
	ground_file(ground, "other/data/z");
	ground_file(ground, "top/secret");
	ground_file(ground, "deep/top/secret");
	ground_find(ground, false, BUDGET_US);
	assert_int_equal(ground->names.count, 3);
	assert_true(ground_has(ground, NAME_MASKED, "data/x"));
	assert_true(ground_has(ground, NAME_MASKED, "data/z"));
	assert_true(ground_has(ground, NAME_MASKED, "top/secret"));
	struct strings bad = { 0 };
	struct cordon_error err = { 0 };
	assert_int_equal(strings_add(&ground->arena, &bad, "a/../b"), 0);
	struct name_rules rules = { &bad, NULL, NULL };
	assert_int_equal(names_find(&ground->arena, ground->root_fd, ground->root, &rules, &(struct names_keep){ 0 }, 0,
	                            &ground->names, &err), -1);
	assert_int_equal(err.class, CORDON_E_CONFIG_INVALID);
}

static void test_closed_directory(void **state)
{
	struct ground *ground = *state;
	ground_many(ground, 40);
	ground_file(ground, "many/d5/.env");
	ground_warm(ground);
	assert_int_equal(fchmodat(ground->root_fd, "many/d5", 0, 0), 0);
	for (int round = 0; round < 2; round++) {
		ground_find(ground, true, 0);
		if (geteuid() == 0) {
			assert_true(ground_has(ground, NAME_MASKED, "many/d5/.env"));
		} else {
			assert_true(names_get(&ground->names, NAME_MASKED, "many/d5")->is_closed);
			assert_false(ground_has(ground, NAME_MASKED, "many/d5/.env"));
		}
		ground_settle();
	}
	/* to be listed, but not entered */
	assert_int_equal(fchmodat(ground->root_fd, "many/d5", 0600, 0), 0);
	ground_find(ground, true, 0);
	assert_true(ground_has(ground, NAME_MASKED, geteuid() == 0 ? "many/d5/.env" : "many/d5"));
	assert_int_equal(fchmodat(ground->root_fd, "many/d5", 0755, 0), 0);
	ground_find(ground, true, 0);
	assert_true(ground_has(ground, NAME_MASKED, "many/d5/.env"));
	assert_false(ground_has(ground, NAME_MASKED, "many/d5"));
}

/* Somebody else's, in which names can be used but not listed. */
static void test_directory_to_be_entered_only(void **state)
{
	struct ground *ground = *state;
	if (geteuid())
		return;
	ground_file(ground, "enter/.env");
	ground_file(ground, "neither/.env");
	assert_int_equal(chmod(ground->root, 0755), 0);
	assert_int_equal(fchmodat(ground->root_fd, "enter", 0711, 0), 0);
	assert_int_equal(fchmodat(ground->root_fd, "neither", 0700, 0), 0);
	assert_int_equal(seteuid(65534), 0);
	ground_find(ground, false, BUDGET_US);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(ground->names.count, 1);
	assert_true(names_get(&ground->names, NAME_MASKED, "enter")->is_closed);
}

static void test_depth_bomb(void **state)
{
	struct ground *ground = *state;
	char name[201];
	int at = dup(ground->root_fd);
	for (int i = 0; i < 4096; i++) {
		assert_int_equal(mkdirat(at, "d", 0755), 0);
		int next = openat(at, "d", O_PATH | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		close(at);
		at = next;
		if (i == NAMES_DEPTH_MAX / 2)
			close(openat(at, "x.pem", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	}
	close(at);
	/* few levels, but a path that is too long */
	memset(name, 'n', 200);
	name[200] = '\0';
	at = dup(ground->root_fd);
	for (int i = 0; i < 40; i++) {
		assert_int_equal(mkdirat(at, name, 0755), 0);
		int next = openat(at, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
		close(at);
		at = next;
	}
	close(at);
	ground_settle();
	for (int round = 0; round < 3; round++) {
		ground_find(ground, true, BUDGET_US);
		assert_int_equal(ground->names.count, 1);
		assert_non_null(strstr(ground->names.note, "2 directories searched in part only"));
	}
}

static void test_unusable_root(void **state)
{
	struct ground *ground = *state;
	struct name_rules rules = { &ground->deny, &ground->protect, &ground->exempt };
	struct cordon_error err = { 0 };
	if (geteuid()) {
		assert_int_equal(chmod(ground->root, 0300), 0);
		assert_int_equal(names_find(&ground->arena, ground->root_fd, ground->root, &rules,
		                            &(struct names_keep){ 0 }, 0, &ground->names, &err),
		                 -1);
		assert_int_equal(err.class, CORDON_E_CAPABILITY_DENIED);
		assert_int_equal(chmod(ground->root, 0700), 0);
	}
	int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc < 0)
		return;
	assert_int_equal(
		names_find(&ground->arena, proc, "/proc", &rules, &(struct names_keep){ 0 }, 0, &ground->names, &err),
		0);
	assert_int_equal(ground->names.directories, 1);
	close(proc);
}

static bool opens_safely(const struct ground *ground)
{
	int fd = names_open(ground->root_fd, "a/b/c", O_RDONLY),
	    root = names_open(ground->root_fd, "", O_RDONLY | O_DIRECTORY);
	bool opened = fd >= 0 && root >= 0;
	close(fd);
	close(root);
	return opened && names_open(ground->root_fd, "a/link/c", O_RDONLY) < 0 &&
	       names_open(ground->root_fd, "a/last", O_RDONLY) < 0 &&
	       names_open(ground->root_fd, "a/../a/b/c", O_RDONLY | O_DIRECTORY) < 0 &&
	       names_open(ground->root_fd, "..", O_RDONLY) < 0 && names_open(ground->root_fd, "a/b/none", O_RDONLY) < 0;
}

static void test_open(void **state)
{
	struct ground *ground = *state;
	ground_file(ground, "a/b/c");
	assert_true(!HAS_LINKS || symlinkat("b", ground->root_fd, "a/link") == 0);
	assert_true(!HAS_LINKS || symlinkat("b/c", ground->root_fd, "a/last") == 0);
	assert_true(opens_safely(ground));
}

static void test_open_without_openat2(void **state)
{
	struct ground *ground = *state;
	test_open(state);
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { ARRAY_SIZE(code), code };
	pid_t child = fork();
	if (child == 0) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
			_exit(2);
		_exit(opens_safely(ground) ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* What is exempt is not protected: by what it is called, or by what it is. */
static void test_exempt(void **state)
{
	struct ground *ground = *state;
	static const char *const exempt[] = { ".git/", ".git/**/config/", ".git/**/refs/**" };
	for (size_t i = 0; i < ARRAY_SIZE(exempt); i++)
		assert_int_equal(strings_add(&ground->arena, &ground->exempt, exempt[i]), 0);
	assert_int_equal(strings_add(&ground->arena, &ground->protect, ".git"), 0);
	assert_int_equal(strings_add(&ground->arena, &ground->protect, ".git/modules/**/config"), 0);
	ground_file(ground, ".git/config");
	ground_file(ground, "sub/.git");
	ground_file(ground, ".git/modules/config/config");
	ground_file(ground, ".git/modules/config/refs/heads/config");
	ground_file(ground, ".git/modules/refs/heads/m/config");
	ground_file(ground, ".git/modules/refs/heads/w/config");
	ground_directory(ground, "config");
	if (HAS_LINKS)
		assert_int_equal(symlinkat("elsewhere", ground->root_fd, "config/.git"), 0);
	else
		ground_file(ground, "config/.git");
	assert_int_equal(ground_find(ground, false, BUDGET_US)->count, 4);
	ground_directory(ground, ".git/modules/refs/heads/m/objects");
	ground_file(ground, ".git/modules/refs/heads/w/commondir");
	assert_int_equal(ground_find(ground, false, BUDGET_US)->count, 6);
	assert_true(ground_has(ground, NAME_PROTECTED, ".git/modules/refs/heads/m/config"));
	assert_true(ground_has(ground, NAME_PROTECTED, ".git/modules/refs/heads/w/config"));
	assert_true(ground_has(ground, NAME_PROTECTED, ".git/config"));
	assert_true(ground_has(ground, NAME_PROTECTED, "sub/.git"));
	assert_true(ground_has(ground, NAME_PROTECTED, ".git/modules/config/config"));
	assert_true(ground_has(ground, NAME_PROTECTED, "config/.git"));
	assert_int_equal(names_get(&ground->names, NAME_PROTECTED, "sub/.git")->links, 1);
}

/* A time stamp of whole seconds tells less, and of every other one on some filesystems. */
static void test_time_stamps_that_tell_little(void **state)
{
	const int64_t second = 1000 * 1000 * 1000, fine = 1700000000 * second + 1000, coarse = 1700000000 * second;
	(void)state;
	assert_true(names_walk_is_racy(fine, fine + second / 100));
	assert_false(names_walk_is_racy(fine, fine + second / 20));
	assert_true(names_walk_is_racy(coarse, coarse + second * 19 / 10));
	assert_false(names_walk_is_racy(coarse, coarse + second * 21 / 10));
}

static void test_rules_about_a_path(void **state)
{
	const struct { const char *path; bool is_directory, kept;
	} paths[] = {
		{ "/r/.git", true, false },
		{ "/r/.git", false, true },
		{ "/r/.git/config", false, true },
		{ "/r/.GIT/Config", false, true },
		{ "/r/.git/hooks/a/b", false, true },
		{ "/r/.git/config/x", false, false },
		{ "/r/config", false, false },
		{ "/r/.git/modules/m/config", false, true },
		{ "/r/.git/modules/m/refs/heads/config", false, false },
		{ "/", true, false },
	};
	const char *const protect[] = { ".git", ".git/config", ".git/hooks", ".git/modules/**/config",
		                        "**/.tool/settings" };
	const char *const exempt[] = { ".git/", ".git/**/config/", ".git/**/refs/heads/**" };
	const char *const deny[] = { "**/.env", "a/b", "/w/c" };
	struct arena arena = { 0 };
	struct strings lists[3] = { 0 };
	struct names_globs globs;
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(protect); i++)
		assert_int_equal(strings_add(&arena, &lists[0], protect[i]), 0);
	for (size_t i = 0; i < ARRAY_SIZE(exempt); i++)
		assert_int_equal(strings_add(&arena, &lists[1], exempt[i]), 0);
	for (size_t i = 0; i < ARRAY_SIZE(deny); i++)
		assert_int_equal(strings_add(&arena, &lists[2], deny[i]), 0);
	const struct name_rules rules = { &lists[2], &lists[0], &lists[1] };
	assert_int_equal(names_globs_compile(&arena, "/", &rules, &globs, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		assert_int_equal(names_globs_keep(&globs, paths[i].path, paths[i].is_directory), paths[i].kept);
	assert_true(names_globs_hide(&globs, "/w", "/w/x/.env") && names_globs_hide(&globs, "/", "/.env"));
	assert_true(names_globs_hide(&globs, "/w", "/w/a/b") && names_globs_hide(&globs, "/w", "/w/c"));
	assert_false(names_globs_hide(&globs, "/w/.env", "/w/.env") || names_globs_hide(&globs, "/v", "/w/.env"));
	assert_false(names_globs_hide(&globs, "/w/x", "/w/x/y/a/b") || names_globs_hide(&globs, "/w", "/w/b"));
	/* However the rule is written that makes it one for every depth. */
	assert_true(names_globs_keep_link(&globs, ".git", 4) && names_globs_keep_link(&globs, ".TOOL", 5));
	assert_false(names_globs_keep_link(&globs, ".too", 4) || names_globs_keep_link(&globs, "modules", 7));
	arena_free(&arena);
}

/* Slashes come before dots and dashes, or what lies beneath a directory would not follow it. */
static void test_two_searches_as_one(void **state)
{
	struct name one[] = { { .kind = NAME_MASKED, .path = "a/.env" }, { .kind = NAME_MASKED, .path = "a-b/.env" },
	                      { .kind = NAME_MASKED, .path = "both" }, { .kind = NAME_PROTECTED, .path = "a/hooks" },
	                      { .kind = NAME_PROTECTED, .path = "c" }, { .kind = NAME_SOCKET, .path = "s" } };
	struct name other[] = { { .kind = NAME_MASKED, .path = "a", .is_directory = true },
		                { .kind = NAME_MASKED, .path = "a.txt" },
		                { .kind = NAME_PROTECTED, .path = "both" },
		                { .kind = NAME_PROTECTED, .path = "s" },
		                { .kind = NAME_SOCKET, .path = "s" } };
	static const char *const wanted[] = { "a", "a-b/.env", "a.txt", "both", "c", "s" };
	const struct names first = { .items = one, .count = ARRAY_SIZE(one), .note = "x" };
	const struct names second = { .items = other, .count = ARRAY_SIZE(other), .note = "y", .too_many = true };
	const struct names none = { 0 };
	struct arena arena = { 0 };
	struct names joined;
	(void)state;
	assert_int_equal(names_join(&arena, &first, &second, &joined), 0);
	assert_int_equal(joined.count, ARRAY_SIZE(wanted));
	for (size_t i = 0; i < joined.count; i++)
		assert_string_equal(joined.items[i].path, wanted[i]);
	assert_non_null(names_get(&joined, NAME_MASKED, "both"));
	assert_non_null(names_get(&joined, NAME_SOCKET, "s"));
	assert_string_equal(joined.note, "x; y");
	assert_true(joined.too_many);
	assert_int_equal(names_join(&arena, &none, &none, &joined), 0);
	assert_int_equal(joined.count, 0);
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROW(test_kinds),
		ROW(test_absolute_glob),
		ROW(test_closed_directory),
		ROW(test_directory_to_be_entered_only),
		ROW(test_depth_bomb),
		ROW(test_unusable_root),
		ROW(test_open),
		ROW(test_open_without_openat2),
		ROW(test_exempt),
		ROW_MEMORY(test_kinds),
		ROW_MEMORY(test_absolute_glob),
		ROW_MEMORY(test_closed_directory),
		ROW_MEMORY(test_unusable_root),
		ROW_MEMORY(test_exempt),
		cmocka_unit_test(test_rules_about_a_path),
		cmocka_unit_test(test_two_searches_as_one),
		cmocka_unit_test(test_time_stamps_that_tell_little),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

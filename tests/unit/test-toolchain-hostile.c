/* Variables and links that would make a toolchain of what is none: roots that would show too much are not shown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "host/toolchain-judge.h"
#include "host/toolchain-table.h"
#include "system-has.h"
#include "toolchain-ground.h"

/* Every marker of every row, in every place where it would tempt. */
static void make_tempting(struct ground *ground, const char *directory)
{
	size_t count;
	const struct toolchain *rows = toolchain_rows(&count);
	for (size_t i = 0; i < count; i++)
		for (const char *const *marker = rows[i].markers; *marker; marker++) {
			char path[PATH_MAX];
			snprintf(path, sizeof(path), "%s/%s/", ground_fill(ground, directory), *marker);
			ground_file(path, "");
		}
}

static size_t try_variables(struct ground *ground, const char *value)
{
	size_t count, shown = 0;
	const struct toolchain *rows = toolchain_rows(&count);
	for (size_t i = 0; i < count; i++)
		for (const char *const *place = rows[i].places; *place; place++) {
			const char *variable = *place + (**place == ':');
			if (*variable != '$')
				continue;
			ground->environment[0] =
				arena_printf(&ground->arena, "%.*s=%s%s", (int)strcspn(variable + 1, "/"), variable + 1,
			                     ground_fill(ground, value), strstr(variable, "/../..") ? "/a/b" : "");
			ground->environment[1] = arena_printf(&ground->arena, "PATH=%s", ground_fill(ground, value));
			ground_find(ground, ground->home, rows[i].name);
			for (size_t j = 0; j < ground->found.show.count; j++)
				shown += path_within(ground->found.show.items[j], ground->top) ||
				         path_within(ground->home, ground->found.show.items[j]);
		}
	return shown;
}

static void test_hostile_variables(void **state)
{
	struct ground *ground = *state;
	static const char *const hostile[] = {
		"/", "//", "/.", "/..", "H/", "H/.", "H/../home", "H/..", "T/", "..", ".", "~", "~/", "home", "", ":",
		"/nonexistent", "T/file", "T/to-home", "T/to-top", "T/to-ssh", "T/evil", "H/.ssh", "H/.ssh/sub",
		"H/.config", "H/.local", "H/.local/share", "T/somebody", "/proc/self/cwd",
		"/proc/self/root", "/proc", "/dev", "/home", "/tmp", "/tmp/..",
	};
	static const char *const tempting[] = {
		"H/", "T/", "H/.ssh", "H/.ssh/sub", "H/.config", "H/.local", "H/.local/share", "T/somebody", "T/fine",
	};
	ground_files(ground, "T/file T/somebody/.ssh/id_ed25519 T/to-home->H/ T/to-top->T/ T/to-ssh->H/.ssh "
	             "T/evil/uv->H/ T/evil/mise->H/ T/evil/fnm->H/ T/evil/nvm->H/ T/evil/nix/profile->H/");
	for (size_t i = 0; i < ARRAY_SIZE(tempting); i++)
		make_tempting(ground, tempting[i]);
	assert_int_equal(chdir(ground->home), 0);
	/* The same markers do prove a root where nothing speaks against it. */
	assert_true(try_variables(ground, "T/fine") > 20);
	for (size_t i = 0; i < ARRAY_SIZE(hostile); i++)
		if (try_variables(ground, hostile[i]))
			fail_msg("%s shows %s", hostile[i],
			         ground->found.show.count ? ground->found.show.items[0] : "something");
	assert_int_equal(chdir(HAS_ROOT ? "/" : "/c"), 0);
}

/* A root that commands can write to: its links lead wherever they were made to. */
static void test_writable_roots(void **state)
{
	struct ground *ground = *state;
	struct strings writable = { 0 };
	assert_int_equal(strings_add(&ground->arena, &writable, ground->top), 0);
	make_tempting(ground, "T/fine");
	assert_true(try_variables(ground, "T/fine") > 20);
	ground->writable = &writable;
	assert_int_equal(try_variables(ground, "T/fine"), 0);
	ground->writable = NULL;
}

static void test_hostile_links(void **state)
{
	struct ground *ground = *state;
	ground_files(ground, "H/.ssh/id_rsa H/.ssh/nvm.sh H/.nvm->H/.ssh H/.cargo/bin->H/.ssh H/versions/ H/.pyenv->H/ "
	             "H/.local/share/pipx/venvs->/ H/.tool-versions->H/.ssh/id_rsa H/.asdf/shims/");
	ground_find(ground, ground->home, NULL);
	ground_found(ground, "H/.asdf", "", "ASDF_DATA_DIR=H/.asdf");
	/* A name that holds what the table uses as a sign, and one that no file should have. */
	ground_environment(ground, "VOLTA_HOME=T/a*b NVM_DIR=T/a\tb");
	ground_files(ground, "T/a*b/tools/image/node/v1/etc/npmrc T/a\tb/nvm.sh");
	ground_find(ground, ground->home, NULL);
	ground_same(ground, &ground->found.show, "H/.asdf", true);
}

static void test_judge(void **state)
{
	static const struct {
		const char *path;
		bool may;
	} cases[] = {
		{ "/", false },
		{ "/opt", false },
		{ "/home", false },
		{ "/home/me", false },
		{ "/home/you", false },
		{ "/home/me/.nvm", true },
		{ "/home/me/.ssh", false },
		{ "/home/me/.ssh/x", false },
		{ "/home/me/.sshd", true },
		{ "/home/me/.config", false },
		{ "/home/me/.config/nvm", true },
		{ "/home/me/.local", false },
		{ "/home/me/.local/share", false },
		{ "/home/me/.local/share/uv", true },
		{ "/proc/1", false },
		{ "/var/home/me", false },
		{ "/var/home/me/.aws", false },
		{ "/var/home/me/.bun", true },
		{ "/opt/go", true },
		{ "/var/home", false },
		{ "/home/linuxbrew/.linuxbrew", true },
		{ "/opt/a\nb", false },
	};
	const struct judge judge = { "/home/me", "/var/home/me", NULL };
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (judge_may_name(&judge, cases[i].path) != cases[i].may)
			fail_msg("%s", cases[i].path);
	assert_false(judge_may_name(&(struct judge){ "/", "/", NULL }, "/.ssh/x"));
	assert_true(judge_may_name(&(struct judge){ NULL, NULL, NULL }, "/opt/go"));
	assert_false(judge_may_show(&judge, "/run/user/1000/x", NULL));
}

int main(void)
{
#define ROW(test) cmocka_unit_test_setup_teardown(test, ground_setup, ground_teardown)
	static const struct CMUnitTest tests[] = {
		ROW(test_hostile_variables), ROW(test_writable_roots), ROW(test_hostile_links),
		ROW(test_judge),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

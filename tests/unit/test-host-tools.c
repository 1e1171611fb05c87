/* What is kept of a caller's toolchains says the same as what is looked at anew, after every change: of the home, of
 * the files that name the caller, of the request. */
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/tools.h"

#include <cmocka.h>

#include "base/remove.h"
#include "system-has.h"

static char top[PATH_MAX];

static void sh(const char *script)
{
	char line[PATH_MAX * 2];
	snprintf(line, sizeof(line), "cd %s && { %s; }", top, script);
	assert_int_equal(system(line), 0);
}

static int make(void **state)
{
	char name[] = "/tmp/test-host-tools-XXXXXX";
	(void)state;
	assert_non_null(mkdtemp(name));
	assert_non_null(realpath(name, top));
	sh("mkdir -p home/.cargo/bin home/.pyenv/versions/3 elsewhere work; touch home/.cargo/bin/cargo");
	return 0;
}

static int clean(void **state)
{
	(void)state;
	remove_tree(AT_FDCWD, top);
	return 0;
}

/* All of an answer as text. */
static const char *tell(struct arena *arena, const struct host_tools *tools)
{
	const char *text = arena_printf(arena, "git %s\n", tools->git_config ? tools->git_config : "none");
	for (size_t i = 0; i < tools->shown.count; i++)
		text = arena_printf(arena, "%sshown %s %s %d\n", text, tools->shown.items[i].path,
		                    tools->shown.items[i].source, (int)tools->shown.items[i].kind);
	for (size_t i = 0; i < tools->masked.count; i++)
		text = arena_printf(arena, "%smasked %s %d\n", text, tools->masked.items[i].path,
		                    tools->masked.items[i].is_directory);
	for (size_t i = 0; i < tools->environment.count; i++)
		text = arena_printf(arena, "%sset %s\n", text, tools->environment.items[i]);
	assert_non_null(text);
	return text;
}

static const char *ask(struct arena *arena, struct host_tools_kept *kept, const struct host_tools_request *request)
{
	struct host_tools tools;
	struct cordon_error err;
	assert_int_equal(host_tools_find(arena, kept, request, &tools, &err), 0);
	return tell(arena, &tools);
}

/* One who never saw this before. */
static const char *ask_anew(struct arena *arena, const struct host_tools_request *request)
{
	struct host_watch *host_watch = host_watch_new();
	assert_non_null(host_watch);
	struct host_tools_kept *kept = host_tools_new(host_watch);
	assert_non_null(kept);
	const char *text = ask(arena, kept, request);
	host_tools_free(kept);
	host_watch_free(host_watch);
	return text;
}

static const struct {
	const char *change;
	bool same;              /* nothing of the answer is another */
} changes[] = {
	{ "touch home/.bashrc", true },
	{ "printf '[user]\\nname = A\\n' >home/.gitconfig", false },
	{ "printf '[user]\\nname = B\\n' >home/.gitconfig", false },
	{ "printf '[user]\\nname = C\\n' >home/new; mv home/new home/.gitconfig", false },
	{ "mkdir -p home/.config/git; printf '[user]\\nemail = a@b\\n' >home/.config/git/config", false },
	{ "mv home/.config home/.config2", false },
	{ "mkdir home/.nvm; touch home/.nvm/nvm.sh", false },
	{ "rm home/.nvm/nvm.sh", false },
	{ "mkdir -p home/.nvm/versions/node/v1/etc; touch home/.nvm/versions/node/v1/etc/npmrc", false },
	{ "rm home/.nvm/versions/node/v1/etc/npmrc", false },
	{ "mkdir -p home/.nvm/versions/node/v2/etc; echo //token >home/.nvm/versions/node/v2/etc/npmrc", false },
	{ "mv home/.cargo elsewhere; ln -s ../elsewhere/.cargo home/.cargo", false },
	{ "rm home/.cargo; mkdir -p home/.cargo/bin; touch home/.cargo/bin/cargo", false },
	{ "mkdir home/.pyenv/.ssh", false },
	{ "rmdir home/.pyenv/.ssh", false },
	{ "mkdir home/.pyenv/versions/4; touch home/.pyenv/versions/4/pip.conf", false },
	{ "mv home home2; mkdir home", false },
	{ "rmdir home; mv home2 home", false },
	{ "rm -r home/.pyenv home/.nvm", false },
	{ "touch work/file elsewhere/file", true },
	{ "mkdir -p tools/bin", false },
};

static void a_change_is_seen_at_once(void **state)
{
	(void)state;
	char home[PATH_MAX + 16], tools_dir[PATH_MAX + 16], work[PATH_MAX + 16];
	snprintf(home, sizeof(home), "HOME=%s/home", top);
	snprintf(tools_dir, sizeof(tools_dir), "%s/tools", top);
	snprintf(work, sizeof(work), "%s/work", top);
	const char *const environment[] = { "PATH=/usr/bin:/bin", home, NULL };
	const char *const writable_items[] = { work, NULL };
	const struct strings writable = { .items = (const char **)(uintptr_t)writable_items, .count = 1 };
	const struct host_tools_request request = {
		.environment = environment, .writable = &writable, .workspace = work, .inside_home = "/home/cordon",
		.tools_dir = tools_dir, .mounts = 1,
	};
	struct arena arena = { 0 };
	struct host_watch *host_watch = host_watch_new();
	assert_non_null(host_watch);
	struct host_tools_kept *kept = host_tools_new(host_watch);
	assert_non_null(kept);
	const char *before = ask(&arena, kept, &request);
	assert_string_equal(before, ask(&arena, kept, &request));
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		if (!HAS_LINKS && strstr(changes[i].change, "home/.cargo"))
			continue;
		sh(changes[i].change);
		host_watch_poll(host_watch);
		const char *after = ask(&arena, kept, &request), *anew = ask_anew(&arena, &request);
		if (strcmp(after, anew) || !strcmp(after, before) != changes[i].same)
			fail_msg("%s: kept\n%sand found\n%s", changes[i].change, after, anew);
		assert_string_equal(ask(&arena, kept, &request), anew);
		before = after;
	}
	host_tools_free(kept);
	host_watch_free(host_watch);
	arena_free(&arena);
}

/* More kinds of them than are kept, in turn. */
static void each_request_has_its_own_answer(void **state)
{
	(void)state;
	enum { PEOPLE = 11 };
	char names[PEOPLE][64], home[PATH_MAX + 16];
	struct arena arena = { 0 };
	struct host_watch *host_watch = host_watch_new();
	assert_non_null(host_watch);
	struct host_tools_kept *kept = host_tools_new(host_watch);
	assert_non_null(kept);
	snprintf(home, sizeof(home), "HOME=%s/home", top);
	for (int time = 0; time < 3; time++)
		for (size_t i = 0; i < PEOPLE; i++) {
			snprintf(names[i], sizeof(names[i]), "GIT_AUTHOR_NAME=the %zuth", i);
			const char *const environment[] = { home, names[i], NULL };
			const struct host_tools_request request = {
				.environment = environment, .workspace = "/nowhere", .inside_home = i % 2 ? "/a" : "/b",
				.only_tools_dir = i == 4, .user = (unsigned)i, .mounts = (uint64_t)time,
			};
			const char *text = ask(&arena, kept, &request);
			assert_int_equal(!!strstr(text, names[i] + strlen("GIT_AUTHOR_NAME=")), i != 4);
			assert_int_equal(!!strstr(text, ".cargo/bin"), i != 4);
			assert_string_equal(text, ask_anew(&arena, &request));
		}
	host_tools_free(kept);
	host_watch_free(host_watch);
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_change_is_seen_at_once, make, clean),
		cmocka_unit_test_setup_teardown(each_request_has_its_own_answer, make, clean),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Which package caches a home has: the table, and what is none. */
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

#include "base/text.h"
#include "host/cache.h"

#include <cmocka.h>

#include "arena-ground.h"
#include "system-has.h"

static char base[64], home[96];

static int setup(void **state)
{
	(void)state;
	strcpy(base, "/tmp/host-cache-XXXXXX");
	if (!mkdtemp(base))
		return -1;
	snprintf(home, sizeof(home), "%s/home", base);
	return mkdir(home, 0700);
}

static int teardown(void **state)
{
	char command[128];
	snprintf(command, sizeof(command), "rm -rf %s", base);
	return system(command) == 0 ? free_arena(state) : -1;
}

static const char *make(const char *root, const char *path)
{
	const char *whole = arena_printf(&arena, "%s/%s", root, path);
	char command[512];
	snprintf(command, sizeof(command), "mkdir -p '%s'", whole);
	assert_int_equal(system(command), 0);
	return whole;
}

static struct host_cache_answer find(const char *const *environment, const struct strings *writable)
{
	struct host_cache_answer answer;
	const struct host_cache_search search = {
		.home = home, .environment = environment, .writable = writable, .inside_home = "/home/inside"
	};
	assert_int_equal(host_cache_find(&arena, &search, &answer), 0);
	return answer;
}

static void test_usual_places(void **state)
{
	(void)state;
	static const char *const usual[][3] = {
		{ "npm", ".npm/_cacache", ".npm/_cacache" },
		{ "yarn", ".cache/yarn", ".cache/yarn" },
		{ "yarn-berry", ".yarn/berry/cache", ".yarn/berry/cache" },
		{ "pnpm", ".local/share/pnpm/store", ".local/share/pnpm/store" },
		{ "bun", ".bun/install/cache", ".bun/install/cache" },
		{ "pip", ".cache/pip", ".cache/pip" },
		{ "uv", ".cache/uv", ".cache/uv" },
		{ "cargo", ".cargo/registry", ".cargo/registry" },
		{ "cargo-git", ".cargo/git", ".cargo/git" },
		{ "go", "go/pkg/mod", "go/pkg/mod" },
		{ "go-build", ".cache/go-build", ".cache/go-build" },
		{ "maven", ".m2/repository", ".m2/repository" },
		{ "gradle", ".gradle/caches", ".gradle/caches" },
		{ "gradle-wrapper", ".gradle/wrapper/dists", ".gradle/wrapper/dists" },
		{ "ccache", ".ccache", ".cache/ccache" },
	};
	assert_int_equal(find(NULL, NULL).caches.count, 0);
	for (size_t i = 0; i < ARRAY_SIZE(usual); i++)
		make(home, usual[i][1]);
	struct host_cache_answer answer = find(NULL, NULL);
	assert_int_equal(answer.caches.count, ARRAY_SIZE(usual));
	for (size_t i = 0; i < ARRAY_SIZE(usual); i++) {
		const struct host_cache *cache = &answer.caches.items[i];
		struct stat info;
		assert_string_equal(cache->name, usual[i][0]);
		assert_string_equal(cache->source, arena_printf(&arena, "%s/%s", home, usual[i][1]));
		assert_string_equal(cache->target, arena_printf(&arena, "/home/inside/%s", usual[i][2]));
		assert_true(stat(cache->source, &info) == 0 && info.st_ino == cache->inode &&
		            info.st_dev == cache->device);
		/* No two are one, nor one in another. */
		for (size_t j = 0; j < i; j++)
			assert_true(strcmp(cache->name, answer.caches.items[j].name) &&
			            !path_within(cache->target, answer.caches.items[j].target) &&
			            !path_within(answer.caches.items[j].target, cache->target));
	}
	assert_int_equal(answer.environment.count, 1);
	assert_string_equal(answer.environment.items[0], "UV_LINK_MODE=copy");
}

static void test_variables(void **state)
{
	(void)state;
	const char *elsewhere = make(base, "modules");
	make(home, "go/pkg/mod");
	const char *const set[] = { arena_printf(&arena, "GOMODCACHE=%s", elsewhere), NULL };
	const char *const list[] = { arena_printf(&arena, "GOPATH=%s:/nowhere", make(base, "go")), NULL };
	const char *const bad[] = { "GOMODCACHE=relative", "GOPATH=", "npm_config_cache=/nowhere\n", NULL };
	make(base, "go/pkg/mod");
	assert_string_equal(find(set, NULL).caches.items[0].source, elsewhere);
	assert_string_equal(find(list, NULL).caches.items[0].source, arena_printf(&arena, "%s/go/pkg/mod", base));
	struct host_cache_answer answer = find(bad, NULL);
	assert_int_equal(answer.caches.count, 1);
	assert_string_equal(answer.caches.items[0].source, arena_printf(&arena, "%s/go/pkg/mod", home));
}

static void test_what_is_none(void **state)
{
	(void)state;
	make(home, ".ssh");
	make(home, ".cache");
	make(home, ".npm");
	if (HAS_LINKS) {
		assert_int_equal(symlink(home, arena_printf(&arena, "%s/.cache/pip", home)), 0);
		assert_int_equal(symlink("/", arena_printf(&arena, "%s/.cache/uv", home)), 0);
		assert_int_equal(symlink("../.ssh", arena_printf(&arena, "%s/.npm/_cacache", home)), 0);
	}
	assert_int_equal(close(open(arena_printf(&arena, "%s/.ccache", home), O_CREAT | O_WRONLY, 0600)), 0);
	assert_int_equal(find(NULL, NULL).caches.count, 0);
	/* What can be written already, a part of it, or what it is a part of. */
	const char *cache = make(home, ".m2/repository");
	const char *const writable[] = { cache, make(home, ".m2/repository/part"),
		                         arena_printf(&arena, "%s/.m2", home) };
	assert_int_equal(find(NULL, NULL).caches.count, 1);
	for (size_t i = 0; i < ARRAY_SIZE(writable); i++) {
		struct strings list = { 0 };
		assert_int_equal(strings_add(&arena, &list, writable[i]), 0);
		assert_int_equal(find(NULL, &list).caches.count, 0);
	}
}

static void test_masks(void **state)
{
	(void)state;
	make(home, ".ccache");
	assert_int_equal(find(NULL, NULL).mask.count, 0);
	assert_int_equal(close(open(arena_printf(&arena, "%s/.ccache/ccache.conf", home), O_CREAT | O_WRONLY, 0600)),
	                 0);
	struct host_cache_answer answer = find(NULL, NULL);
	assert_int_equal(answer.mask.count, 1);
	assert_string_equal(answer.mask.items[0], "/home/inside/.cache/ccache/ccache.conf");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_usual_places, setup, teardown),
		cmocka_unit_test_setup_teardown(test_variables, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_is_none, setup, teardown),
		cmocka_unit_test_setup_teardown(test_masks, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

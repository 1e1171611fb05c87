/* Path globs: what matches, what does not, and that nothing takes long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/glob.h"
#include "cordon-internal.h"

static const struct {
	const char *pattern, *path;
	bool matches;
} rows[] = {
	{ "**/.env", ".env", true },
	{ "**/.env", "a/b/.env", true },
	{ "**/.env", "a/.envrc", false },
	{ "**/.env", ".env/a", false },
	{ "**/.env.*", "a/.env.local", true },
	{ "**/.env.*", "a/.env.", true },
	{ "**/.env.*", "a/.env", false },
	{ "**/*.pem", "key.pem", true },
	{ "**/*.pem", ".pem", true },
	{ "**/*.pem", "key.pem.txt", false },
	{ "**/id_rsa*", "x/id_rsa.pub", true },
	{ "**/id_rsa*", "x/my_id_rsa", false },
	{ "**/.ssh", "home/.ssh", true },
	{ "**/.ssh", "home/.ssh/config", false },
	{ "**/.ssh/**", "home/.ssh/config", true },
	{ "**/.ssh/**", "home/.ssh", false },
	{ "/home/me/x/**", "/home/me/x/y/z", true },
	{ "/home/me/x/**", "/home/me/x", false },
	{ "/home/me/x/**", "/home/me/xy/z", false },
	{ "/home/*/x", "/home/me/x", true },
	{ "/home/*/x", "/home/me/you/x", false },
	{ "a/**/b/**/c", "a/b/c", true },
	{ "a/**/b/**/c", "a/x/b/y/z/b/c", true },
	{ "a/**/b/**/c", "a/x/c", false },
	{ "a/b", "a/b", true },
	{ "a/b", "x/a/b", false },
	{ "secret", "deep/down/secret", true },
	{ "*.key", "deep/down/a.key", true },
	{ "a//./b/", "a/b", true },
	{ "a/?c", "a/bc", true },
	{ "a/?c", "a//c", false },
	{ "a/[a-c]x", "a/bx", true },
	{ "a/[!a-c]x", "a/bx", false },
	{ "a/[^a-c]x", "a/dx", true },
	{ "a/[]x]y", "a/]y", true },
	{ "a/[b", "a/[b", true },
	{ "a/\\*", "a/*", true },
	{ "a/\\*", "a/b", false },
	{ "a/b\\", "a/b\\", true },
	{ "a/x**y", "a/x1y", true },
	{ "a/x**y", "a/x/y", false },
	{ "**", "a", true },
	{ "**", "a/b", true },
	{ "**/a/*", "a/a", true },
	{ "**/a/*", "a", false },
	{ "**/b*d", "x/b\n\xff" "d", true },
};

static struct glob compile(struct arena *arena, const char *pattern, unsigned options)
{
	struct glob glob;
	struct cordon_error err;
	assert_int_equal(glob_compile(arena, pattern, options, &glob, &err), 0);
	return glob;
}

static void test_rows(void **state)
{
	(void)state;
	struct arena arena = { 0 };
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct glob glob = compile(&arena, rows[i].pattern, 0);
		if (glob_match(&glob, rows[i].path) != rows[i].matches)
			fail_msg("%s against %s", rows[i].pattern, rows[i].path);
		const char *slash = strrchr(rows[i].path, '/'), *name = slash ? slash + 1 : rows[i].path;
		bool by_name = glob_match_name(&glob, name, strlen(name));
		if (rows[i].matches || glob.anywhere)
			assert_int_equal(by_name, rows[i].matches);
	}
	arena_free(&arena);
}

static void test_shapes(void **state)
{
	(void)state;
	static const struct {
		const char *pattern;
		enum glob_shape shape;
		bool anywhere;
	} shapes[] = {
		{ "**/.env", GLOB_LITERAL, true },      { ".env", GLOB_LITERAL, true },
		{ "**/.env.*", GLOB_PREFIX, true },     { "**/*.pem", GLOB_SUFFIX, true },
		{ "**/a*b", GLOB_GENERAL, true },       { "**/[ab]", GLOB_GENERAL, true },
		{ "**/*", GLOB_ANY, true },             { "/x/**", GLOB_ANY, false },
		{ "**/.git/hooks", GLOB_LITERAL, false }, { "/**/.env", GLOB_LITERAL, true },
		{ "**/**", GLOB_ANY, false },           { "**/\\*", GLOB_GENERAL, true },
	};
	struct arena arena = { 0 };
	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
		struct glob glob = compile(&arena, shapes[i].pattern, 0);
		assert_int_equal(glob.shape, shapes[i].shape);
		assert_int_equal(glob.anywhere, shapes[i].anywhere);
	}
	arena_free(&arena);
}

static void test_case(void **state)
{
	(void)state;
	struct arena arena = { 0 };
	struct glob glob = compile(&arena, "**/.git/Hooks", GLOB_FOLD_CASE);
	assert_true(glob_match(&glob, "a/.GIT/hooKS"));
	assert_true(glob_match_name(&glob, "HOOKS", 5));
	struct glob exact = compile(&arena, "**/.git/hooks", 0);
	assert_false(glob_match(&exact, "a/.GIT/hooks"));
	struct glob set = compile(&arena, "**/[A-C]x", GLOB_FOLD_CASE);
	assert_true(glob_match(&set, "bX"));
	arena_free(&arena);
}

static void test_reaches(void **state)
{
	(void)state;
	static const struct {
		const char *pattern, *root;
		bool reaches;
	} reach[] = {
		{ "/home/me/x/**", "/home/me", true }, { "/home/me/x/**", "/home/me/x/deep", true },
		{ "/home/me/x/**", "/srv", false },    { "/home/*/x", "/home/you", true },
		{ "/home/me", "/home/me", false },     { "/**/x", "/srv", true },
		{ "**/x", "/srv", true },              { "/a", "/", true },
	};
	struct arena arena = { 0 };
	for (size_t i = 0; i < ARRAY_SIZE(reach); i++) {
		struct glob glob = compile(&arena, reach[i].pattern, 0);
		if (glob_reaches(&glob, reach[i].root) != reach[i].reaches)
			fail_msg("%s in %s", reach[i].pattern, reach[i].root);
	}
	arena_free(&arena);
}

static void test_refused(void **state)
{
	(void)state;
	static char long_one[GLOB_LENGTH_MAX + 2];
	memset(long_one, 'a', sizeof(long_one) - 1);
	const char *const refused[] = { "", "/", ".", "a/../b", "..", long_one };
	struct arena arena = { 0 };
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		struct glob glob;
		struct cordon_error err = { 0 };
		assert_int_equal(glob_compile(&arena, refused[i], 0, &glob, &err), -1);
		assert_int_equal(err.class, CORDON_E_CONFIG_INVALID);
	}
	arena_free(&arena);
}

static void test_bounded(void **state)
{
	(void)state;
	struct arena arena = { 0 };
	char pattern[GLOB_LENGTH_MAX + 1], path[4096];
	for (size_t i = 0; i < 1020; i += 4)
		memcpy(pattern + i, i % 8 ? "*a*/" : "**/a", 4);
	strcpy(pattern + 1020, "b");
	for (size_t i = 0; i < 4094; i += 2)
		memcpy(path + i, "a/", 2);
	strcpy(path + 4094, "a");
	clock_t start = clock();
	struct glob glob = compile(&arena, pattern, 0);
	assert_false(glob_match(&glob, path));
	memset(path, 'a', 255);
	path[255] = '\0';
	glob = compile(&arena, "**/*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*ab", 0);
	assert_false(glob_match(&glob, path));
	assert_true(clock() - start < CLOCKS_PER_SEC);
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),    cmocka_unit_test(test_shapes),  cmocka_unit_test(test_case),
		cmocka_unit_test(test_reaches), cmocka_unit_test(test_refused), cmocka_unit_test(test_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Units, numbers, spellings and paths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/text.h"

#define REFUSED UINT64_MAX

static void sizes(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint64_t bytes;
	} rows[] = {
		{ "0", 0 },
		{ "100", 100 },
		{ "100B", 100 },
		{ "64k", 65536 },
		{ "64K", 65536 },
		{ "64kB", 65536 },
		{ "64KiB", 65536 },
		{ "512M", 512ull << 20 },
		{ "2G", 2ull << 30 },
		{ "2gib", 2ull << 30 },
		{ "3T", 3ull << 40 },
		{ "18446744073709551614", UINT64_MAX - 1 },
		{ "16777215T", 16777215ull << 40 },
		{ "", REFUSED },
		{ "k", REFUSED },
		{ "-1", REFUSED },
		{ "+1", REFUSED },
		{ " 1", REFUSED },
		{ "1 ", REFUSED },
		{ "1 k", REFUSED },
		{ "1.5G", REFUSED },
		{ "0x10", REFUSED },
		{ "1kk", REFUSED },
		{ "1i", REFUSED },
		{ "18446744073709551616", REFUSED },
		{ "99999999999999999999999", REFUSED },
		{ "16777216T", REFUSED },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint64_t bytes = 77;
		bool parsed = text_parse_size(rows[i].text, &bytes);
		if (parsed != (rows[i].bytes != REFUSED) || bytes != (parsed ? rows[i].bytes : 77))
			fail_msg("%s: %d %llu", rows[i].text, parsed, (unsigned long long)bytes);
	}
}

static void durations(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint64_t ms;
	} rows[] = {
		{ "90", 90000 },
		{ "60s", 60000 },
		{ "1500ms", 1500 },
		{ "2m", 120000 },
		{ "2min", 120000 },
		{ "1h", 3600000 },
		{ "0", 0 },
		{ "1d", REFUSED },
		{ "", REFUSED },
		{ "s", REFUSED },
		{ "1.5s", REFUSED },
		{ "18446744073709551615", REFUSED },
		{ "18446744073709551614ms", UINT64_MAX - 1 },
		{ "-1s", REFUSED },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint64_t ms = 77;
		bool parsed = text_parse_duration(rows[i].text, &ms);
		if (parsed != (rows[i].ms != REFUSED) || ms != (parsed ? rows[i].ms : 77))
			fail_msg("%s: %d %llu", rows[i].text, parsed, (unsigned long long)ms);
	}
}

static void numbers(void **state)
{
	(void)state;
	uint64_t number = 77;
	assert_true(text_parse_number("0", 0, &number));
	assert_int_equal(number, 0);
	assert_true(text_parse_number("007", 10, &number));
	assert_int_equal(number, 7);
	assert_true(text_parse_number("18446744073709551615", UINT64_MAX, &number));
	assert_true(number == UINT64_MAX);
	number = 77;
	assert_false(text_parse_number("11", 10, &number));
	assert_false(text_parse_number("18446744073709551616", UINT64_MAX, &number));
	assert_false(text_parse_number("5x", 10, &number));
	assert_false(text_parse_number("", 10, &number));
	assert_false(text_parse_number("-0", 10, &number));
	assert_int_equal(number, 77);
}

static void nearest_spelling(void **state)
{
	(void)state;
	static char long_a[301], long_b[301];
	memset(long_a, 'a', 300);
	memset(long_b, 'b', 300);
	const char *const words[] = { "timeout", "memory", "network", "workspace", "net", "wsl", long_b };
	static const struct {
		const char *word, *nearest;
	} rows[] = {
		{ "timeot", "timeout" }, { "tiemout", "timeout" }, { "memroy", "memory" }, { "netwrok", "network" },
		{ "timeout", "timeout" }, { "worksapce", "workspace" }, { "xyz", NULL }, { "", NULL }, { "m", NULL },
		{ long_a, NULL }, { "nte", "net" }, { "why", NULL },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *nearest = text_nearest(rows[i].word, words, ARRAY_SIZE(words));
		if (!nearest != !rows[i].nearest || (nearest && strcmp(nearest, rows[i].nearest)))
			fail_msg("%s: %s", rows[i].word, nearest ? nearest : "none");
	}
	assert_null(text_nearest("timeout", NULL, 0));
}

static void control_characters(void **state)
{
	(void)state;
	assert_false(text_has_control(""));
	assert_false(text_has_control("caf\xc3\xa9 ~"));
	assert_true(text_has_control("a\n"));
	assert_true(text_has_control("\x1b[0m"));
	assert_true(text_has_control("a\x7f"));
	assert_true(text_has_control("\x01"));
}

static void paths_are_normalised(void **state)
{
	(void)state;
	static const char *const rows[][2] = {
		{ "/", "/" }, { "//", "/" }, { "/.", "/" }, { "/..", "/" }, { "/../..", "/" }, { "/a", "/a" },
		{ "/a/", "/a" }, { "//a//b//", "/a/b" }, { "/a/./b", "/a/b" }, { "/a/../b", "/b" }, { "/a/b/..", "/a" },
		{ "/a/b/../..", "/" }, { "/a/b/../../../c", "/c" }, { "/a/...", "/a/..." }, { "/a/..b", "/a/..b" },
		{ "/a/.b/", "/a/.b" }, { "/a/b/../../../../etc/passwd", "/etc/passwd" }, { "/a/. /b", "/a/. /b" },
	};
	struct arena arena = { 0 };
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char *once = path_normalise(&arena, rows[i][0]);
		assert_string_equal(once, rows[i][1]);
		assert_string_equal(path_normalise(&arena, once), once);
	}
	assert_null(path_normalise(&arena, ""));
	assert_null(path_normalise(&arena, "a/b"));
	assert_null(path_normalise(&arena, "~/a"));
	arena_free(&arena);
}

static void beneath_is_by_component(void **state)
{
	(void)state;
	static const struct {
		const char *path, *root;
		bool within;
	} rows[] = {
		{ "/data/a", "/data/a", true },
		{ "/data/a/b", "/data/a", true },
		{ "/data/ab", "/data/a", false },
		{ "/data", "/data/a", false },
		{ "/", "/", true },
		{ "/x", "/", true },
		{ "/", "/x", false },
		{ "/data/a", "", false },
		{ "/data/a", ".", false },
		{ "/data/a", "d", false },
		{ "", "", false },
		{ "/data/A", "/data/a", false },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (path_within(rows[i].path, rows[i].root) != rows[i].within)
			fail_msg("%s in %s", rows[i].path, rows[i].root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(durations),
		cmocka_unit_test(numbers),
		cmocka_unit_test(nearest_spelling),
		cmocka_unit_test(control_characters),
		cmocka_unit_test(paths_are_normalised),
		cmocka_unit_test(beneath_is_by_component),
	};
	return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}

/* Regular expressions: what they match, what is refused, and that none takes long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/error.h"
#include "files/pattern.h"

#include <cmocka.h>

static const struct {
	const char *pattern, *line;
	bool matches;
} rows[] = {
	{ "abc", "xxabcxx", true },             { "abc", "ab", false },
	{ "^abc$", "abc", true },               { "^abc$", "abcd", false },
	{ "a.c", "abc", true },                 { "a.c", "a\xc3\xa9" "c", true },
	{ "^...$", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", true },      { "^..$", "\xc3\xa9", false },
	{ "ab*c", "ac", true },                 { "ab+c", "ac", false },
	{ "ab?c", "abbc", false },              { "ab{2}c", "abbc", true },
	{ "ab{2,}c", "abc", false },            { "ab{2,}c", "abbbbc", true },
	{ "ab{1,2}c", "abbbc", false },         { "ab{0}c", "ac", true },
	{ "a{,2}", "a{,2}", true },             { "x{a}", "x{a}", true },
	{ "(ab|cd)+e", "abcde", true },         { "(ab|cd)+e", "e", false },
	{ "(?:a|b|)c", "c", true },             { "a||b", "zzz", true },
	{ "\\bfoo\\b", "a foo b", true },       { "\\bfoo\\b", "afoo b", false },
	{ "\\Bfoo", "afoo", true },             { "\\Bfoo", "foo", false },
	{ "\\d+\\s\\w+", "12 ab", true },       { "\\D", "12", false },
	{ "\\D", "1\xc3\xa9", true },           { "\\W", "ab_1", false },
	{ "[a-c]x", "bx", true },               { "[^a-c]x", "bx", false },
	{ "[^a]", "\xe2\x82\xac", true },       { "[]a]", "]", true },
	{ "[^]a]", "]", false },                { "[a-]", "-", true },
	{ "[\\d.]+$", "1.2", true },            { "[[:alpha:]_]+$", "ab_", true },
	{ "[\xc3\xa9]", "caf\xc3\xa9", true },  { "^[\xc3\xa9]$", "\xc3", false },
	{ "\\x41\\x{20ac}", "A\xe2\x82\xac", true },    { "\\xff", "\xff", true },
	{ "(?i)FOO", "a fOo", true },           { "FOO", "foo", false },
	{ "\\.c$", "a.c", true },               { "\\.c$", "axc", false },
	{ "a*?b", "aab", true },                { "(a*)*", "", true },
	{ "(a*)*b", "aaaa", false },            { "$", "abc", true },
	{ "^", "", true },                      { "a$b", "a$b", false },
	{ "(^a|b)c", "bc", true },              { "(^a|b)c", "xac", false },
	{ "foo.*bar", "foo and bar", true },    { "foo.*bar", "bar and foo", false },
	{ "\xff", "\xff", true },               { "a.b", "a\xff" "b", true },
};

static bool matches(const char *pattern, unsigned options, const char *line)
{
	struct arena arena = { 0 };
	struct pattern *compiled;
	struct cordon_error err;
	if (pattern_compile(&arena, pattern, strlen(pattern), options, &compiled, &err) < 0)
		fail_msg("%s: %s", pattern, err.reason);
	size_t length;
	const char *required = pattern_required(compiled, &length);
	bool found = pattern_match(compiled, line, strlen(line));
	/* And what is said to be required is. */
	if (found && required && !memmem(line, strlen(line), required, length))
		fail_msg("%s: %s has no %.*s", pattern, line, (int)length, required);
	arena_free(&arena);
	return found;
}

static void rows_hold(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (matches(rows[i].pattern, 0, rows[i].line) != rows[i].matches)
			fail_msg("%s: %s", rows[i].pattern, rows[i].line);
	assert_true(matches("a.b*(", PATTERN_LITERAL, "xa.b*("));
	assert_false(matches("a.b", PATTERN_LITERAL, "axb"));
	assert_true(matches("a.B", PATTERN_LITERAL | PATTERN_FOLD_CASE, "A.b"));
}

static void what_is_not_understood(void **state)
{
	static const char *const patterns[] = {
		"",
		"(",
		")",
		"a)",
		"(a",
		"*a",
		"+",
		"a|*",
		"[",
		"[a",
		"[z-a]",
		"[a-\\d]",
		"\\",
		"\\1",
		"\\p{L}",
		"(?=a)",
		"(?<!a)",
		"(?P<n>a)",
		"a{2,1}",
		"a{1001}",
		"(((a{1000}){1000}){1000})",
		"(((){1000}){1000}){1000}",
		"[[:nothing:]]",
		"\\x4",
		"\\x{110000}",
		"\\x{d800}",
		"[\xc3\xa0-\xc3\xa9]",
		"[^\xc3\xa9]",
		"a{2}{2}{2}{2}{2}{2}{2}{2}{2}",
	};
	(void)state;
	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		struct arena arena = { 0 };
		struct pattern *compiled;
		struct cordon_error err = { 0 };
		if (pattern_compile(&arena, patterns[i], strlen(patterns[i]), 0, &compiled, &err) == 0)
			fail_msg("%s is taken", patterns[i]);
		assert_int_equal(err.class, CORDON_E_INVALID_REQUEST);
		arena_free(&arena);
	}
	char deep[PATTERN_LENGTH_MAX];
	memset(deep, '(', sizeof(deep));
	struct arena arena = { 0 };
	struct pattern *compiled;
	assert_int_equal(pattern_compile(&arena, deep, sizeof(deep), 0, &compiled, NULL), -1);
	arena_free(&arena);
}

/* Each of these takes a backtracking matcher for ever. */
static void none_takes_long(void **state)
{
	static const char *const patterns[] = { "(a*)*b",   "(a|a)*b",           "(a|aa)+$b",   "^(.*a){20}b",
		                                "(x+x+)+y", "(.*)(.*)(.*)(.*)b", "a?{50}a{50}b" };
	enum { SIZE = 20000 };
	static char line[SIZE + 1];
	(void)state;
	memset(line, 'a', SIZE);
	clock_t start = clock();
	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
		assert_false(matches(patterns[i], 0, line));
	/* Of processor time; a second is a hundred times what it takes. */
	assert_true((clock() - start) / CLOCKS_PER_SEC < 20);
}

static bool count_down(const void *arg)
{
	return --**(int *const *)arg <= 0;
}

/* A line of the longest that is looked at, against a pattern with as many ways as there may be, is left when the time
 * is over; so are those after it. */
static void a_match_is_ended(void **state)
{
	enum { SIZE = 1 << 20 };
	static char line[SIZE];
	struct arena arena = { 0 };
	struct pattern *compiled;
	struct cordon_error err;
	int left = 3, *place = &left;
	(void)state;
	memset(line, 'a', SIZE);
	line[SIZE - 1] = 'b';
	assert_int_equal(pattern_compile(&arena, "(a?){900}a{900}b", 16, 0, &compiled, &err), 0);
	pattern_set_end(compiled, count_down, &place);
	assert_false(pattern_match(compiled, line, SIZE));
	assert_true(pattern_was_ended(compiled) && left == 0);
	assert_false(pattern_match(compiled, line + SIZE - 901, 901));
	/* With time it is found, and asked for as long as it takes. */
	left = 1000;
	pattern_set_end(compiled, count_down, &place);
	assert_true(pattern_match(compiled, line + SIZE - 2001, 2001));
	assert_true(!pattern_was_ended(compiled) && left < 1000);
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_hold),
		cmocka_unit_test(what_is_not_understood),
		cmocka_unit_test(none_takes_long),
		cmocka_unit_test(a_match_is_ended),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

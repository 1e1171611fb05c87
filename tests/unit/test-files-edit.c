/* Replacing text in a text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "files/edit.h"

#include <cmocka.h>

static const struct {
	const char *text, *old, *new;
	bool all;
	const char *expected;           /* NULL: refused as `class` */
	enum cordon_class class;
	size_t count;
} rows[] = {
	{ "one two three", "two", "2", false, "one 2 three", 0, 1 },
	{ "a a a", "a", "b", true, "b b b", 0, 3 },
	{ "a a a", "a", "b", false, NULL, CORDON_E_INVALID_REQUEST, 0 },
	{ "aaa", "aa", "b", false, NULL, CORDON_E_INVALID_REQUEST, 0 },        /* two places, that overlap */
	{ "aaa", "aa", "b", true, "ba", 0, 1 },
	{ "abc", "x", "y", false, NULL, CORDON_E_NOT_FOUND, 0 },
	{ "abc", "", "y", false, NULL, CORDON_E_INVALID_REQUEST, 0 },
	{ "abc", "b", "b", false, NULL, CORDON_E_INVALID_REQUEST, 0 },
	{ "", "b", "c", false, NULL, CORDON_E_NOT_FOUND, 0 },
	{ "abc", "abc", "", false, "", 0, 1 },
	{ "a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\n", false, "x\r\ny\r\nc\r\n", 0, 1 },
	{ "a\r\nb\r\n", "a\r\nb", "c\r\nd", false, "c\r\nd\r\n", 0, 1 },
	{ "a\r\nb\r\n", "a", "x\ny", false, "x\r\ny\r\nb\r\n", 0, 1 },
	{ "a\nb\n", "a\nb", "x\ny", false, "x\ny\n", 0, 1 },
	{ "a\r\nb\r\nc\nd\r\n", "c\nd", "e", false, "a\r\nb\r\ne\r\n", 0, 1 },  /* this one line ends otherwise */
	{ "caf\xe9 \xff", "\xe9", "e", false, "cafe \xff", 0, 1 },
};

static void rows_hold(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct edit edit = { rows[i].old, rows[i].new, strlen(rows[i].old), strlen(rows[i].new),
			                   rows[i].all };
		struct edited edited = { 0 };
		struct cordon_error err = { 0 };
		int result = edit_apply(rows[i].text, strlen(rows[i].text), &edit, "file", &edited, &err);
		if (rows[i].expected
		            ? result < 0 || strcmp(edited.data, rows[i].expected) != 0 || edited.count != rows[i].count
		            : result == 0 || err.class != (int)rows[i].class)
			fail_msg("row %zu: %d %s %s", i, result, result ? err.reason : edited.data,
			         cordon_class_name(err.class));
		free(edited.data);
	}
}

static void where_they_are_is_told(void **state)
{
	struct edited edited;
	struct cordon_error err;
	(void)state;
	assert_int_equal(edit_apply("x\ny\nx\n", 6, &(struct edit){ "x", "z", 1, 1, false }, "file", &edited, &err),
	                 -1);
	assert_non_null(strstr(err.reason, "2 times"));
	assert_non_null(strstr(err.reason, "lines 1 and 3"));
	assert_int_equal(edit_apply("x\ny\nz\n", 6, &(struct edit){ "z", "x", 1, 1, false }, "file", &edited, &err), 0);
	assert_int_equal(edited.line, 3);
	free(edited.data);
}

static void nothing_takes_long_or_much(void **state)
{
	/* A sanitizer's memmem() compares at each place: quadratic in the size, for which half a megabyte is enough. */
	const size_t SIZE = getenv("CORDON_SANITIZED") ? (size_t)512 << 10 : (size_t)8 << 20;
	struct edited edited;
	struct cordon_error err;
	auto_free char *text = malloc(SIZE);
	(void)state;
	memset(text, 'a', SIZE);
	time_t start = time(NULL);
	assert_int_equal(edit_apply(text, SIZE, &(struct edit){ text, "b", SIZE / 2, 1, false }, "file", &edited, &err),
	                 -1);
	assert_int_equal(err.class, CORDON_E_INVALID_REQUEST);
	/* Each byte would become a thousand. */
	assert_int_equal(edit_apply(text, SIZE, &(struct edit){ "a", text, 1, 1000, true }, "file", &edited, &err), -1);
	assert_int_equal(err.class, CORDON_E_LIMIT_EXCEEDED);
	assert_true(time(NULL) - start < 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_hold),
		cmocka_unit_test(where_they_are_is_told),
		cmocka_unit_test(nothing_takes_long_or_much),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

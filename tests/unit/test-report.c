/* What untrusted text looks like in a message, and which status an error has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "door/cli/report.h"

static const struct {
	const char *text, *printed;
} rows[] = {
	{ "", "" },
	{ "plain text, 100 %", "plain text, 100 %" },
	{ "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80" },
	{ "a\nb\tc\rd", "a\\x0ab\\x09c\\x0dd" },
	{ "\x1b[31mred\x07", "\\x1b[31mred\\x07" },
	{ "\x7f", "\\x7f" },
	{ "\xc2\x9b" "31m", "\\u{9b}31m" },
	{ "\xe2\x80\xaegpj.exe", "\\u{202e}gpj.exe" },
	{ "a\xe2\x80\x8b" "b", "a\\u{200b}b" },
	{ "\xef\xbb\xbf", "\\u{feff}" },
	{ "\xf3\xa0\x81\x81", "\\u{e0041}" },
	{ "\xff\xc3", "\\xff\\xc3" },
	{ "\xc0\xaf", "\\xc0\\xaf" },
	{ "\xed\xa0\x80", "\\xed\\xa0\\x80" },
	{ "\xe2\x80", "\\xe2\\x80" },
};

static void test_untrusted(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char *text = NULL;
		size_t length;
		FILE *out = open_memstream(&text, &length);
		report_untrusted(out, rows[i].text);
		fclose(out);
		assert_string_equal(text, rows[i].printed);
		free(text);
	}
}

static void test_statuses(void **state)
{
	(void)state;
	for (int class = CORDON_OK + 1; class < CORDON_CLASS_MAX; class++) {
		struct cordon_error err = { .class = class };
		int expected = class == CORDON_E_PROGRAM_NOT_FOUND     ? 127
		               : class == CORDON_E_PROGRAM_NOT_ALLOWED ? 126
		                                                       : 125;
		assert_int_equal(report_error_status(&err), expected);
	}
}

/* What came, what was kept of it, whether that is not all, and what is said. */
static const struct {
	uint64_t total;
	size_t kept;
	bool truncated;
	const char *said;
} cuts[] = {
	{ 100, 100, false, "" },
	{ 28, 24, false, "" },
	{ 24, 28, false, "" },
	{ 100, 60, true, "cordon: standard output cut: 60 of 100 bytes kept (--max-output)\n" },
	{ 100, 120, true, "cordon: standard output cut: not all is kept (--max-output)\n" },
};

static void test_a_cut_is_told_and_no_other_difference(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cuts); i++) {
		const struct cordon_result result = { .stdout_bytes = cuts[i].total, .stdout_length = cuts[i].kept,
			                              .stdout_truncated = cuts[i].truncated, .stderr_bytes = 5 };
		const struct report_place place = { .stdout_as_kept = true, .stderr_as_kept = true };
		char *text = NULL;
		size_t length;
		FILE *out = open_memstream(&text, &length);
		report_remarks(out, &result, &place);
		fclose(out);
		assert_string_equal(text, cuts[i].said);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_untrusted), cmocka_unit_test(test_statuses),
		                            cmocka_unit_test(test_a_cut_is_told_and_no_other_difference) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}

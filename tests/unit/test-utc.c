/* utc_text() against the C library, over four centuries and around every kind of boundary. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <time.h>

#include "base/utc.h"

static void check(int64_t seconds)
{
	char mine[UTC_SIZE], theirs[UTC_SIZE];
	time_t when = (time_t)seconds;
	struct tm utc;
	utc_text(seconds, 7, mine);
	strftime(theirs, sizeof(theirs), "%Y-%m-%dT%H:%M:%S.007Z", gmtime_r(&when, &utc));
	assert_string_equal(mine, theirs);
}

static void test_every_day(void **state)
{
	(void)state;
	for (int64_t day = -719468 + 366 * 1001; day < 146097 * 3; day++) {
		check(day * 86400);
		check(day * 86400 + 86399);
	}
}

static void test_now(void **state)
{
	(void)state;
	char text[UTC_SIZE], expected[UTC_SIZE];
	time_t now = time(NULL);
	struct tm utc;
	utc_now(text);
	strftime(expected, sizeof(expected), "%Y-%m-%d", gmtime_r(&now, &utc));
	assert_memory_equal(text, expected, UTC_DATE_LENGTH);
}

static void test_parse(void **state)
{
	static const char *const good[] = { "0000-01-01", "1970-01-01", "2024-02-29", "2026-01-31T12:34:56Z",
		                            "9999-12-31T23:59:59.999Z" };
	static const char *const bad[] = {
		"",
		"2026",
		"2026-1-31",
		"2026-01-32",
		"2026-00-10",
		"2026-13-01",
		"2026-01-00",
		"2025-02-29",
		"1900-02-29",
		"2026-01-31T",
		"2026-01-31 12:34:56Z",
		"2026-01-31T12:34:56",
		"2026-01-31T24:00:00Z",
		"2026-01-31T12:60:00Z",
		"2026-01-31T12:34:60Z",
		"2026-01-31T12:34:56.Z",
		"2026-01-31T12:34:56.5",
		"2026-01-31T12:34:56Zz",
		"+026-01-31",
		"20260131",
		"2026-01-31T12:34:56+00:00",
	};
	int64_t ms = 42;
	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		assert_true(utc_parse(good[i], &ms));
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (utc_parse(bad[i], &ms))
			fail_msg("%s", bad[i]);
	assert_true(utc_parse("2026-01-31T12:34:56.5Z", &ms));
	assert_int_equal(ms % 1000, 500);
	assert_true(utc_parse("1970-01-01T00:00:01.1239Z", &ms));
	assert_int_equal(ms, 1123);
	/* And back. */
	for (int64_t day = -719000; day < 146097 * 3; day += 7) {
		char text[UTC_SIZE];
		utc_text(day * 86400 + 4711, 25, text);
		assert_true(utc_parse(text, &ms));
		assert_int_equal(ms, (day * 86400 + 4711) * 1000 + 25);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_every_day), cmocka_unit_test(test_now),
		cmocka_unit_test(test_parse) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}

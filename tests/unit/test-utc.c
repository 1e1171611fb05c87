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

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_every_day), cmocka_unit_test(test_now) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}

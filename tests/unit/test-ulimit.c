/* Resource limits as text: every name, both ends of a number, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "base/ulimit.h"

static void test_each_name_has_the_kernel_s_number(void **state)
{
	static const struct {
		const char *name;
		unsigned number;
	} rows[] = { { "cpu", RLIMIT_CPU }, { "fsize", RLIMIT_FSIZE }, { "data", RLIMIT_DATA }, { "stack", RLIMIT_STACK },
		     { "core", RLIMIT_CORE }, { "rss", RLIMIT_RSS }, { "nproc", RLIMIT_NPROC }, { "nofile", RLIMIT_NOFILE },
		     { "memlock", RLIMIT_MEMLOCK }, { "as", RLIMIT_AS }, { "locks", RLIMIT_LOCKS },
		     { "sigpending", RLIMIT_SIGPENDING }, { "msgqueue", RLIMIT_MSGQUEUE }, { "nice", RLIMIT_NICE },
		     { "rtprio", RLIMIT_RTPRIO }, { "rttime", RLIMIT_RTTIME } };
	(void)state;
	assert_int_equal(sizeof(rows) / sizeof(*rows), ULIMIT_COUNT);
	for (size_t i = 0; i < ULIMIT_COUNT; i++) {
		struct ulimits limits = { 0 };
		char text[64];
		snprintf(text, sizeof(text), "%s=%zu:%zu", rows[i].name, i, i + 1);
		assert_null(ulimit_add(&limits, text));
		assert_int_equal(limits.given, 1u << rows[i].number);
		assert_int_equal(limits.limits[rows[i].number].soft, i);
		assert_int_equal(limits.limits[rows[i].number].hard, i + 1);
		assert_string_equal(ulimit_name(rows[i].number), rows[i].name);
	}
}

static void test_numbers(void **state)
{
	struct ulimits limits = { 0 };
	(void)state;
	assert_null(ulimit_add(&limits, "cpu=5"));
	assert_int_equal(limits.limits[RLIMIT_CPU].soft, 5);
	assert_int_equal(limits.limits[RLIMIT_CPU].hard, 5);
	assert_null(ulimit_add(&limits, "cpu=0:unlimited"));
	assert_int_equal(limits.limits[RLIMIT_CPU].soft, 0);
	assert_true(limits.limits[RLIMIT_CPU].hard == ULIMIT_UNLIMITED);
	assert_null(ulimit_add(&limits, "stack=unlimited"));
	assert_true(limits.limits[RLIMIT_STACK].soft == ULIMIT_UNLIMITED);
	assert_null(ulimit_add(&limits, "as=18446744073709551615"));
	assert_true(limits.limits[RLIMIT_AS].hard == ULIMIT_UNLIMITED);
}

static void test_what_is_refused_changes_nothing(void **state)
{
	static const char *const wrong[] = {
		"",        "cpu",      "cpu=",        "cpu=:",  "cpu=1:",    "cpu=:1", "cpu=-1",
		"cpu=1:2:3", "cpu=2:1",  "cpu=unlimited:1", "cpu= 1", "CPU=1",     "cp=1",   "cpux=1",
		"=1",      "cpu=1k",   "cpu=18446744073709551616", "cpu=0000000000000000000000000001",
	};
	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct ulimits limits = { 0 };
		if (!ulimit_add(&limits, wrong[i]) || limits.given)
			fail_msg("%s was taken", wrong[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_name_has_the_kernel_s_number),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_what_is_refused_changes_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

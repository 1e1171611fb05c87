/* The bytes in which macOS tells a process's arguments and variables: whole ones, without variables, cut anywhere. The
 * samples are written by hand, by the format as it is documented. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/macos/arguments.h"

/* With the number of arguments before it. */
static char *sample(int count, const char *text, size_t length, size_t *ret_length)
{
	char *bytes = malloc(sizeof(count) + length);
	assert_non_null(bytes);
	memcpy(bytes, &count, sizeof(count));
	memcpy(bytes + sizeof(count), text, length);
	*ret_length = sizeof(count) + length;
	return bytes;
}

static void check(int count, const char *text, size_t length, const char *wanted, size_t wanted_length)
{
	size_t size, found_length = 0;
	char *bytes = sample(count, text, length, &size);
	const char *found = arguments_environment(bytes, size, &found_length);
	if (!wanted) {
		assert_null(found);
	} else {
		assert_non_null(found);
		assert_int_equal(found_length, wanted_length);
		assert_memory_equal(found, wanted, wanted_length);
	}
	free(bytes);
}

#define CHECK(count, text, wanted) check(count, text, sizeof(text) - 1, wanted, sizeof(wanted) - 1)
#define CHECK_NONE(count, text) check(count, text, sizeof(text) - 1, NULL, 0)

static void test_variables(void **state)
{
	(void)state;
	CHECK(2, "/bin/sh\0\0\0\0sh\0-c\0A=1\0B=x=y\0\0executable_path=/bin/sh\0", "A=1\0B=x=y\0");
	/* An argument may look like a variable, and may be empty. */
	CHECK(3, "/bin/a\0a\0X=no\0\0A=1\0", "A=1\0");
	CHECK(0, "/bin/a\0\0\0A=1\0\0", "A=1\0");
}

static void test_none(void **state)
{
	(void)state;
	/* Of a restricted program the arguments are all. */
	CHECK_NONE(1, "/bin/zsh\0\0zsh\0");
	CHECK_NONE(1, "/bin/zsh\0\0zsh\0\0\0");
	CHECK_NONE(1, "/bin/zsh\0\0zsh\0\0executable_path=/bin/zsh\0");
}

static void test_damaged(void **state)
{
	static const char text[] = "/bin/sh\0\0sh\0-c\0A=1\0B=2\0\0x=y";
	size_t size, length;
	(void)state;
	CHECK_NONE(7, "/bin/sh\0sh\0");
	CHECK_NONE(1, "/bin/sh");
	CHECK_NONE(1, "");
	CHECK_NONE(-1, "/bin/sh\0");
	/* Cut anywhere, nothing is read behind the end. */
	char *bytes = sample(2, text, sizeof(text) - 1, &size);
	for (size_t cut = 0; cut <= size; cut++) {
		char *part = malloc(cut + !cut);
		assert_non_null(part);
		memcpy(part, bytes, cut);
		length = 0;
		const char *found = arguments_environment(part, cut, &length);
		assert_true(!found || (found > part && found + length <= part + cut));
		assert_true(!found || !found[length - 1]);
		free(part);
	}
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_variables),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_damaged),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

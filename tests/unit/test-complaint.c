/* Words by which programs tell that a limit was met. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "run/complaint.h"

static void test_what_programs_say(void **state)
{
	(void)state;
	static const struct {
		const char *said;
		enum complaint complaint;
	} rows[] = {
		{ "", COMPLAINT_NONE },
		{ "cat: x: No such file or directory\n", COMPLAINT_NONE },
		{ "sh: 1: Cannot fork\n", COMPLAINT_PROCESSES },
		{ "bash: fork: retry: Resource temporarily unavailable\n", COMPLAINT_PROCESSES },
		{ "RuntimeError: can't start new thread\n", COMPLAINT_PROCESSES },
		{ "BlockingIOError: [Errno 11] Resource temporarily unavailable\n", COMPLAINT_PROCESSES },
		{ "java.lang.OutOfMemoryError: unable to create native thread: possibly out of memory\n", COMPLAINT_PROCESSES },
		{ "OSError: [Errno 24] Too many open files: 'x'\n", COMPLAINT_FILES },
		{ "Error: EMFILE: too many open files, open 'x'\n", COMPLAINT_FILES },
		{ "dd: error writing '/tmp/x': No space left on device\n", COMPLAINT_SPACE },
		{ "cp: error writing 'x': Disk quota exceeded\n", COMPLAINT_SPACE },
		{ "MemoryError\n", COMPLAINT_MEMORY },
		{ "terminate called after throwing an instance of 'std::bad_alloc'\n", COMPLAINT_MEMORY },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(complaint_find(rows[i].said, strlen(rows[i].said)), rows[i].complaint);
}

static void test_no_nul_is_needed(void **state)
{
	(void)state;
	static const char bytes[] = { 0, 'E', 'M', 'F', 'I', 'L', 'E' };
	assert_int_equal(complaint_find(bytes, sizeof(bytes)), COMPLAINT_FILES);
	assert_int_equal(complaint_find(bytes, sizeof(bytes) - 1), COMPLAINT_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_what_programs_say), cmocka_unit_test(test_no_nul_is_needed) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}

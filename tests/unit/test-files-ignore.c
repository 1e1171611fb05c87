/* .gitignore, as gitignore(5) has it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "files/ignore.h"

#include <cmocka.h>

static const struct {
	const char *text, *path;
	bool is_directory;
	enum ignore_verdict verdict;
} rows[] = {
	{ "*.o", "a.o", false, IGNORE_LEFT_OUT },
	{ "*.o", "b/a.o", false, IGNORE_LEFT_OUT },
	{ "*.o", "a.c", false, IGNORE_UNDECIDED },
	{ "/a.o", "b/a.o", false, IGNORE_UNDECIDED },
	{ "/a.o", "a.o", false, IGNORE_LEFT_OUT },
	{ "build/", "build", true, IGNORE_LEFT_OUT },
	{ "build/", "build", false, IGNORE_UNDECIDED },
	{ "build/", "sub/build", true, IGNORE_LEFT_OUT },
	{ "sub/build", "other/sub/build", true, IGNORE_UNDECIDED },
	{ "sub/build", "sub/build", true, IGNORE_LEFT_OUT },
	{ "**/logs", "a/b/logs", true, IGNORE_LEFT_OUT },
	{ "a/**/b", "a/x/y/b", false, IGNORE_LEFT_OUT },
	{ "a/**", "a/x", false, IGNORE_LEFT_OUT },
	{ "a/**", "a", true, IGNORE_UNDECIDED },
	{ "*.log\n!keep.log", "keep.log", false, IGNORE_KEPT },
	{ "!keep.log\n*.log", "keep.log", false, IGNORE_LEFT_OUT },
	{ "# *.c", "a.c", false, IGNORE_UNDECIDED },
	{ "\\#a", "#a", false, IGNORE_LEFT_OUT },
	{ "\\!a", "!a", false, IGNORE_LEFT_OUT },
	{ "a   ", "a", false, IGNORE_LEFT_OUT },
	{ "a\\ ", "a ", false, IGNORE_LEFT_OUT },
	{ "a\r\nb\r\n", "b", false, IGNORE_LEFT_OUT },
	{ "\n\n  \n/\n!\n", "a", false, IGNORE_UNDECIDED },
	{ "../a", "a", false, IGNORE_UNDECIDED },
	{ "[a-c].txt", "b.txt", false, IGNORE_LEFT_OUT },
};

static void rows_hold(void **state)
{
	struct arena arena = { 0 };
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ignore ignore;
		assert_int_equal(ignore_parse(&arena, rows[i].text, strlen(rows[i].text), &ignore), 0);
		if (ignore_judge(&ignore, rows[i].path, rows[i].is_directory) != rows[i].verdict)
			fail_msg("%s: %s", rows[i].text, rows[i].path);
	}
	arena_free(&arena);
}

static void a_file_is_read_up_to_a_bound(void **state)
{
	struct arena arena = { 0 };
	struct ignore ignore;
	(void)state;
	char *text = arena_alloc(&arena, 2 * (IGNORE_PATTERNS_MAX + 10) + 1);
	for (size_t i = 0; i < IGNORE_PATTERNS_MAX + 10; i++)
		memcpy(text + 2 * i, "a\n", 2);
	assert_int_equal(ignore_parse(&arena, text, strlen(text), &ignore), 0);
	assert_int_equal(ignore.count, IGNORE_PATTERNS_MAX);
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(rows_hold),
		                            cmocka_unit_test(a_file_is_read_up_to_a_bound) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}

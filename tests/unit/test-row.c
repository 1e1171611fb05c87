/* The scanner against a parser: on chosen lines, and on a row that is damaged in thousands of ways. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "audit/row.h"
#include "base/cleanup.h"

static const char typical[] =
	"{\"row\":\"intent\",\"id\":\"01M7FM513X2R1G7R850Y60DHVB\",\"time\":\"2026-11-15T12:50:40.898Z\",\"session\":\"a \\\"b\\\" \xc3\xa4\","
	"\"program\":\"/bin/\\\\x\",\"argv_shape\":[4, 2,-1.5,true,null,[]],\"capabilities\":{\"id\":\"inner\",\"network\":\"none\",\"deep\":"
	"{\"a\":[{\"b\":{}}]}},\"outcome\":7,\"decision\":\"denied\",\"audit_id\":\"\"}";

/* What the two see differently: the parser gives up on numbers that do not fit and on halves of surrogate pairs. */
static bool is_beyond(const char *line, size_t length)
{
	for (size_t i = 0; i + 1 < length; i++)
		if ((line[i] == '\\' && line[i + 1] == 'u') || (line[i] >= '0' && line[i] <= '9' && (line[i + 1] | 32) == 'e'))
			return true;
	return false;
}

static bool parser_takes(const char *line, size_t length)
{
	json_t *row = json_loadb(line, length, JSON_ALLOW_NUL, NULL);
	bool taken = json_is_object(row);
	json_decref(row);
	return taken;
}

static void chosen_lines(void **state)
{
	static const struct {
		const char *line;
		bool good;
	} rows[] = {
		{ "{}", true }, { " { } ", true }, { "{\"a\":1}", true }, { "{\"a\":-0}", true }, { "{\"a\":0.5e+10}", true },
		{ "{\"a\":\"\\u00e4\\n\"}", true }, { "{\"a\":\"\\ud800\"}", true }, { typical, true },
		{ "", false }, { "{", false }, { "}", false }, { "[]", false }, { "1", false }, { "{}}", false }, { "{} {}", false },
		{ "{\"a\"}", false }, { "{\"a\":}", false }, { "{\"a\":1,}", false }, { "{,}", false }, { "{a:1}", false },
		{ "{\"a\":01}", false }, { "{\"a\":1.}", false }, { "{\"a\":.5}", false }, { "{\"a\":1e}", false }, { "{\"a\":+1}", false },
		{ "{\"a\":tru}", false }, { "{\"a\":truest}", false }, { "{\"a\":\"b}", false }, { "{\"a\":\"\\x\"}", false },
		{ "{\"a\":\"\\u12g4\"}", false }, { "{\"a\":\"\t\"}", false }, { "{\"a\":\"\xff\"}", false }, { "{\"a\":\"\xc3\"}", false },
		{ "{\"a\":[1,]}", false }, { "{\"a\":[1}", false }, { "{\"a\":[}", false }, { "{'a':1}", false },
	};
	struct row row;
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (row_scan(rows[i].line, strlen(rows[i].line), &row) != rows[i].good)
			fail_msg("%s", rows[i].line);
}

static void members(void **state)
{
	static const char *const expected[] = {
		[ROW_KIND] = "intent", [ROW_ID] = "01M7FM513X2R1G7R850Y60DHVB", [ROW_TIME] = "2026-11-15T12:50:40.898Z",
		[ROW_SESSION] = "a \\\"b\\\" \xc3\xa4", [ROW_PROGRAM] = "/bin/\\\\x", [ROW_DECISION] = "denied", [ROW_AUDIT_ID] = "",
	};
	struct row row;
	(void)state;
	assert_true(row_scan(typical, sizeof(typical) - 1, &row));
	for (size_t i = 0; i < ROW_MEMBER_MAX; i++) {
		if (i == ROW_OUTCOME) {
			assert_null(row.members[i].bytes);
			continue;
		}
		assert_int_equal(row.members[i].length, strlen(expected[i]));
		assert_memory_equal(row.members[i].bytes, expected[i], row.members[i].length);
	}
	/* The first of two. */
	const char *twice = "{\"id\":\"a\",\"id\":\"b\"}";
	assert_true(row_scan(twice, strlen(twice), &row));
	assert_memory_equal(row.members[ROW_ID].bytes, "a", 1);
}

static void depth(void **state)
{
	char line[2048];
	struct row row;
	(void)state;
	for (int levels = 1; levels < 200; levels++) {
		int length = sprintf(line, "{\"a\":");
		for (int i = 0; i < levels; i++)
			line[length++] = '[';
		for (int i = 0; i < levels; i++)
			line[length++] = ']';
		line[length++] = '}';
		assert_int_equal(row_scan(line, (size_t)length, &row), levels < 32);
	}
}

static void damaged_rows(void **state)
{
	static const char bytes[] = "{}[]\",:\\ 0123456789abcrtnulsfe.+-\x01\x7f\x80\xc3\xff";
	char *line = malloc(sizeof(typical) + 1);
	int taken = 0, compared = 0;
	(void)state;
	srandom(3);
	for (int i = 0; i < 60000; i++) {
		size_t length = sizeof(typical) - 1;
		memcpy(line, typical, length);
		for (long changes = 1 + random() % 3; changes > 0; changes--) {
			size_t at = (size_t)random() % length;
			if (random() % 3 == 0) {
				memmove(line + at, line + at + 1, length - at - 1);
				length--;
			} else {
				line[at] = bytes[(size_t)random() % (sizeof(bytes) - 1)];
			}
		}
		if (random() % 8 == 0)
			length = (size_t)random() % length;
		/* Exactly as long as it is, so that a sanitizer sees a step beyond. */
		char *exact = malloc(length ? length : 1);
		struct row row;
		memcpy(exact, line, length);
		bool good = row_scan(exact, length, &row);
		taken += good;
		compared += !is_beyond(exact, length);
		if (!is_beyond(exact, length) && good != parser_takes(exact, length))
			fail_msg("%d: %.*s", good, (int)length, exact);
		free(exact);
	}
	assert_true(taken > 1000 && taken < 59000 && compared > 50000);
	free(line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chosen_lines), cmocka_unit_test(members), cmocka_unit_test(depth), cmocka_unit_test(damaged_rows),
	};
	return cmocka_run_group_tests_name("row", tests, NULL, NULL);
}

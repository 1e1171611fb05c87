/* Looking into JSON, and laying it out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "door/json-indent.h"
#include "door/json-look.h"

static const char sample[] =
	"{\"first\": {\"name\":\"inner }],\\\"\", \"holds\" : false}, \"name\":\"a\\nb\\\\c\\u0041\\u20ac\","
	" \"holds\":true ,\"number\":-12,\"list\":[1, {\"x\":[2]} ,\"three\"],\"empty\":[ ],\"null\":null}";

static const char *text_of(const char *value)
{
	static char text[64];
	return json_look_text(value, text, sizeof(text));
}

static void test_members(void **state)
{
	(void)state;
	const char *first = json_look_member(sample, "first");
	assert_string_equal(text_of(json_look_member(first, "name")), "inner }],\"");
	assert_false(json_look_true(json_look_member(first, "holds")));
	assert_string_equal(text_of(json_look_member(sample, "name")), "a\nb\\cA?");
	assert_true(json_look_true(json_look_member(sample, "holds")));
	assert_int_equal(json_look_number(json_look_member(sample, "number")), -12);
	assert_null(json_look_member(sample, "nam"));
	assert_null(json_look_member(sample, "names"));
	assert_null(json_look_member(NULL, "name"));
	assert_null(json_look_member("[]", "name"));
	assert_string_equal(text_of(json_look_member(sample, "null")), "");
	assert_string_equal(text_of(NULL), "");
}

static void test_elements(void **state)
{
	(void)state;
	const char *at = json_look_first(json_look_member(sample, "list"));
	assert_int_equal(json_look_number(at), 1);
	at = json_look_next(at);
	assert_int_equal(json_look_number(json_look_first(json_look_member(at, "x"))), 2);
	at = json_look_next(at);
	assert_string_equal(text_of(at), "three");
	assert_null(json_look_next(at));
	assert_null(json_look_first(json_look_member(sample, "empty")));
	assert_null(json_look_first(NULL));
}

static void test_text_is_cut(void **state)
{
	(void)state;
	char text[4];
	assert_string_equal(json_look_text("\"abcdef\"", text, sizeof(text)), "abc");
}

/* Not valid, so any answer will do; but nothing beyond the end is touched. */
static void test_torn_text(void **state)
{
	(void)state;
	for (size_t length = 0; length < sizeof(sample); length++) {
		char *torn = strndup(sample, length);
		char *printed = NULL;
		size_t size;
		json_look_next(json_look_first(json_look_member(torn, "list")));
		text_of(json_look_member(torn, "name"));
		FILE *out = open_memstream(&printed, &size);
		json_indent(out, torn, false);
		fclose(out);
		free(printed);
		free(torn);
	}
}

static void test_indent(void **state)
{
	(void)state;
	static const char spaced[] = " { \"a\" : [ 1 , { } , [ ] , { \"b:{\" : \"x, \\\" }\" } ] }\n";
	static const struct {
		bool one_line;
		const char *printed;
	} rows[] = {
		{ true, "{\"a\":[1,{},[],{\"b:{\":\"x, \\\" }\"}]}\n" },
		{ false, "{\n  \"a\": [\n    1,\n    {},\n    [],\n    {\n      \"b:{\": \"x, \\\" }\"\n    }\n  ]\n}\n" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char *printed = NULL;
		size_t size;
		FILE *out = open_memstream(&printed, &size);
		json_indent(out, spaced, rows[i].one_line);
		fclose(out);
		assert_string_equal(printed, rows[i].printed);
		free(printed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_members), cmocka_unit_test(test_elements), cmocka_unit_test(test_text_is_cut),
		cmocka_unit_test(test_torn_text), cmocka_unit_test(test_indent),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

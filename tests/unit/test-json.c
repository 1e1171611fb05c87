/* The JSON writer: exact texts, and another parser that reads back whatever was put in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/utf8.h"

static void expect(struct json *json, const char *text)
{
	char *taken = json_take(json);
	assert_non_null(taken);
	assert_string_equal(taken, text);
	free(taken);
	assert_null(json->text);
	assert_int_equal(json->length, 0);
}

static void strings_are_escaped(void **state)
{
	(void)state;
	static const struct {
		const char *bytes;
		size_t length;
		const char *text;
	} rows[] = {
		{ "", 0, "\"\"" },
		{ NULL, 0, "\"\"" },
		{ "a", 1, "\"a\"" },
		{ "\"\\/", 3, "\"\\\"\\\\/\"" },
		{ "\b\f\n\r\t", 5, "\"\\b\\f\\n\\r\\t\"" },
		{ "\0\x1f\x7f", 3, "\"\\u0000\\u001f\\u007f\"" },
		{ "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9, "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"" },
		{ "a\xff"
		  "b",
		  3,
		  "\"a\xef\xbf\xbd"
		  "b\"" },
		{ "\xc3", 1, "\"\xef\xbf\xbd\"" },
		{ "\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
		{ "\xc0\xaf", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\"" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct json json;
		json_init(&json);
		json_bytes(&json, rows[i].bytes, rows[i].length);
		expect(&json, rows[i].text);
	}
}

static void bytes_are_exact(void **state)
{
	(void)state;
	static const struct {
		const char *bytes;
		size_t length;
		const char *text;
	} rows[] = {
		{ "", 0, "{\"k\":\"\"}" }, { "a\xc3\xa9", 3, "{\"k\":\"a\xc3\xa9\"}" },
		{ "\xff", 1, "{\"k\":\"\xef\xbf\xbd\",\"k_base64\":\"/w==\"}" },
		{ "a\xff", 2, "{\"k\":\"a\xef\xbf\xbd\",\"k_base64\":\"Yf8=\"}" },
		{ "\0\xfe\xff", 3, "{\"k\":\"\\u0000\xef\xbf\xbd\xef\xbf\xbd\",\"k_base64\":\"AP7/\"}" },
		{ "\xfb" "abc", 4, "{\"k\":\"\xef\xbf\xbd" "abc\",\"k_base64\":\"+2FiYw==\"}" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct json json;
		json_init(&json);
		json_object_begin(&json);
		json_key_bytes(&json, "k", rows[i].bytes, rows[i].length);
		json_object_end(&json);
		expect(&json, rows[i].text);
	}
}

static void write_sample(struct json *json)
{
	json_object_begin(json);
	json_key_string(json, "s", "x");
	json_key_string(json, "n", NULL);
	json_key_int(json, "i", INT64_MIN);
	json_key_uint(json, "u", UINT64_MAX);
	json_key_bool(json, "b", true);
	json_key_strings(json, "l", (const char *const[]){ "1", "2" }, 2);
	json_key_strings(json, "e", NULL, 0);
	json_key(json, "o");
	json_object_begin(json);
	json_object_end(json);
	json_key(json, "a");
	json_array_begin(json);
	json_array_begin(json);
	json_array_end(json);
	json_object_begin(json);
	json_key_bool(json, "f", false);
	json_object_end(json);
	json_nil(json);
	json_array_end(json);
	json_object_end(json);
}

static void commas_and_nesting(void **state)
{
	(void)state;
	struct json json;
	json_init(&json);
	write_sample(&json);
	expect(&json, "{\"s\":\"x\",\"n\":null,\"i\":-9223372036854775808,\"u\":18446744073709551615,\"b\":true,"
	              "\"l\":[\"1\",\"2\"],\"e\":[],\"o\":{},\"a\":[[],{\"f\":false},null]}");
	json.pretty = true;
	write_sample(&json);
	expect(&json,
	       "{\n  \"s\": \"x\",\n  \"n\": null,\n  \"i\": -9223372036854775808,\n"
	       "  \"u\": 18446744073709551615,\n  \"b\": true,\n  \"l\": [\n    \"1\",\n    \"2\"\n  ],\n"
	       "  \"e\": [],\n  \"o\": {},\n  \"a\": [\n    [],\n    {\n      \"f\": false\n    },\n    null\n  ]\n}");
	expect(&json, "");
}

/* Both libraries in one program: neither may call the other's functions. */
static void the_parser_stays_itself(void **state)
{
	(void)state;
	struct json json;
	json_init(&json);
	write_sample(&json);
	char *text = json_take(&json);
	json_t *root = json_loads(text, JSON_DECODE_INT_AS_REAL, NULL);
	assert_non_null(root);
	assert_true(json_is_null(json_object_get(root, "n")));
	assert_string_equal(json_string_value(json_object_get(root, "s")), "x");
	assert_int_equal(json_array_size(json_object_get(root, "a")), 3);
	json_decref(root);
	free(text);
}

/* What the writer must have made of these bytes, by its own contract. */
static size_t replaced(const char *bytes, size_t length, char *out)
{
	size_t size = 0;
	for (size_t at = 0; at < length;) {
		size_t sequence = utf8_sequence(bytes + at, length - at);
		memcpy(out + size, sequence ? bytes + at : "\xef\xbf\xbd", sequence ? sequence : 3);
		size += sequence ? sequence : 3;
		at += sequence ? sequence : 1;
	}
	return size;
}

static void random_bytes_are_read_back(void **state)
{
	(void)state;
	char bytes[64], expected[192];
	srandom(1);
	for (int round = 0; round < 20000; round++) {
		struct json json;
		size_t length = (size_t)random() % sizeof(bytes);
		for (size_t i = 0; i < length; i++) /* half of them where UTF-8 is made of */
			bytes[i] = (char)(random() % 2 ? random() : 0xc0 - random() % 2 * 0x40 + random() % 0x40);
		json_init(&json);
		json.pretty = round & 1;
		json_object_begin(&json);
		json_key(&json, "v");
		json_array_begin(&json);
		json_bytes(&json, bytes, length);
		json_int(&json, round);
		json_array_end(&json);
		json_object_end(&json);
		char *text = json_take(&json);
		json_t *root = json_loads(text, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
		if (!root)
			fail_msg("not JSON: %s", text);
		json_t *list = json_object_get(root, "v"), *value = json_array_get(list, 0);
		assert_int_equal(json_string_length(value), replaced(bytes, length, expected));
		assert_memory_equal(json_string_value(value), expected, json_string_length(value));
		assert_int_equal(json_integer_value(json_array_get(list, 1)), round);
		json_decref(root);
		free(text);
	}
}

static void large_text_and_deep_nesting(void **state)
{
	(void)state;
	static char block[1 << 20];
	struct json json;
	memset(block, '\n', sizeof(block));
	json_init(&json);
	for (int i = 0; i < 500; i++)
		json_array_begin(&json);
	json_bytes(&json, block, sizeof(block));
	for (int i = 0; i < 500; i++)
		json_array_end(&json);
	char *text = json_take(&json);
	assert_int_equal(strlen(text), 2 * 500 + 2 * sizeof(block) + 2);
	json_t *root = json_loads(text, 0, NULL);
	assert_non_null(root);
	json_decref(root);
	free(text);
	json_init(&json);
	json_text(&json, "left");
	json_free(&json);
	assert_null(json.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strings_are_escaped), cmocka_unit_test(bytes_are_exact),
		cmocka_unit_test(commas_and_nesting),
		cmocka_unit_test(the_parser_stays_itself),
		cmocka_unit_test(random_bytes_are_read_back),
		cmocka_unit_test(large_text_and_deep_nesting),
	};
	return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}

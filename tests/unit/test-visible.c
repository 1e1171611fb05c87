/* How text that others wrote is shown: as a shell's word, and in JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/cleanup.h"
#include "base/visible.h"

static char *quoted(const char *text)
{
	char *made = NULL;
	size_t length;
	FILE *out = open_memstream(&made, &length);
	visible_quote(out, text);
	fclose(out);
	return made;
}

static const struct {
	const char *text, *quoted;
} rows[] = {
	{ "", "''" },
	{ "make", "make" },
	{ "--read=/srv/a-b_c.d:1,2@3%+", "--read=/srv/a-b_c.d:1,2@3%+" },
	{ "two words", "'two words'" },
	{ "~", "'~'" },
	{ "*", "'*'" },
	{ "$HOME `x` \"y\" ; & | < > ( ) # !", "'$HOME `x` \"y\" ; & | < > ( ) # !'" },
	{ "it's", "$'it\\'s'" },
	{ "\\x1b", "'\\x1b'" },
	{ "\\x1b'", "$'\\\\x1b\\''" },
	{ "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "'caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80'" },
	{ "\xe6\x97\xa5\xe6\x9c\xac", "'\xe6\x97\xa5\xe6\x9c\xac'" },
	/* what would fill a line of the terminal and begin another */
	{ "x  asks for", "$'x \\x20asks for'" },
	{ "   \\", "$' \\x20\\x20\\\\'" },
	/* controls */
	{ "a\nb\tc\rd", "$'a\\nb\\tc\\rd'" },
	{ "\x01\x07\x08\x0b\x0c\x1f", "$'\\x01\\x07\\x08\\x0b\\x0c\\x1f'" },
	{ "\x1b[2J\x1b]0;x\x07", "$'\\x1b[2J\\x1b]0;x\\x07'" },
	{ "\x7f", "$'\\x7f'" },
	{ "\xc2\x80\xc2\x85\xc2\x9b" "31m", "$'\\u0080\\u0085\\u009b31m'" },
	/* direction */
	{ "\xe2\x80\xaa\xe2\x80\xab\xe2\x80\xac\xe2\x80\xad\xe2\x80\xae", "$'\\u202a\\u202b\\u202c\\u202d\\u202e'" },
	{ "\xe2\x81\xa6\xe2\x81\xa7\xe2\x81\xa8\xe2\x81\xa9", "$'\\u2066\\u2067\\u2068\\u2069'" },
	{ "\xe2\x80\x8e\xe2\x80\x8f\xd8\x9c", "$'\\u200e\\u200f\\u061c'" },
	/* what is not seen */
	{ "\xe2\x80\x8b\xe2\x80\x8c\xe2\x80\x8d\xe2\x81\xa0\xef\xbb\xbf", "$'\\u200b\\u200c\\u200d\\u2060\\ufeff'" },
	{ "\xc2\xad\xcd\x8f\xe1\xa0\x8e\xe3\x85\xa4\xef\xb8\x8f", "$'\\u00ad\\u034f\\u180e\\u3164\\ufe0f'" },
	{ "\xf3\xa0\x80\x81\xf3\xa0\x81\x81\xf3\xa0\x84\x80", "$'\\U000e0001\\U000e0041\\U000e0100'" },
	{ "a\xc2\xa0" "b\xe2\x80\x83" "c\xe3\x80\x80" "d", "$'a\\u00a0b\\u2003c\\u3000d'" },
	{ "\xe2\x80\xa8\xe2\x80\xa9", "$'\\u2028\\u2029'" },
	/* what is laid over its neighbour */
	{ "a\xcc\xb6", "$'a\\u0336'" },
	/* what is not UTF-8 */
	{ "\xff\xc3", "$'\\xff\\xc3'" },
	{ "\xc0\xaf\xed\xa0\x80\xe2\x80", "$'\\xc0\\xaf\\xed\\xa0\\x80\\xe2\\x80'" },
	{ "\xf4\x90\x80\x80", "$'\\xf4\\x90\\x80\\x80'" },
};

static void test_quote(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		auto_free char *made = quoted(rows[i].text);
		assert_string_equal(made, rows[i].quoted);
	}
}

/* Every single byte and every pair comes out otherwise than every other, and printable. */
static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void test_quote_is_unambiguous(void **state)
{
	(void)state;
	static char *made[256 * 256];
	size_t count = 0;
	for (unsigned first = 1; first < 256; first++)
		for (unsigned second = 0; second < 256; second++) {
			char text[] = { (char)first, (char)second, '\0' };
			made[count] = quoted(text);
			for (const char *at = made[count]; *at; at++)
				assert_true((unsigned char)*at >= 0x20 && *at != 0x7f);
			count++;
		}
	qsort(made, count, sizeof(*made), by_text);
	for (size_t i = 1; i < count; i++)
		assert_string_not_equal(made[i - 1], made[i]);
	for (size_t i = 0; i < count; i++)
		free(made[i]);
}

static void test_json(void **state)
{
	(void)state;
	static const char json[] = "{\"a\":\"x\xe2\x80\xaey\xf3\xa0\x81\x81\xc3\xa9\\n\"}";
	auto_free char *made = visible_json(json);
	assert_string_equal(made, "{\"a\":\"x\\u202ey\\udb40\\udc41\xc3\xa9\\n\"}");
	json_t *before = json_loads(json, 0, NULL), *after = json_loads(made, 0, NULL);
	assert_true(before && after && json_equal(before, after));
	json_decref(before);
	json_decref(after);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_quote), cmocka_unit_test(test_quote_is_unambiguous),
		                            cmocka_unit_test(test_json) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}

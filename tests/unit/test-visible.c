/* How text that others wrote is shown: as a shell's word, and in JSON. */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/cleanup.h"
#include "base/visible.h"
#include "system-has.h"

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
	/* another letter of the same script looks the same */
	{ "\xc6\x89\xd1\xb2\xd1\xb3", "$'\\u0189\\u0472\\u0473'" },
	/* controls */
	{ "a\nb\tc\rd", "$'a\\nb\\tc\\rd'" },
	{ "\x01\x07\x08\x0b\x0c\x1f", "$'\\x01\\x07\\x08\\x0b\\x0c\\x1f'" },
	{ "\x1b[2J\x1b]0;x\x07", "$'\\x1b[2J\\x1b]0;x\\x07'" },
	{ "\x7f", "$'\\x7f'" },
	{ "\xc2\x80\xc2\x85\xc2\x9b"
	  "31m",
	  "$'\\u0080\\u0085\\u009b31m'" },
	/* direction */
	{ "\xe2\x80\xaa\xe2\x80\xab\xe2\x80\xac\xe2\x80\xad\xe2\x80\xae", "$'\\u202a\\u202b\\u202c\\u202d\\u202e'" },
	{ "\xe2\x81\xa6\xe2\x81\xa7\xe2\x81\xa8\xe2\x81\xa9", "$'\\u2066\\u2067\\u2068\\u2069'" },
	{ "\xe2\x80\x8e\xe2\x80\x8f\xd8\x9c", "$'\\u200e\\u200f\\u061c'" },
	/* what is not seen */
	{ "\xe2\x80\x8b\xe2\x80\x8c\xe2\x80\x8d\xe2\x81\xa0\xef\xbb\xbf", "$'\\u200b\\u200c\\u200d\\u2060\\ufeff'" },
	{ "\xc2\xad\xcd\x8f\xe1\xa0\x8e\xe3\x85\xa4\xef\xb8\x8f", "$'\\u00ad\\u034f\\u180e\\u3164\\ufe0f'" },
	{ "\xf3\xa0\x80\x81\xf3\xa0\x81\x81\xf3\xa0\x84\x80", "$'\\U000e0001\\U000e0041\\U000e0100'" },
	{ "a\xc2\xa0"
	  "b\xe2\x80\x83"
	  "c\xe3\x80\x80"
	  "d",
	  "$'a\\u00a0b\\u2003c\\u3000d'" },
	{ "\xe2\x80\xa8\xe2\x80\xa9", "$'\\u2028\\u2029'" },
	/* what is laid over its neighbour */
	{ "a\xcc\xb6", "$'a\\u0336'" },
	{ "\xe0\xa4\x95\xe0\xa5\x8d", "$'\\u0915\\u094d'" }, /* Devanagari: a letter and its virama */
	{ "\xe0\xb8\x81\xe0\xb8\xb4", "$'\\u0e01\\u0e34'" }, /* Thai, with a vowel above */
	{ "\xd6\xb0\xd9\x8b\xdc\xb0\xe3\x82\x99", "$'\\u05b0\\u064b\\u0730\\u3099'" }, /* marks of other scripts */
	/* letters that turn the direction around */
	{ "a/\xd7\x90\xd7\x91/1", "$'a/\\u05d0\\u05d1/1'" },
	{ "\xd8\xa7\xdc\x90\xde\x80\xdf\x8a\xf0\x90\xa4\x80\xf0\x9e\xa4\x80",
	  "$'\\u0627\\u0710\\u0780\\u07ca\\U00010900\\U0001e900'" },
	{ "\xef\xac\x9d\xef\xba\x8d", "$'\\ufb1d\\ufe8d'" },
	/* twins of other characters, and what is not assigned */
	{ "\xe2\x84\xaa\xcd\xbe\xef\xbd\x81\xf0\x9d\x90\x9a", "$'\\u212a\\u037e\\uff41\\U0001d41a'" },
	{ "\xcd\xb8\xf0\xbf\xbf\xbd\xee\x80\x80\xef\xbf\xbd", "$'\\u0378\\U0003fffd\\ue000\\ufffd'" },
	/* what would seem to end the word */
	{ "a\xe2\x80\x99 --read /etc \xe2\x80\x98"
	  "b",
	  "$'a\\u2019 --read /etc \\u2018b'" },
	/* letters of scripts without any of this */
	{ "\xce\x91\xce\xb2 \xd0\x96\xd1\x8f \xd5\x80 \xe1\x83\x90 \xea\xb0\x80 \xe3\x82\xab\xe3\x83\xbc \xe1\xba\xbf",
	  "'\xce\x91\xce\xb2 \xd0\x96\xd1\x8f \xd5\x80 \xe1\x83\x90 \xea\xb0\x80 \xe3\x82\xab\xe3\x83\xbc "
	  "\xe1\xba\xbf'" },
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
	for (unsigned first = 1; first < 256; first += EACH)
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

static struct visible seen_of(uint32_t code)
{
	char text[4] = { (char)code };
	size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
	for (size_t i = length; length > 1 && --i > 0; code >>= 6)
		text[i] = (char)(0x80 | (code & 0x3f));
	if (length > 1)
		text[0] = (char)(0xf00 >> length | code);
	return visible_next(text, length);
}

/* The C library knows which characters are printed, and how wide; the Unicode standard which blocks are for scripts
 * that are written from right to left (DerivedBidiClass.txt: also what is not assigned yet). */
static void test_plain_is_visible_and_left_to_right(void **state)
{
	static const uint32_t right_to_left[][2] = { { 0x590, 0x8ff },     { 0xfb1d, 0xfdff },   { 0xfe70, 0xfeff },
		                                     { 0x10800, 0x10fff }, { 0x1e800, 0x1efff }, { 0x200f, 0x200f } };
	size_t count = 0;
	(void)state;
	assert_non_null(setlocale(LC_CTYPE, "C.UTF-8"));
	for (uint32_t code = 0; code < 0x110000; code++) {
		struct visible seen = seen_of(code);
		if (!seen.is_utf8 || !seen.is_plain)
			continue;
		assert_int_equal(seen.code, code);
		if (wcwidth((wchar_t)code) < 1)
			fail_msg("U+%04X takes no place of its own", (unsigned)code);
		for (size_t i = 0; i < ARRAY_SIZE(right_to_left); i++)
			assert_false(code >= right_to_left[i][0] && code <= right_to_left[i][1]);
		count++;
	}
	assert_in_range(count, 100000, 110000);
}

static void test_output(void **state)
{
	static const struct {
		uint32_t code;
		bool is_output;
	} cases[] = { { 'a', true },   { 0x5d0, true },   { 0x94d, true },   { 0x2019, true },  { 0x1b, false },
		      { 0x9b, false }, { 0x202e, false }, { 0x200b, false }, { 0xe0041, false } };
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct visible seen = seen_of(cases[i].code);
		assert_int_equal(visible_is_output(&seen), cases[i].is_output);
	}
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
		                            cmocka_unit_test(test_plain_is_visible_and_left_to_right),
		                            cmocka_unit_test(test_output), cmocka_unit_test(test_json) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* UTF-8 boundaries, compared with a decoder that is written the other way round: decode, then encode again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <string.h>

#include <cmocka.h>

#include "base/utf8.h"

static size_t encode(uint32_t point, unsigned char out[4])
{
	if (point < 0x80)
		return out[0] = (unsigned char)point, 1;
	if (point < 0x800)
		return out[0] = 0xc0 | point >> 6, out[1] = 0x80 | (point & 63), 2;
	if (point < 0x10000)
		return out[0] = 0xe0 | point >> 12, out[1] = 0x80 | (point >> 6 & 63), out[2] = 0x80 | (point & 63), 3;
	out[0] = 0xf0 | point >> 18;
	out[1] = 0x80 | (point >> 12 & 63);
	out[2] = 0x80 | (point >> 6 & 63);
	out[3] = 0x80 | (point & 63);
	return 4;
}

static void every_code_point_is_a_sequence(void **state)
{
	(void)state;
	for (uint32_t point = 0; point <= 0x10ffff; point++) {
		unsigned char bytes[4];
		size_t length = encode(point, bytes);
		bool surrogate = point >= 0xd800 && point <= 0xdfff;
		assert_int_equal(utf8_sequence((char *)bytes, length), surrogate ? 0 : length);
		for (size_t cut = 1; cut < length; cut++) {
			assert_int_equal(utf8_sequence((char *)bytes, cut), 0);
			/* A surrogate is already no prefix at its second byte. */
			assert_int_equal(utf8_cut_tail((char *)bytes, cut), surrogate && cut > 1 ? 0 : cut);
			assert_int_equal(utf8_cut_head((char *)bytes + cut, length - cut), length - cut);
		}
		assert_int_equal(utf8_cut_tail((char *)bytes, length), 0);
		assert_int_equal(utf8_cut_head((char *)bytes, length), 0);
	}
}

/* Of all sequences of three bytes, exactly those that encode() makes are valid. */
static void nothing_else_is(void **state)
{
	(void)state;
	for (uint32_t number = 0; number < 1 << 24; number++) {
		unsigned char bytes[3] = { number >> 16 & 255, number >> 8 & 255, number & 255 }, again[4];
		size_t size = utf8_sequence((char *)bytes, 3);
		uint32_t point = bytes[0];
		if (size == 2)
			point = (bytes[0] & 31u) << 6 | (bytes[1] & 63u);
		else if (size == 3)
			point = (bytes[0] & 15u) << 12 | (bytes[1] & 63u) << 6 | (bytes[2] & 63u);
		if (size && (encode(point, again) != size || memcmp(again, bytes, size)))
			fail_msg("%02x %02x %02x", bytes[0], bytes[1], bytes[2]);
	}
}

static void ends_that_are_not_cut(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		size_t length, cut;
	} rows[] = {
		{ "", 0, 0 },
		{ "a", 1, 0 },
		{ "\xc3", 1, 1 },
		{ "a\xe2\x82", 3, 2 },
		{ "\xf0\x9f\x98", 3, 3 },
		{ "\x80", 1, 0 },
		{ "\x80\x80\x80", 3, 0 },
		{ "\xc0", 1, 0 },
		{ "\xc1", 1, 0 },
		{ "\xf5", 1, 0 },
		{ "\xff", 1, 0 },
		{ "\xe0\x80", 2, 0 },
		{ "\xed\xa0", 2, 0 },
		{ "\xf0\x80\x80", 3, 0 },
		{ "\xf4\x90", 2, 0 },
		{ "\xf4\x8f", 2, 2 },
		{ "\xc3\xa9\x80", 3, 0 },
		{ "\xf0\x9f\x98\x80", 4, 0 },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_int_equal(utf8_cut_tail(rows[i].text, rows[i].length), rows[i].cut);
	assert_int_equal(utf8_cut_head("\x80\x80\x80\x80", 4), 3);
	assert_int_equal(utf8_cut_head("\x80" "a", 2), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_code_point_is_a_sequence),
		cmocka_unit_test(nothing_else_is),
		cmocka_unit_test(ends_that_are_not_cut),
	};
	return cmocka_run_group_tests_name("utf8", tests, NULL, NULL);
}

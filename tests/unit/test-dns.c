/* DNS messages, byte by byte: names, compression, the addresses of a reply. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net/dns.h"

#define HEADER "\0\1\x81\x80\0\1\0\1\0\0\0\0"
#define QUESTION "\1a\4test\0\0\1\0\1"          /* a.test at 12, "test" at 14 */
#define RECORD(type, size) type "\0\1\0\0\0\x3c" size
#define A RECORD("\0\1", "\0\4")
#define CNAME(size) RECORD("\0\5", size)

/* Of a copy, so that a read past its end is seen. */
static long addresses(const char *bytes, size_t length, unsigned answers, unsigned type, struct address *ret_first)
{
	struct address found[4];
	uint8_t *copy = malloc(length);
	assert_non_null(copy);
	memcpy(copy, bytes, length);
	if (length > 7) {
		copy[6] = (uint8_t)(answers >> 8);
		copy[7] = (uint8_t)answers;
	}
	long count = dns_reply_addresses(copy, length, "a.test", type, found, 4);
	free(copy);
	if (count > 0)
		*ret_first = found[0];
	return count;
}

static const struct {
	const char *what, *bytes;
	size_t length;
	unsigned answers;
	long count;
} replies[] = {
#define REPLY(what, text, answers, count)                                                                              \
	{                                                                                                              \
		what, HEADER QUESTION text, sizeof(HEADER QUESTION text) - 1, answers, count                           \
	}
	REPLY("none", "", 0, 0),
	REPLY("one", "\xc0\x0c" A "\1\2\3\4", 1, 1),
	REPLY("not compressed, other case", "\1A\4Test\0" A "\1\2\3\4", 1, 1),
	REPLY("half compressed", "\1a\xc0\x0e" A "\1\2\3\4", 1, 1),
	REPLY("two", "\xc0\x0c" A "\1\2\3\4\xc0\x0c" A "\5\6\7\x8", 2, 2),
	REPLY("another name", "\1b\xc0\x0e" A "\1\2\3\4", 1, 0),
	REPLY("alias",
	      "\xc0\x0c" CNAME("\0\4") "\1b\xc0\x0e"
	                               "\1b\xc0\x0e" A "\1\2\3\4",
	      2, 1),
	REPLY("alias after its address", "\1b\xc0\x0e" A "\1\2\3\4\xc0\x0c" CNAME("\0\4") "\1b\xc0\x0e", 2, 1),
	REPLY("alias without address", "\xc0\x0c" CNAME("\0\4") "\1b\xc0\x0e", 1, 0),
	REPLY("alias of itself", "\xc0\x0c" CNAME("\0\2") "\xc0\x0c", 1, -1),
	REPLY("alias longer than its record", "\xc0\x0c" CNAME("\0\2") "\1b\xc0\x0e", 1, -1),
	REPLY("of another class", "\xc0\x0c\0\1\0\3\0\0\0\x3c\0\4\1\2\3\4", 1, 0),
	REPLY("of another type", "\xc0\x0c" RECORD("\0\x10", "\0\4") "\1\2\3\4", 1, 0),
	REPLY("three bytes", "\xc0\x0c" RECORD("\0\1", "\0\3") "\1\2\3", 1, -1),
	REPLY("sixteen bytes", "\xc0\x0c" RECORD("\0\1", "\0\x10") "0123456789abcdef", 1, -1),
	REPLY("data beyond the end", "\xc0\x0c" A "\1\2\3", 1, -1),
	REPLY("fewer records than announced", "\xc0\x0c" A "\1\2\3\4", 2, -1),
	REPLY("a record cut in its head", "\xc0\x0c\0\1\0", 1, -1),
	REPLY("pointer to itself", "\xc0\x17" A "\1\2\3\4", 1, -1),
	REPLY("pointer forward", "\xc0\x40" A "\1\2\3\4", 1, -1),
	REPLY("pointer cut", "\xc0", 1, -1),
	REPLY("label cut",
	      "\x3f"
	      "abc",
	      1, -1),
	REPLY("label of an unknown kind",
	      "\x80"
	      "abc" A "\1\2\3\4",
	      1, -1),
	REPLY("label of another unknown kind",
	      "\x41"
	      "abc" A "\1\2\3\4",
	      1, -1),
#undef REPLY
};

static void addresses_of_replies(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(replies); i++) {
		struct address first = { 0 };
		long count = addresses(replies[i].bytes, replies[i].length, replies[i].answers, DNS_TYPE_A, &first);
		if (count != replies[i].count)
			fail_msg("%s: %ld", replies[i].what, count);
		if (count > 0) {
			assert_memory_equal(first.bytes, "\1\2\3\4", 4);
			assert_int_equal(first.length, 4);
		}
		/* Cut anywhere, nothing bad happens, and what is missing is noticed. */
		for (size_t length = 1; length < replies[i].length; length++)
			if (addresses(replies[i].bytes, length, replies[i].answers, DNS_TYPE_A, &first) > 0)
				fail_msg("%s, cut to %zu bytes", replies[i].what, length);
	}
}

static void of_both_families(void **state)
{
	(void)state;
	struct address first = { 0 };
	static const char reply[] = HEADER QUESTION "\xc0\x0c" RECORD("\0\x1c", "\0\x10") "0123456789abcdef"
											  "\xc0\x0c" A "\1\2\3\4";
	assert_int_equal(addresses(reply, sizeof(reply) - 1, 2, DNS_TYPE_AAAA, &first), 1);
	assert_memory_equal(first.bytes, "0123456789abcdef", 16);
	assert_int_equal(first.length, 16);
	assert_int_equal(addresses(reply, sizeof(reply) - 1, 2, DNS_TYPE_A, &first), 1);
	assert_int_equal(first.length, 4);
}

static void more_than_there_is_room_for(void **state)
{
	(void)state;
	char reply[1024];
	size_t length = sizeof(HEADER QUESTION) - 1;
	memcpy(reply, HEADER QUESTION, length);
	for (int i = 0; i < 50; i++) {
		memcpy(reply + length, "\xc0\x0c" A "\1\2\3\4", 16);
		length += 16;
	}
	struct address first;
	assert_int_equal(addresses(reply, length, 50, DNS_TYPE_A, &first), 50);
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

static int read_name(const char *bytes, size_t length, size_t at, struct dns_name *ret_name, size_t *ret_behind)
{
	uint8_t *copy = malloc(length);
	assert_non_null(copy);
	memcpy(copy, bytes, length);
	int rc = dns_name_read(copy, length, &at, ret_name);
	free(copy);
	*ret_behind = at;
	return rc;
}

static void names(void **state)
{
	(void)state;
	struct dns_name name = { .length = 7 }, text;
	size_t behind;
	assert_int_equal(read_name("\3Www\7example\3com\0x", 18, 0, &name, &behind), 0);
	assert_int_equal(behind, 17);
	assert_int_equal(dns_name_from_text("www.EXAMPLE.com", &text), 0);
	assert_int_equal(name.length, text.length);
	assert_memory_equal(name.bytes, text.bytes, name.length);
	assert_int_equal(read_name("\0", 1, 0, &name, &behind), 0);
	assert_int_equal(name.length, 1);
	assert_int_equal(read_name("", 1, 1, &name, &behind), -1);

	char labels[300], wire[512];
	memset(labels, 'a', sizeof(labels));
	labels[63] = '\0';
	assert_int_equal(dns_name_from_text(labels, &text), 0);
	labels[63] = 'a';
	labels[64] = '\0';
	assert_int_equal(dns_name_from_text(labels, &text), -1);
	/* 127 labels of one byte are 255 bytes with the end. */
	for (int i = 0; i < 128; i++) {
		labels[2 * i] = 'a';
		labels[2 * i + 1] = '.';
		wire[2 * i] = 1;
		wire[2 * i + 1] = 'a';
	}
	labels[2 * 127 - 1] = '\0';
	assert_int_equal(dns_name_from_text(labels, &text), 0);
	assert_int_equal(text.length, 255);
	wire[254] = 0;
	assert_int_equal(read_name(wire, 255, 0, &name, &behind), 0);
	wire[254] = 1;
	wire[256] = 0;
	assert_int_equal(read_name(wire, 257, 0, &name, &behind), -1);
	static const char *const wrong[] = { "", ".", "a.", ".a", "a..b" };
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(dns_name_from_text(wrong[i], &text), -1);
}

static void pointers(void **state)
{
	(void)state;
	struct dns_name name;
	size_t behind;
	assert_int_equal(read_name("\1a\0\1b\xc0\0x", 8, 3, &name, &behind), 0);
	assert_int_equal(behind, 7);
	assert_memory_equal(name.bytes, "\1b\1a\0", 5);
	/* Two that point at each other, at itself, to after itself, into nothing. */
	assert_int_equal(read_name("\xc0\2\xc0\0", 4, 0, &name, &behind), -1);
	assert_int_equal(read_name("\xc0\2\xc0\0", 4, 2, &name, &behind), -1);
	assert_int_equal(read_name("\1a\xc0\0", 4, 0, &name, &behind), -1);
	assert_int_equal(read_name("\1a\xc0\2", 4, 0, &name, &behind), -1);
	assert_int_equal(read_name("\1a\xc0\4\0", 5, 0, &name, &behind), -1);
	assert_int_equal(read_name("\xff\xff", 2, 0, &name, &behind), -1);
	/* Backwards, step by step: for a while, but not for ever. */
	char chain[400] = "\1a";
	for (unsigned i = 0; i < 150; i++) {
		unsigned to = i ? 3 + 2 * (i - 1) : 0;
		chain[3 + 2 * i] = (char)(0xc0 | to >> 8);
		chain[4 + 2 * i] = (char)to;
	}
	assert_int_equal(read_name(chain, sizeof(chain), 3 + 2 * 63, &name, &behind), 0);
	assert_int_equal(read_name(chain, sizeof(chain), 3 + 2 * 64, &name, &behind), -1);
	assert_int_equal(read_name(chain, sizeof(chain), 3 + 2 * 149, &name, &behind), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_of_replies),
		cmocka_unit_test(of_both_families),
		cmocka_unit_test(more_than_there_is_room_for),
		cmocka_unit_test(names),
		cmocka_unit_test(pointers),
	};
	return cmocka_run_group_tests_name("dns", tests, NULL, NULL);
}

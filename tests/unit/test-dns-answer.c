/* Questions as programs send them and as attackers do, and the answers, which another parser must understand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net/dns-answer.h"

#define HEAD(flags, questions, extra) "\x12\x34" flags "\0" questions "\0\0\0\0\0" extra
#define PLAIN HEAD("\1\0", "\1", "\0")
#define NAME "\1A\4Test\0"
#define A "\0\1\0\1"
#define OPT(size, version) "\0\0\x29" size "\0" version "\0\0\0\0"

static const struct {
	const char *what, *bytes;
	size_t length;
	int verdict;
	const char *name;
	unsigned type;
} queries[] = {
#define QUERY(what, text, verdict, name, type) { what, text, sizeof(text) - 1, verdict, name, type }
	QUERY("plain", PLAIN NAME A, DNS_NOERROR, "a.test", DNS_TYPE_A),
	QUERY("without recursion", HEAD("\0\0", "\1", "\0") NAME A, DNS_NOERROR, "a.test", DNS_TYPE_A),
	QUERY("for IPv6", PLAIN NAME "\0\x1c\0\1", DNS_NOERROR, "a.test", DNS_TYPE_AAAA),
	QUERY("of another type", PLAIN NAME "\0\x10\0\1", DNS_NOERROR, "a.test", 16),
	QUERY("for the root", PLAIN "\0" A, DNS_NOERROR, "", DNS_TYPE_A),
	QUERY("with EDNS", HEAD("\1\0", "\1", "\1") NAME A OPT("\4\xd0", "\0"), DNS_NOERROR, "a.test", DNS_TYPE_A),
	QUERY("with EDNS and an option", HEAD("\1\0", "\1", "\1") NAME A "\0\0\x29\4\xd0\0\0\0\0\0\6\0\x0a\0\2ab",
	      DNS_NOERROR, "a.test", DNS_TYPE_A),
	QUERY("a dot in a label", PLAIN "\3a.b\4test\0" A, DNS_NOERROR, "", DNS_TYPE_A),
	QUERY("a NUL in a label", PLAIN "\3a\0b\4test\0" A, DNS_NOERROR, "", DNS_TYPE_A),
	QUERY("nothing", "", -1, NULL, 0),
	QUERY("a cut header", "\x12\x34\1\0\0\1\0\0\0\0\0", -1, NULL, 0),
	QUERY("a reply", HEAD("\x81\x80", "\1", "\0") NAME A, -1, NULL, 0),
	QUERY("another operation", HEAD("\x28\0", "\1", "\0") NAME A, DNS_NOTIMP, NULL, 0),
	QUERY("another class", PLAIN NAME "\0\1\0\3", DNS_NOTIMP, "a.test", DNS_TYPE_A),
	QUERY("marked as cut", HEAD("\3\0", "\1", "\0") NAME A, DNS_FORMERR, NULL, 0),
	QUERY("no question", HEAD("\1\0", "\0", "\0"), DNS_FORMERR, NULL, 0),
	QUERY("two questions", HEAD("\1\0", "\2", "\0") NAME A NAME A, DNS_FORMERR, NULL, 0),
	QUERY("an answer in it", "\x12\x34\1\0\0\1\0\1\0\0\0\0" NAME A NAME A "\0\0\0\0\0\4\1\2\3\4", DNS_FORMERR, NULL,
	      0),
	QUERY("an authority in it", "\x12\x34\1\0\0\1\0\0\0\1\0\0" NAME A NAME A "\0\0\0\0\0\4\1\2\3\4", DNS_FORMERR,
	      NULL, 0),
	QUERY("something behind it", PLAIN NAME A "x", DNS_FORMERR, NULL, 0),
	QUERY("no type", PLAIN NAME, DNS_FORMERR, NULL, 0),
	QUERY("half a type", PLAIN NAME "\0\1\0", DNS_FORMERR, NULL, 0),
	QUERY("a label beyond the end",
	      PLAIN "\x3f"
	            "abc",
	      DNS_FORMERR, NULL, 0),
	QUERY("a pointer into the header", PLAIN "\1a\xc0\0" A, DNS_FORMERR, NULL, 0),
	QUERY("a pointer to itself", PLAIN "\xc0\x0c" A, DNS_FORMERR, NULL, 0),
	QUERY("an extra that is not EDNS", HEAD("\1\0", "\1", "\1") NAME A NAME A "\0\0\0\0\0\0", DNS_FORMERR, NULL, 0),
	QUERY("EDNS of a later version", HEAD("\1\0", "\1", "\1") NAME A OPT("\4\xd0", "\1"), DNS_FORMERR, NULL, 0),
	QUERY("EDNS cut", HEAD("\1\0", "\1", "\1") NAME A "\0\0\x29\4\xd0", DNS_FORMERR, NULL, 0),
	QUERY("EDNS longer than the message", HEAD("\1\0", "\1", "\1") NAME A "\0\0\x29\4\xd0\0\0\0\0\0\1", DNS_FORMERR,
	      NULL, 0),
	QUERY("EDNS twice", HEAD("\1\0", "\1", "\2") NAME A OPT("\4\xd0", "\0") OPT("\4\xd0", "\0"), DNS_FORMERR, NULL,
	      0),
#undef QUERY
};

/* Of a copy, so that a read past its end is seen. */
static int read_query(const char *bytes, size_t length, struct dns_query *ret_query)
{
	uint8_t *copy = malloc(length ? length : 1);
	assert_non_null(copy);
	memcpy(copy, bytes, length);
	int verdict = dns_query_read(copy, length, ret_query);
	free(copy);
	return verdict;
}

static void every_kind_of_question(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(queries); i++) {
		struct dns_query query;
		int verdict = read_query(queries[i].bytes, queries[i].length, &query);
		if (verdict != queries[i].verdict)
			fail_msg("%s: %d", queries[i].what, verdict);
		if (queries[i].name) {
			assert_string_equal(query.name, queries[i].name);
			assert_int_equal(query.type, queries[i].type);
		}
		if (verdict >= 0)
			assert_int_equal(query.id, 0x1234);
		for (size_t length = 0; verdict == DNS_NOERROR && length < queries[i].length; length++)
			if (read_query(queries[i].bytes, length, &query) == DNS_NOERROR)
				fail_msg("%s, cut to %zu bytes", queries[i].what, length);
	}
}

static struct dns_query query_for(unsigned type, bool edns)
{
	char text[] = HEAD("\1\0", "\1", "\1") NAME A OPT("\4\xd0", "\0");
	struct dns_query query;
	text[11] = edns;
	text[21] = (char)type;
	assert_int_equal(read_query(text, sizeof(text) - 1 - (edns ? 0 : 11), &query), DNS_NOERROR);
	return query;
}

/* The last is none: a name may have no address of one kind. */
static const struct address some[] = {
	{ { 198, 18, 0, 1 }, 4 }, { { 0xfd, [15] = 1 }, 16 }, { { 198, 18, 0, 2 }, 4 }, { { 0 }, 0 },
};

static void answers_are_understood(void **state)
{
	(void)state;
	static uint8_t answer[DNS_TCP_MAX];
	struct address found[4];
	for (int edns = 0; edns < 2; edns++) {
		struct dns_query query = query_for(DNS_TYPE_A, edns);
		size_t length = dns_answer_write(&query, DNS_NOERROR, some, 4, 30, true, answer);
		assert_int_equal(dns_reply_addresses(answer, length, "a.test", DNS_TYPE_A, found, 4), 2);
		assert_memory_equal(found[1].bytes, some[2].bytes, 4);
		/* Its id, its flags, the question as it was asked. */
		assert_memory_equal(answer, "\x12\x34\x85\x80\0\1\0\2\0\0\0", 11);
		assert_int_equal(answer[11], edns);
		assert_memory_equal(answer + 12, NAME A, 12);
		query = query_for(DNS_TYPE_AAAA, edns);
		length = dns_answer_write(&query, DNS_NOERROR, some, 4, 30, true, answer);
		assert_int_equal(dns_reply_addresses(answer, length, "a.test", DNS_TYPE_AAAA, found, 4), 1);
		assert_memory_equal(found[0].bytes, some[1].bytes, 16);
		/* There is nothing of another type. */
		query = query_for(16, edns);
		length = dns_answer_write(&query, DNS_NOERROR, some, 4, 30, true, answer);
		assert_int_equal(length, 24 + (edns ? 11 : 0));
		assert_int_equal(answer[7], 0);
		/* No such name. */
		query = query_for(DNS_TYPE_A, edns);
		length = dns_answer_write(&query, DNS_NXDOMAIN, some, 4, 30, true, answer);
		assert_int_equal(length, 24 + (edns ? 11 : 0));
		assert_int_equal(answer[3] & 15, DNS_NXDOMAIN);
	}
}

static void what_was_not_understood_gets_its_id_back(void **state)
{
	(void)state;
	static uint8_t answer[DNS_TCP_MAX];
	struct dns_query query;
	assert_int_equal(read_query(HEAD("\1\0", "\1", "\0") "\x3f", 13, &query), DNS_FORMERR);
	assert_int_equal(dns_answer_write(&query, DNS_FORMERR, some, 4, 30, true, answer), 12);
	assert_memory_equal(answer, "\x12\x34\x85\x81\0\0\0\0\0\0\0\0", 12);
}

static void what_does_not_fit_is_cut(void **state)
{
	(void)state;
	static uint8_t answer[DNS_TCP_MAX];
	static struct address many[5000], found[5000];
	for (size_t i = 0; i < 5000; i++)
		many[i] = (struct address){ { 198, 18, (uint8_t)(i >> 8), (uint8_t)i }, 4 };
	static const size_t limits[] = { DNS_UDP_MIN, DNS_UDP_MAX };
	for (int edns = 0; edns < 2; edns++) {
		struct dns_query query = query_for(DNS_TYPE_A, edns);
		size_t length = dns_answer_write(&query, DNS_NOERROR, many, 5000, 30, true, answer);
		assert_true(length <= limits[edns] && length + 16 > limits[edns] && answer[2] & 2);
		assert_int_equal(dns_reply_addresses(answer, length, "a.test", DNS_TYPE_A, found, 5000), answer[7]);
		length = dns_answer_write(&query, DNS_NOERROR, many, 4000, 30, false, answer);
		assert_false(answer[2] & 2);
		assert_int_equal(dns_reply_addresses(answer, length, "a.test", DNS_TYPE_A, found, 5000), 4000);
		assert_memory_equal(found[3999].bytes, many[3999].bytes, 4);
		length = dns_answer_write(&query, DNS_NOERROR, many, 5000, 30, false, answer);
		assert_true(length <= DNS_TCP_MAX && answer[2] & 2);
	}
}

static void frames(void **state)
{
	(void)state;
	assert_int_equal(dns_tcp_message((const uint8_t *)"", 0), -1);
	assert_int_equal(dns_tcp_message((const uint8_t *)"\0", 1), -1);
	assert_int_equal(dns_tcp_message((const uint8_t *)"\0\0", 2), 0);
	assert_int_equal(dns_tcp_message((const uint8_t *)"\0\3ab", 4), -1);
	assert_int_equal(dns_tcp_message((const uint8_t *)"\0\3abc", 5), 3);
	assert_int_equal(dns_tcp_message((const uint8_t *)"\0\3abcdef", 8), 3);
	assert_int_equal(dns_tcp_message((const uint8_t *)"\xff\xff" "a", 3), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_of_question),
		cmocka_unit_test(answers_are_understood),
		cmocka_unit_test(what_was_not_understood_gets_its_id_back),
		cmocka_unit_test(what_does_not_fit_is_cut),
		cmocka_unit_test(frames),
	};
	return cmocka_run_group_tests_name("dns-answer", tests, NULL, NULL);
}

/* Chunked bodies, whole and byte by byte: the end is found at the same place, and what is malformed is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net/http.h"

enum { MORE = -1, BAD = -2 };

#define BODY(what, text, used) { what, text, sizeof(text) - 1, used }
/* How much of it is the body, or MORE, or BAD. */
static const struct {
	const char *what, *text;
	size_t length;
	long used;
} bodies[] = {
	BODY("empty", "0\r\n\r\n", 5),
	BODY("what lies behind", "0\r\n\r\nGET", 5),
	BODY("one", "5\r\nhello\r\n0\r\n\r\n", 15),
	BODY("two", "1\r\na\r\n1\r\nb\r\n0\r\n\r\n", 17),
	BODY("hexadecimal", "A\r\n0123456789\r\n00\r\n\r\n", 21),
	BODY("nine and fifteen", "9\r\n012345678\r\nf\r\n0123456789abcde\r\n0\r\n\r\n", 39),
	BODY("sixteen digits", "0000000000000001\r\na\r\n0000000000000000\r\n\r\n", 41),
	BODY("any bytes", "4\r\n\0\r\n0\r\n0\r\n\r\n", 14),
	BODY("a trailer", "0\r\nX-Sum: abc\r\nY:\r\n\r\n", 21),
	BODY("not yet anything", "", MORE),
	BODY("not yet ended", "5\r\nhello\r\n", MORE),
	BODY("the largest", "7fffffffffffffff\r\nabc", MORE),
	BODY("too large", "8000000000000000\r\n", BAD),
	BODY("larger than large", "ffffffffffffffff\r\n", BAD),
	BODY("seventeen digits", "00000000000000001\r\n", BAD),
	BODY("no size", "\r\n", BAD),
	BODY("no digit", "g\r\n", BAD),
	BODY("0x", "0x5\r\nhello\r\n", BAD),
	BODY("signed", "+5\r\nhello\r\n", BAD),
	BODY("negative", "-5\r\nhello\r\n", BAD),
	BODY("a space before", " 5\r\nhello\r\n", BAD),
	BODY("a space behind", "5 \r\nhello\r\n", BAD),
	BODY("an extension", "5;a=b\r\nhello\r\n", BAD),
	BODY("an empty extension", "5;\r\nhello\r\n", BAD),
	BODY("an extension with a feed", "5;\nhello\r\n", BAD),
	BODY("a bare feed", "5\nhello\r\n", BAD),
	BODY("a bare return", "5\rhello\r\n", BAD),
	BODY("a bare feed behind the data", "5\r\nhello\n0\r\n\r\n", BAD),
	BODY("more data than told", "5\r\nhello!\r\n", BAD),
	BODY("less data than told", "5\r\nhell\r\n0\r\n\r\n", BAD),
	BODY("no return at the end", "0\r\n\n", BAD),
	BODY("a return and no feed", "0\r\n\rX", BAD),
	BODY("a trailer that is none", "0\r\nGET / HTTP/1.1\r\n", BAD),
	BODY("a trailer without a name", "0\r\n: a\r\n", BAD),
	BODY("a folded trailer", "0\r\nA: b\r\n c\r\n\r\n", BAD),
	BODY("a trailer with a space before its colon", "0\r\nA : b\r\n\r\n", BAD),
	BODY("a trailer with a NUL", "0\r\nA: \0\r\n\r\n", BAD),
	BODY("a trailer with a bare feed", "0\r\nA: b\n\r\n", BAD),
	BODY("a trailer with a bare return", "0\r\nA: b\rC: d\r\n\r\n", BAD),
	BODY("a trailer with the length", "0\r\nContent-Length: 5\r\n\r\n", BAD),
	BODY("a trailer with the length, nearly", "0\r\ncontent_length: 5\r\n\r\n", BAD),
	BODY("a trailer with the encoding", "0\r\nA: b\r\nTRANSFER-ENCODING: chunked\r\n\r\n", BAD),
	BODY("a trailer with the host", "0\r\nHost: a\r\n\r\n", BAD),
	BODY("a trailer for the proxy", "0\r\nProxy-Authorization: a\r\n\r\n", BAD),
};

/* In steps of so many bytes, each a copy of its own. */
static long run(const char *text, size_t length, size_t step)
{
	struct http_chunk chunk = { 0 };
	bool done = false;
	size_t at = 0;
	while (at < length && !done) {
		size_t size = length - at < step ? length - at : step, used = 0;
		const char *why = NULL;
		char *copy = malloc(size);
		assert_non_null(copy);
		memcpy(copy, text + at, size);
		int rc = http_chunk_step(&chunk, copy, size, &used, &done, &why);
		free(copy);
		if (rc < 0) {
			assert_true(why && *why);
			return BAD;
		}
		assert_true(used == size || (done && used < size));
		at += used;
	}
	return done ? (long)at : MORE;
}

static void every_body(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bodies); i++)
		for (size_t step = 1; step <= bodies[i].length + 1; step++) {
			long used = run(bodies[i].text, bodies[i].length, step);
			if (used != bodies[i].used)
				fail_msg("%s, %zu bytes at a time: %ld", bodies[i].what, step, used);
		}
}

static void done_stays_done(void **state)
{
	(void)state;
	struct http_chunk chunk = { 0 };
	const char *why;
	size_t used;
	bool done;
	assert_int_equal(http_chunk_step(&chunk, "0\r\n\r\n5\r\n", 8, &used, &done, &why), 0);
	assert_true(done && used == 5);
	assert_int_equal(http_chunk_step(&chunk, "5\r\n", 3, &used, &done, &why), 0);
	assert_true(done && used == 0);
}

static void trailers_are_bounded(void **state)
{
	(void)state;
	char text[HTTP_TRAILER_MAX + 64];
	for (int more = 0; more < 2; more++) {
		/* "A:", the value, "\r\n", and the return of the last line. */
		int length = sprintf(text, "0\r\nA:%0*d\r\n\r\n", HTTP_TRAILER_MAX - 4 + more, 0);
		assert_int_equal(run(text, (size_t)length, sizeof(text)), more ? BAD : length);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_body),
		cmocka_unit_test(done_stays_done),
		cmocka_unit_test(trailers_are_bounded),
	};
	return cmocka_run_group_tests_name("http-chunk", tests, NULL, NULL);
}

/* Responses as servers send them, and as those do who want the next one to be taken for something else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net/http.h"

#define OK "HTTP/1.1 200 OK\r\n"
#define END "\r\n"
#define CHUNKED "Transfer-Encoding: chunked\r\n"

static const struct http_request get = { .method = HTTP_OTHER, .minor = 1 }, head = { .method = HTTP_HEAD, .minor = 1 },
                                 old = { .method = HTTP_OTHER, .minor = 0 };

static const struct {
	const char *what, *text;
	const struct http_request *request;
	const char *written;
	enum http_body body;
	uint64_t length;
	bool keep_alive;
} accepted[] = {
	{ "plain", OK "Content-Length: 5\r\nA: b\r\n" END, &get, OK "A: b\r\nContent-Length: 5\r\n" END,
	  HTTP_BODY_LENGTH, 5, true },
	{ "what lies behind is not looked at", OK "Content-Length: 1\r\n" END "\0\n\n", &get,
	  OK "Content-Length: 1\r\n" END, HTTP_BODY_LENGTH, 1, true },
	{ "chunks", OK CHUNKED END, &get, OK CHUNKED END, HTTP_BODY_CHUNKED, 0, true },
	{ "until it closes", OK END, &get, OK "Connection: close\r\n" END, HTTP_BODY_UNTIL_CLOSE, 0, false },
	{ "that closes", OK "Content-Length: 5\r\nConnection: Close\r\n" END, &get,
	  OK "Content-Length: 5\r\nConnection: close\r\n" END, HTTP_BODY_LENGTH, 5, false },
	{ "HTTP/1.0", "HTTP/1.0 404 Not Found\r\nContent-Length: 5\r\n" END, &get,
	  "HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\nConnection: close\r\n" END, HTTP_BODY_LENGTH, 5, false },
	{ "to HTTP/1.0", OK END, &old, OK "Connection: close\r\n" END, HTTP_BODY_UNTIL_CLOSE, 0, false },
	{ "no reason", "HTTP/1.1 200 \r\nContent-Length: 0\r\n" END, &get, "HTTP/1.1 200 \r\nContent-Length: 0\r\n" END,
	  HTTP_BODY_LENGTH, 0, true },
	{ "not even a space", "HTTP/1.1 200\r\nContent-Length: 0\r\n" END, &get,
	  "HTTP/1.1 200 \r\nContent-Length: 0\r\n" END, HTTP_BODY_LENGTH, 0, true },
	{ "to HEAD", OK "Content-Length: 5\r\n" END, &head, OK "Content-Length: 5\r\n" END, HTTP_BODY_NONE, 5, true },
	{ "chunks to HEAD", OK CHUNKED END, &head, OK END, HTTP_BODY_NONE, 0, true },
	{ "nothing to HEAD", OK END, &head, OK END, HTTP_BODY_NONE, 0, true },
	{ "204", "HTTP/1.1 204 No Content\r\n" END, &get, "HTTP/1.1 204 No Content\r\n" END, HTTP_BODY_NONE, 0, true },
	{ "204 of length 0", "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n" END, &get,
	  "HTTP/1.1 204 No Content\r\n" END, HTTP_BODY_NONE, 0, true },
	{ "304", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n" END, &get,
	  "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n" END, HTTP_BODY_NONE, 5, true },
	{ "100", "HTTP/1.1 100 Continue\r\n" END, &get, "HTTP/1.1 100 Continue\r\n" END, HTTP_BODY_NONE, 0, true },
	{ "103", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n" END, &get,
	  "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n" END, HTTP_BODY_NONE, 0, true },
	{ "what is between neighbours",
	  OK "Connection: x-y\r\nX-Y: 1\r\nKeep-Alive: 5\r\nProxy-Authenticate: Basic\r\nUpgrade: h2c\r\n"
	     "Trailer: A\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n" END,
	  &get, OK "Set-Cookie: a=b\r\nContent-Length: 0\r\n" END, HTTP_BODY_LENGTH, 0, true },
};

#define BAD(what, text) { what, text, sizeof(text) - 1, &get }
static const struct {
	const char *what, *text;
	size_t length;
	const struct http_request *request;
} refused[] = {
	BAD("HTTP/0.9", "<html>\r\n"),
	BAD("HTTP/2", "HTTP/2.0 200 OK\r\n" END),
	BAD("HTTP/1.2", "HTTP/1.2 200 OK\r\n" END),
	BAD("ICY", "ICY 200 OK\r\n" END),
	BAD("no status", "HTTP/1.1 OK\r\n" END),
	BAD("a status of two digits", "HTTP/1.1 20 OK\r\n" END),
	BAD("a status of four digits", "HTTP/1.1 2000 OK\r\n" END),
	BAD("a status with letters", "HTTP/1.1 2x0 OK\r\n" END),
	BAD("a status that ends in a letter", "HTTP/1.1 20x OK\r\n" END),
	BAD("a status that ends in a slash", "HTTP/1.1 20/ OK\r\n" END),
	BAD("a status of 600", "HTTP/1.1 600 OK\r\n" END),
	BAD("a status of 0", "HTTP/1.1 000 OK\r\n" END),
	BAD("a status of 999", "HTTP/1.1 999 OK\r\n" END),
	BAD("a signed status", "HTTP/1.1 +20 OK\r\n" END),
	BAD("two spaces", "HTTP/1.1  200 OK\r\n" END),
	BAD("a bare feed", "HTTP/1.1 200 OK\nContent-Length: 5\n\n"),
	BAD("a NUL in the reason", "HTTP/1.1 200 O\0K\r\n" END),
	BAD("a bare return", OK "A: b\rContent-Length: 5\r\n" END),
	BAD("a folded line", OK "A: b\r\n c\r\n" END),
	BAD("a space before the colon", OK "Content-Length : 5\r\n" END),
	BAD("both", OK "Content-Length: 5\r\n" CHUNKED END),
	BAD("CL twice", OK "Content-Length: 5\r\nContent-Length: 5\r\n" END),
	BAD("CL twice, differing", OK "Content-Length: 5\r\nContent-Length: 6\r\n" END),
	BAD("a list of CL", OK "Content-Length: 5,6\r\n" END),
	BAD("TE twice", OK CHUNKED CHUNKED END),
	BAD("gzip, chunked", OK "Transfer-Encoding: gzip, chunked\r\n" END),
	BAD("TE of HTTP/1.0", "HTTP/1.0 200 OK\r\n" CHUNKED END),
	BAD("101", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n" END),
	BAD("100 with a body", "HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n" END),
	BAD("100 with chunks", "HTTP/1.1 100 Continue\r\n" CHUNKED END),
	BAD("204 with a body", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n" END),
	BAD("204 with chunks", "HTTP/1.1 204 No Content\r\n" CHUNKED END),
	{ "chunks to HTTP/1.0", OK CHUNKED END, sizeof(OK CHUNKED END) - 1, &old },
};

/* Of a copy, so that a read past its end is seen. */
static long parse(const char *bytes, size_t length, const struct http_request *request, char **ret_copy,
                  struct http_response *ret_response)
{
	const char *why = NULL;
	*ret_copy = malloc(length ? length : 1);
	assert_non_null(*ret_copy);
	memcpy(*ret_copy, bytes, length);
	long verdict = http_response_parse(*ret_copy, length, request, ret_response, &why);
	if (verdict < 0)
		assert_true(why && *why);
	return verdict;
}

static void sent_on(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(accepted); i++) {
		struct http_response response;
		char *copy, buffer[4096 + HTTP_HEAD_EXTRA];
		size_t length = (size_t)(strstr(accepted[i].text, "\r\n\r\n") + 4 - accepted[i].text);
		long verdict = parse(accepted[i].text, length, accepted[i].request, &copy, &response);
		if (verdict != (long)length)
			fail_msg("%s: %ld", accepted[i].what, verdict);
		assert_int_equal(response.status, atoi(accepted[i].text + 9));
		assert_int_equal(response.is_interim, response.status < 200);
		assert_int_equal(response.body, accepted[i].body);
		assert_int_equal(response.length, accepted[i].length);
		assert_int_equal(response.keep_alive, accepted[i].keep_alive);
		size_t used = http_response_write(&response, response.keep_alive, buffer);
		assert_true(used <= length + HTTP_HEAD_EXTRA);
		buffer[used] = '\0';
		assert_string_equal(buffer, accepted[i].written);
		free(copy);
		for (size_t cut = 0; cut < length; cut++) {
			assert_int_equal(parse(accepted[i].text, cut, accepted[i].request, &copy, &response), 0);
			free(copy);
		}
	}
}

static void not_sent_on(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		struct http_response response;
		char *copy;
		long verdict = parse(refused[i].text, refused[i].length, refused[i].request, &copy, &response);
		free(copy);
		if (verdict != -502)
			fail_msg("%s: %ld", refused[i].what, verdict);
	}
}

static void refusals_have_their_words(void **state)
{
	(void)state;
	char buffer[HTTP_REFUSAL_SIZE];
	http_refusal_write(403, "no", false, buffer);
	assert_memory_equal(buffer, "HTTP/1.1 403 Forbidden\r\n", 24);
	http_refusal_write(505, "no", false, buffer);
	assert_memory_equal(buffer, "HTTP/1.1 505 HTTP Version Not Supported\r\n", 41);
}

/* What the proxy says itself is a response as it takes one from others. */
static void refusals(void **state)
{
	(void)state;
	static const unsigned statuses[] = { 400, 403, 405, 414, 417, 431, 501, 502, 503, 504, 505, 599 };
	char buffer[HTTP_REFUSAL_SIZE], endless[4096], *copy;
	struct http_response response;
	memset(endless, 'x', sizeof(endless) - 1);
	endless[sizeof(endless) - 1] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
		size_t length = http_refusal_write(statuses[i], "no\r\nSet-Cookie: a", false, buffer);
		long used = parse(buffer, length, &get, &copy, &response);
		free(copy);
		assert_true(used > 0 && response.status == statuses[i] && !response.keep_alive);
		assert_int_equal(response.body, HTTP_BODY_LENGTH);
		assert_int_equal(response.length, length - (size_t)used);
		assert_memory_equal(buffer + used, "cordon: no  Set-Cookie: a\n", length - (size_t)used);
		/* Without its text it is as long as with it. */
		size_t bare = http_refusal_write(statuses[i], "no\r\nSet-Cookie: a", true, buffer);
		assert_int_equal(bare, used);
		length = http_refusal_write(statuses[i], endless, false, buffer);
		assert_true(length < sizeof(buffer) && buffer[length - 1] == '\n');
		used = parse(buffer, length, &get, &copy, &response);
		free(copy);
		assert_int_equal(response.length, length - (size_t)used);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sent_on),
		cmocka_unit_test(not_sent_on),
		cmocka_unit_test(refusals),
		cmocka_unit_test(refusals_have_their_words),
	};
	return cmocka_run_group_tests_name("http-response", tests, NULL, NULL);
}

/* What a service sends, and what of it comes into the sandbox: the key in no form in which a client would read it
 * whole, and everything else unchanged, however the bytes are cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gateway/response.h"

#define KEY "sk-Zq7correct9"
#define STARS "**************"
#define OK "HTTP/1.1 200 OK\r\n"
#define CHUNKED "Transfer-Encoding: chunked\r\n"
#define CLOSE "Connection: close\r\n"
#define HEAD_MAX 300

static const struct http_request get = { .method = HTTP_OTHER, .minor = 1 }, head = { .method = HTTP_HEAD, .minor = 1 };

struct sink {
	char bytes[200000];
	size_t length;
};

static void emit(void *context, const char *bytes, size_t length)
{
	struct sink *sink = context;
	assert_true(length <= sizeof(sink->bytes) - sink->length);
	memcpy(sink->bytes + sink->length, bytes, length);
	sink->length += length;
}

/* In pieces of so many bytes, and then the end: 0, or -1. */
static int pass(const struct http_request *request, const char *bytes, size_t length, size_t piece, struct sink *sink,
                bool *ret_done)
{
	const char *why = NULL;
	struct response *response = response_new(request, KEY, strlen(KEY), HEAD_MAX, emit, sink);
	int rc = 0;
	assert_non_null(response);
	sink->length = 0;
	for (size_t at = 0; !rc && at < length; at += piece)
		rc = response_add(response, bytes + at, piece < length - at ? piece : length - at, &why);
	*ret_done = response_is_done(response);
	if (!rc)
		rc = response_end(response, &why);
	assert_true(!rc || (why && *why));
	response_free(response);
	return rc;
}

/* What a client makes of it: the head, and the content without its chunks. */
static void read_as_client(const struct sink *sink, struct sink *ret)
{
	struct http_response response;
	const char *why = NULL;
	long end = http_response_parse(sink->bytes, sink->length, &get, &response, &why);
	assert_true(end > 0);
	ret->length = 0;
	emit(ret, sink->bytes, (size_t)end);
	if (response.body != HTTP_BODY_CHUNKED) {
		emit(ret, sink->bytes + end, sink->length - (size_t)end);
		return;
	}
	struct http_chunk chunk = { 0 };
	bool done = false;
	for (size_t at = (size_t)end, used, content; !done; at += used) {
		assert_int_equal(
			http_chunk_content(&chunk, sink->bytes + at, sink->length - at, &used, &content, &done, &why),
			0);
		assert_true(used > 0);
		emit(ret, sink->bytes + at + used - content, content);
	}
}

static const struct {
	const char *what, *sent, *read;
	const struct http_request *request;
	bool done;      /* without the end of the connection */
} passed[] = {
	{ "nothing to mask", OK "Content-Length: 2\r\n\r\nhi", OK "Content-Length: 2\r\n" CLOSE "\r\nhi", &get, true },
	{ "in a field", OK "X: a" KEY "b\r\nContent-Length: 0\r\n\r\n",
	  OK "X: a" STARS "b\r\nContent-Length: 0\r\n" CLOSE "\r\n", &get, true },
	{ "as a field", OK KEY ": b\r\nContent-Length: 0\r\n\r\n", OK STARS ": b\r\nContent-Length: 0\r\n" CLOSE "\r\n",
	  &get, true },
	{ "as the reason", "HTTP/1.1 401 " KEY "\r\nContent-Length: 0\r\n\r\n",
	  "HTTP/1.1 401 " STARS "\r\nContent-Length: 0\r\n" CLOSE "\r\n", &get, true },
	{ "of a length, and twice", OK "Content-Length: 30\r\n\r\n" KEY "--" KEY,
	  OK "Content-Length: 30\r\n" CLOSE "\r\n" STARS "--" STARS, &get, true },
	{ "its beginning only", OK "Content-Length: 8\r\n\r\nsk-Zq7co", OK "Content-Length: 8\r\n" CLOSE "\r\nsk-Zq7co",
	  &get, true },
	{ "its beginning, and then the key", OK "Content-Length: 20\r\n\r\nsk-Zq7" KEY,
	  OK "Content-Length: 20\r\n" CLOSE "\r\nsk-Zq7" STARS, &get, true },
	{ "behind the end", OK "Content-Length: 2\r\n\r\nhi" KEY, OK "Content-Length: 2\r\n" CLOSE "\r\nhi", &get,
	  true },
	{ "until it closes", OK "\r\nsay " KEY "!", OK CLOSE "\r\nsay " STARS "!", &get, false },
	{ "at the end", OK "\r\nsay sk-Zq7", OK CLOSE "\r\nsay sk-Zq7", &get, false },
	{ "in one chunk", OK CHUNKED "\r\n10\r\n<" KEY ">\r\n0\r\n\r\n", OK CHUNKED CLOSE "\r\n<" STARS ">", &get,
	  true },
	{ "across two", OK CHUNKED "\r\n5\r\n<sk-Z\r\n00B\r\nq7correct9>\r\n0\r\n\r\n",
	  OK CHUNKED CLOSE "\r\n<" STARS ">", &get, true },
	{ "across many", OK CHUNKED "\r\n1\r\ns\r\n1\r\nk\r\n2\r\n-Z\r\n1\r\nq\r\n4\r\n7cor\r\n5\r\nrect9\r\n0\r\n\r\n",
	  OK CHUNKED CLOSE "\r\n" STARS, &get, true },
	{ "in trailers", OK CHUNKED "\r\n1\r\na\r\n0\r\nX: " KEY "\r\n\r\n", OK CHUNKED CLOSE "\r\na", &get, true },
	{ "in an interim response", "HTTP/1.1 103 Early\r\nLink: " KEY "\r\n\r\n" OK "Content-Length: 0\r\n\r\n",
	  OK "Content-Length: 0\r\n" CLOSE "\r\n", &get, true },
	{ "of HEAD", OK "X: " KEY "\r\nContent-Length: 9\r\n\r\n",
	  OK "X: " STARS "\r\nContent-Length: 9\r\n" CLOSE "\r\n", &head, true },
};

static void it_is_masked_wherever_it_is_cut(void **state)
{
	static struct sink sink, read;
	(void)state;
	for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++) {
		size_t length = strlen(passed[i].sent);
		for (size_t piece = 1; piece <= length; piece++) {
			bool done;
			int rc = pass(passed[i].request, passed[i].sent, length, piece, &sink, &done);
			read_as_client(&sink, &read);
			if (rc || done != passed[i].done || read.length != strlen(passed[i].read) ||
			    memcmp(read.bytes, passed[i].read, read.length))
				fail_msg("%s, in pieces of %zu: %d %d %.*s", passed[i].what, piece, rc, done,
				         (int)read.length, read.bytes);
			assert_null(memmem(sink.bytes, sink.length, KEY, strlen(KEY)));
		}
	}
}

/* Chunks of each size, so that each byte of the key is once the first of one. */
static void chunks_of_any_size_do_not_hide_it(void **state)
{
	static struct sink sink, read;
	static char sent[200000];
	static const char text[] = "{\"x-api-key\": \"" KEY "\", \"again\": [\"" KEY KEY "\"]}";
	(void)state;
	for (size_t size = 1; size <= sizeof(text); size++) {
		size_t used = (size_t)sprintf(sent, OK CHUNKED "\r\n");
		for (size_t at = 0, part; at < strlen(text); at += part) {
			part = size < strlen(text) - at ? size : strlen(text) - at;
			used += (size_t)sprintf(sent + used, "%zx\r\n%.*s\r\n", part, (int)part, text + at);
		}
		used += (size_t)sprintf(sent + used, "0\r\n\r\n");
		bool done;
		assert_int_equal(pass(&get, sent, used, used, &sink, &done), 0);
		assert_true(done);
		read_as_client(&sink, &read);
		assert_null(memmem(read.bytes, read.length, KEY, strlen(KEY)));
		assert_non_null(memmem(read.bytes, read.length,
		                       "{\"x-api-key\": \"" STARS "\", \"again\": [\"" STARS STARS "\"]}",
		                       strlen(text)));
	}
}

static void a_large_body_is_whole(void **state)
{
	static struct sink sink, read;
	static char sent[150000];
	(void)state;
	size_t used = (size_t)sprintf(sent, OK CHUNKED "\r\n1ffff\r\n"), begin = used;
	for (size_t i = 0; i < 0x1ffff; i++)
		sent[used++] = (char)(i * 31 % 251);
	used += (size_t)sprintf(sent + used, "\r\n0\r\n\r\n");
	bool done;
	assert_int_equal(pass(&get, sent, used, 9999, &sink, &done), 0);
	read_as_client(&sink, &read);
	assert_true(done && read.length > 0x1ffff);
	assert_memory_equal(read.bytes + read.length - 0x1ffff, sent + begin, 0x1ffff);
}

static const char *const refused[] = {
	"",
	"HTTP/1.1 200 OK\r\n",
	"nothing\r\n\r\n",
	OK "Content-Length: 3\r\n\r\nhi",
	OK CHUNKED "\r\n3\r\nabc\r\n",
	OK CHUNKED "\r\nx\r\n",
	OK CHUNKED "\r\n1;a=b\r\na\r\n0\r\n\r\n",
	OK "Content-Length: 1\r\n" CHUNKED "\r\n",
	"HTTP/1.1 101 Switching\r\n\r\n",
	OK " X: folded\r\n\r\n",
};

static void what_is_no_response_or_not_whole_is_told(void **state)
{
	static struct sink sink;
	static char large[HEAD_MAX + 100];
	bool done;
	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		for (size_t piece = 1; piece <= strlen(refused[i]) + 1; piece++)
			if (!pass(&get, refused[i], strlen(refused[i]), piece, &sink, &done))
				fail_msg("%s", refused[i]);
	memset(large, 'a', sizeof(large));
	memcpy(large, OK "X: ", strlen(OK "X: "));
	assert_int_equal(pass(&get, large, sizeof(large), 10, &sink, &done), -1);
	assert_int_equal(sink.length, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_masked_wherever_it_is_cut),
		cmocka_unit_test(chunks_of_any_size_do_not_hide_it),
		cmocka_unit_test(a_large_body_is_whole),
		cmocka_unit_test(what_is_no_response_or_not_whole_is_told),
	};
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* HTTP in the clear through the proxy: what the server gets, what the client gets, and what neither may get. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "support/proxy-ground.h"

#define OK "HTTP/1.1 200 OK\r\n"
#define CLOSE "Connection: close\r\n"

static const char *const rules[] = { "b.test:%", NULL };

static int setup(void **state)
{
	static struct proxy_ground ground;
	proxy_ground_start(&ground, &(struct proxy_options){ .rules = rules, .header_bytes = 4096 });
	*state = &ground;
	return 0;
}

static int teardown(void **state)
{
	struct proxy_ground *ground = *state;
	assert_false(proxy_ground_has_message(ground));
	proxy_ground_end(ground);
	return 0;
}

/* Reads a head, whatever is in it; what comes behind it stays. */
static void hear_head(int fd, char *text, size_t size)
{
	size_t used = 0;
	text[0] = '\0';
	while (!strstr(text, "\r\n\r\n")) {
		assert_true(used < size - 1);
		ssize_t got = recv(fd, text + used, 1, 0);
		if (got != 1)
			fail_msg("no head: \"%s\"", text);
		text[++used] = '\0';
	}
}

#define HEAD_SIZE 4096

/* A client that has said this; the server that was dialled for it has got the head. */
static int ask(struct proxy_ground *ground, const char *request, int *ret_server, char head[HEAD_SIZE])
{
	int client = ground_client(ground);
	ground_say(ground, client, request);
	*ret_server = ground_accept(ground);
	hear_head(*ret_server, head, HEAD_SIZE);
	return client;
}

#define GET "GET http://a.test:%/ HTTP/1.1\r\nHost: a.test:%\r\n"
#define POST "POST http://a.test:%/ HTTP/1.1\r\nHost: a.test:%\r\n"

static void expect_row(struct proxy_ground *ground, enum proxy_decision decision, const char *host, unsigned status,
                       const char *why)
{
	proxy_ground_row(ground, PROXY_BY_HTTP, decision, host, status, why);
}

/* ---- what is kept ----------------------------------------------------------------------------------------------- */

/* By the address that its name has inside, it is the name that the server is told. */
static void test_by_address(void **state)
{
	struct proxy_ground *ground = *state;
	char head[HEAD_SIZE], expected[64];
	int server,
		client = ask(ground, "GET http://127.77.0.1:%/ HTTP/1.1\r\nHost: 127.77.0.1:%\r\n\r\n", &server, head);
	snprintf(expected, sizeof(expected), "GET / HTTP/1.1\r\nHost: a.test:%u\r\n", ground->port);
	assert_true(!strncmp(head, expected, strlen(expected)));
	assert_null(strstr(head, "127.77.0.1"));
	ground_say(ground, server, OK "Content-Length: 0\r\n\r\n");
	hear_head(client, head, sizeof(head));
	expect_row(ground, PROXY_ALLOWED, "a.test:%", 0, "");
	close(server);
	close(client);
}

static void test_requests_on_one_connection(void **state)
{
	struct proxy_ground *ground = *state;
	char head[HEAD_SIZE];
	int server,
		client = ask(ground,
	                     "GET http://A.test.:%/path?q=1 HTTP/1.1\r\nHost: a.test:%\r\n"
	                     "Proxy-Connection: keep-alive\r\nX-Hop: 1\r\nConnection: x-hop\r\nUpgrade: websocket\r\n"
	                     "Proxy-Authorization: secret\r\nAccept: */*\r\n\r\n",
	                     &server, head);
	assert_true(!strncmp(head, "GET /path?q=1 HTTP/1.1\r\nHost: a.test:", 37));
	assert_non_null(strstr(head, "Accept: */*\r\n"));
	assert_non_null(strstr(head, CLOSE));
	assert_null(strcasestr(head, "x-hop"));
	assert_null(strcasestr(head, "upgrade"));
	assert_null(strcasestr(head, "proxy-"));
	/* What comes behind the response is not delivered, and answers nothing. */
	ground_say(ground, server, OK "Content-Length: 5\r\n\r\nfirst" OK "Content-Length: 6\r\n\r\nforged");
	hear_head(client, head, sizeof(head));
	assert_null(strcasestr(head, "connection:"));
	ground_hear(ground, client, "first");
	close(server);
	expect_row(ground, PROXY_ALLOWED, "a.test:%", 0, "");
	/* Another host on the same connection is judged by itself. */
	ground_say(ground, client, "GET http://b.test:%/ HTTP/1.1\r\nHost: b.test:%\r\n\r\n");
	server = ground_accept(ground);
	hear_head(server, head, sizeof(head));
	ground_say(ground, server, OK "Content-Length: 6\r\n\r\nsecond");
	hear_head(client, head, sizeof(head));
	ground_hear(ground, client, "second");
	expect_row(ground, PROXY_ALLOWED, "b.test:%", 0, "");
	close(server);
	ground_say(ground, client, "GET http://c.test:%/ HTTP/1.1\r\nHost: c.test:%\r\n\r\n");
	hear_head(client, head, sizeof(head));
	assert_true(!strncmp(head, "HTTP/1.1 403 ", 13));
	expect_row(ground, PROXY_DENIED, "c.test:%", 403, "no rule allows it");
	close(client);
}

static void test_pipelined(void **state)
{
	struct proxy_ground *ground = *state;
	char text[HEAD_SIZE];
	int server, client = ask(ground,
	                         "POST http://a.test:%/1 HTTP/1.1\r\nHost: a.test:%\r\nContent-Length: 3\r\n\r\nabc"
	                         "GET http://c.test:%/2 HTTP/1.1\r\nHost: c.test:%\r\n\r\n",
	                         &server, text);
	ground_hear(ground, server, "abc");
	ground_say(ground, server, "HTTP/1.1 204 No Content\r\n\r\n");
	/* Not a byte of the second went to the first one's server. */
	assert_int_equal(ground_hear_all(server, text, sizeof(text)), 0);
	close(server);
	hear_head(client, text, sizeof(text));
	assert_true(!strncmp(text, "HTTP/1.1 204 ", 13));
	hear_head(client, text, sizeof(text));
	assert_true(!strncmp(text, "HTTP/1.1 403 ", 13));
	close(client);
	expect_row(ground, PROXY_ALLOWED, "a.test:%", 0, "");
	expect_row(ground, PROXY_DENIED, "c.test:%", 403, "");
}

/* ---- bodies ----------------------------------------------------------------------------------------------------- */

/* What the client gets: whole, and whether its connection is kept after it. */
static const struct body_case {
	const char *request, *response, *body;
	bool is_kept;
} bodies[] = {
	{ GET "\r\n", OK "Content-Length: 0\r\n\r\n", "", true },
	{ GET "\r\n", OK "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "3\r\nabc\r\n0\r\n\r\n", true },
	{ GET "\r\n", OK "\r\nuntil it closes", "until it closes", false },
	{ GET "Connection: close\r\n\r\n", OK "Content-Length: 2\r\n\r\nok", "ok", false },
	{ "GET http://a.test:%/ HTTP/1.0\r\n\r\n", OK "Content-Length: 2\r\n\r\nok", "ok", false },
	{ "HEAD http://a.test:%/ HTTP/1.1\r\nHost: a.test:%\r\n\r\n", OK "Content-Length: 1000\r\n\r\n", "", true },
	{ GET "\r\n", "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", "", true },
	{ GET "\r\n", OK "Content-Length: 2\r\nConnection: close\r\n\r\nok", "ok", true },
};

static void test_bodies(void **state)
{
	struct proxy_ground *ground = *state;
	char text[HEAD_SIZE];
	for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
		const struct body_case *row = &bodies[i];
		int server, client = ask(ground, row->request, &server, text);
		ground_say(ground, server, row->response);
		close(server);
		hear_head(client, text, sizeof(text));
		if (!strstr(text, CLOSE) != row->is_kept)
			fail_msg("%zu: %s", i, text);
		ground_hear(ground, client, row->body);
		expect_row(ground, PROXY_ALLOWED, "a.test:%", 0, "");
		if (row->is_kept) {
			ground_say(ground, client, "GET http://c.test/ HTTP/1.1\r\nHost: c.test\r\n\r\n");
			ground_hear(ground, client, "HTTP/1.1 403 ");
			expect_row(ground, PROXY_DENIED, "c.test:80", 403, "");
		} else {
			ground_hear_end(client);
		}
		close(client);
	}
}

static void test_continue(void **state)
{
	struct proxy_ground *ground = *state;
	char text[HEAD_SIZE];
	int server,
		client = ask(ground, POST "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n", &server, text);
	assert_non_null(strcasestr(text, "Expect: 100-continue\r\n"));
	ground_say(ground, server, "HTTP/1.1 100 Continue\r\n\r\n");
	hear_head(client, text, sizeof(text));
	assert_true(!strncmp(text, "HTTP/1.1 100 ", 13));
	/* In pieces. */
	ground_say(ground, client, "5\r\nhe");
	ground_hear(ground, server, "5\r\nhe");
	ground_say(ground, client, "llo\r\n0\r\n");
	ground_hear(ground, server, "llo\r\n0\r\n");
	ground_say(ground, client, "\r\n");
	ground_hear(ground, server, "\r\n");
	ground_say(ground, server, "HTTP/1.1 204 No Content\r\n\r\n");
	hear_head(client, text, sizeof(text));
	close(client);
	close(server);
	expect_row(ground, PROXY_ALLOWED, "a.test:%", 0, "");
}

/* It answers, and does not want the rest. */
static void test_early_answer(void **state)
{
	struct proxy_ground *ground = *state;
	char text[HEAD_SIZE];
	int server, client = ask(ground, POST "Content-Length: 1000000\r\n\r\nsome", &server, text);
	ground_hear(ground, server, "some");
	ground_say(ground, server, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno");
	close(server);
	hear_head(client, text, sizeof(text));
	assert_non_null(strstr(text, CLOSE));
	ground_hear(ground, client, "no");
	ground_hear_end(client);
	close(client);
	expect_row(ground, PROXY_ALLOWED, "a.test:%", 0, "");
}

/* ---- what servers may not say ----------------------------------------------------------------------------------- */

static const struct {
	const char *response, *why;
} bad_responses[] = {
	{ "", "before its response was whole" },
	{ "HTTP/1.1 200 OK\r\nContent-Le", "before its response was whole" },
	{ "SSH-2.0-OpenSSH\r\n", "first line" },
	{ "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n", "protocol" },
	{ OK "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", "" },
	{ OK "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc", "" },
	{ OK "X: a\r\n b\r\n\r\n", "" },
};

static void test_bad_responses(void **state)
{
	struct proxy_ground *ground = *state;
	char text[HEAD_SIZE];
	for (size_t i = 0; i <= ARRAY_SIZE(bad_responses); i++) {
		bool is_long = i == ARRAY_SIZE(bad_responses);
		int server, client = ask(ground, GET "\r\n", &server, text);
		if (is_long) {
			memset(text, 'a', sizeof(text));
			memcpy(text, OK "X: ", sizeof(OK) + 2);
			assert_int_equal(send(server, text, sizeof(text), MSG_NOSIGNAL), sizeof(text));
		} else {
			ground_say(ground, server, bad_responses[i].response);
		}
		close(server);
		hear_head(client, text, sizeof(text));
		if (strncmp(text, "HTTP/1.1 502 ", 13))
			fail_msg("%zu: %s", i, text);
		close(client);
		expect_row(ground, PROXY_FAILED, "a.test:%", 502, is_long ? "too long" : bad_responses[i].why);
	}
}

/* The head is out already: the client must see that what it got is not all. */
static void test_cut_responses(void **state)
{
	static const char *const cut[] = {
		OK "Content-Length: 10\r\n\r\nabc",
		OK "Transfer-Encoding: chunked\r\n\r\n5\r\nabc",
		OK "Transfer-Encoding: chunked\r\n\r\n3\r\nabcX",
		OK "Transfer-Encoding: chunked\r\n\r\n3;ext=1\r\nabc\r\n0\r\n\r\n",
	};
	struct proxy_ground *ground = *state;
	char text[HEAD_SIZE];
	for (size_t i = 0; i < ARRAY_SIZE(cut); i++) {
		int server, client = ask(ground, GET "\r\n", &server, text);
		ground_say(ground, server, cut[i]);
		close(server);
		assert_int_equal(ground_hear_all(client, text, sizeof(text)), -1);
		close(client);
		expect_row(ground, PROXY_FAILED, "a.test:%", 0, "");
	}
}

/* Bytes that are no chunk do not get through, nor anything behind them. */
static void test_bad_chunks(void **state)
{
	struct proxy_ground *ground = *state;
	char text[HEAD_SIZE];
	int server, client = ask(ground, POST "Transfer-Encoding: chunked\r\n\r\n", &server, text);
	ground_say(ground, client, "3\nabc\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n");
	assert_int_equal(ground_hear_all(server, text, sizeof(text)), -1);
	assert_string_equal(text, "");
	hear_head(client, text, sizeof(text));
	assert_true(!strncmp(text, "HTTP/1.1 400 ", 13));
	close(client);
	close(server);
	expect_row(ground, PROXY_FAILED, "a.test:%", 400, "");
}

/* ---- much of it ------------------------------------------------------------------------------------------------- */

#define MUCH ((size_t)8 << 20)

struct pouring {
	int fd;
	size_t length;
};

static unsigned char byte_at(size_t at)
{
	return (unsigned char)(at * 2654435761u >> 13);
}

static void *pour(void *arg)
{
	struct pouring *pouring = arg;
	unsigned char bytes[65536];
	for (size_t at = 0; at < pouring->length;) {
		size_t length = pouring->length - at < sizeof(bytes) ? pouring->length - at : sizeof(bytes);
		for (size_t i = 0; i < length; i++)
			bytes[i] = byte_at(at + i);
		ssize_t sent = send(pouring->fd, bytes, length, MSG_NOSIGNAL);
		if (sent <= 0)
			return arg;
		at += (size_t)sent;
	}
	return NULL;
}

static void expect_poured(int fd, size_t length)
{
	unsigned char bytes[32768];
	for (size_t at = 0; at < length;) {
		ssize_t got = recv(fd, bytes, length - at < sizeof(bytes) ? length - at : sizeof(bytes), 0);
		if (got <= 0)
			fail_msg("the end after %zu bytes", at);
		for (ssize_t i = 0; i < got; i++, at++)
			if (bytes[i] != byte_at(at))
				fail_msg("byte %zu is another", at);
	}
}

static void pour_through(int from, int to)
{
	struct pouring pouring = { from, MUCH };
	pthread_t thread;
	void *failed;
	assert_int_equal(pthread_create(&thread, NULL, pour, &pouring), 0);
	expect_poured(to, MUCH);
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
}

static void test_large_bodies(void **state)
{
	struct proxy_ground *ground = *state;
	char head[HEAD_SIZE];
	sprintf(head, "POST http://a.test:%%/ HTTP/1.1\r\nHost: a.test:%%\r\nContent-Length: %zu\r\n\r\n", MUCH);
	int server, client = ask(ground, head, &server, head);
	pour_through(client, server);
	sprintf(head, OK "Content-Length: %zu\r\n\r\n", MUCH);
	ground_say(ground, server, head);
	hear_head(client, head, sizeof(head));
	pour_through(server, client);
	close(client);
	close(server);
	struct proxy_message row = proxy_ground_row(ground, PROXY_BY_HTTP, PROXY_ALLOWED, "a.test:%", 0, "");
	assert_true(row.connection.bytes_in > MUCH && row.connection.bytes_in < MUCH + 1000);
	assert_true(row.connection.bytes_out > MUCH && row.connection.bytes_out < MUCH + 1000);
}

static void test_large_tunnel(void **state)
{
	struct proxy_ground *ground = *state;
	int server, client = ground_tunnel(ground, &server);
	pour_through(client, server);
	pour_through(server, client);
	close(client);
	close(server);
	struct proxy_message row = proxy_ground_row(ground, PROXY_BY_CONNECT, PROXY_ALLOWED, "a.test:%", 0, "");
	assert_int_equal(row.connection.bytes_in, MUCH);
	assert_int_equal(row.connection.bytes_out, MUCH);
}

/* Nobody reads until all are full: more than there are large pipes. Then each gets all of it, in order. */
static void test_slow_readers(void **state)
{
	enum { READERS = 40 };
	struct proxy_ground *ground = *state;
	static struct pouring pouring[READERS];
	pthread_t threads[READERS];
	int clients[READERS];
	for (int i = 0; i < READERS; i++) {
		clients[i] = ground_tunnel(ground, &pouring[i].fd);
		pouring[i].length = MUCH;
		assert_int_equal(pthread_create(&threads[i], NULL, pour, &pouring[i]), 0);
	}
	usleep(300000); /* if that was too short, the test proves less, and holds all the same */
	for (int i = 0; i < READERS; i++) {
		void *failed;
		expect_poured(clients[i], MUCH);
		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
		close(clients[i]);
		close(pouring[i].fd);
		struct proxy_message row = proxy_ground_row(ground, PROXY_BY_CONNECT, PROXY_ALLOWED, "a.test:%", 0, "");
		assert_int_equal(row.connection.bytes_in, MUCH);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_address),
		cmocka_unit_test(test_requests_on_one_connection),
		cmocka_unit_test(test_pipelined),
		cmocka_unit_test(test_bodies),
		cmocka_unit_test(test_continue),
		cmocka_unit_test(test_early_answer),
		cmocka_unit_test(test_bad_responses),
		cmocka_unit_test(test_cut_responses),
		cmocka_unit_test(test_bad_chunks),
		cmocka_unit_test(test_large_bodies),
		cmocka_unit_test(test_large_tunnel),
		cmocka_unit_test(test_slow_readers),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}

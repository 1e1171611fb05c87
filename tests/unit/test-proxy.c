/* The proxy itself: each way through it, and each refusal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "support/proxy-ground.h"

static void test_connect(void **state)
{
	struct proxy_ground ground;
	int server;
	char text[64];
	(void)state;
	proxy_ground_start(&ground, NULL);
	/* What comes right behind the head is not lost. */
	int client = ground_client(&ground);
	ground_say(&ground, client,
	           "CONNECT a.test:% HTTP/1.1\r\nHost: a.test\r\nProxy-Connection: keep-alive\r\n\r\nearly");
	server = ground_accept(&ground);
	ground_hear(&ground, client, "HTTP/1.1 200 Connection established\r\n\r\n");
	ground_hear(&ground, server, "early");
	ground_say(&ground, server, "and back");
	ground_hear(&ground, client, "and back");
	/* One side ends, the other goes on. */
	assert_int_equal(shutdown(client, SHUT_WR), 0);
	ground_hear_end(server);
	ground_say(&ground, server, "still here");
	close(server);
	assert_int_equal(ground_hear_all(client, text, sizeof(text)), strlen("still here"));
	close(client);
	struct proxy_message row = proxy_ground_row(&ground, PROXY_BY_CONNECT, PROXY_ALLOWED, "a.test:%", 0, "");
	assert_int_equal(row.connection.bytes_out, strlen("early"));
	assert_int_equal(row.connection.bytes_in, strlen("and backstill here"));
	assert_int_equal(row.connection.port, ground.port);
	assert_memory_equal(row.connection.address.bytes, "\x7f\0\0\1", 4);
	assert_string_equal(row.text, "");
	struct proxy_message totals = proxy_ground_end(&ground);
	assert_int_equal(totals.totals.connections, 1);
	assert_int_equal(totals.totals.bytes_in, strlen("and backstill here"));
	assert_int_equal(totals.totals.denied + totals.totals.failed, 0);
}

static void test_socks(void **state)
{
	static const char *const rules[] = { "127.0.0.1:%", NULL };
	struct proxy_ground ground;
	(void)state;
	proxy_ground_start(&ground, &(struct proxy_options){ .rules = rules, .no_exemption = true });
	const uint8_t port[] = { (uint8_t)(ground.port >> 8), (uint8_t)ground.port };
	/* By name: it leads to a private address, and nothing exempts that. */
	int client = ground_client(&ground);
	assert_int_equal(send(client, "\5\1\0", 3, 0), 3);
	uint8_t reply[16];
	assert_int_equal(recv(client, reply, sizeof(reply), 0), 2);
	assert_memory_equal(reply, "\5\0", 2);
	assert_int_equal(send(client, "\5\1\0\3\6a.test", 11, 0), 11);
	assert_int_equal(send(client, port, 2, 0), 2);
	assert_int_equal(recv(client, reply, sizeof(reply), MSG_WAITALL), 10);
	assert_int_equal(reply[1], 2);
	close(client);
	proxy_ground_row(&ground, PROXY_BY_SOCKS, PROXY_DENIED, "a.test:%", 0, "127.0.0.1 is loopback");
	/* The address inside means the name. */
	client = ground_client(&ground);
	assert_int_equal(send(client, "\5\1\0\5\1\0\1\x7f\x4d\0\1", 11, 0), 11);
	assert_int_equal(send(client, port, 2, 0), 2);
	assert_int_equal(recv(client, reply, 12, MSG_WAITALL), 12);
	assert_int_equal(reply[3], 2);
	close(client);
	proxy_ground_row(&ground, PROXY_BY_SOCKS, PROXY_DENIED, "a.test:%", 0, "127.0.0.1 is loopback");
	/* By the address that is listed: then it may be dialled. All in one piece, and bytes for the server behind it.
	 */
	client = ground_client(&ground);
	assert_int_equal(send(client, "\5\1\0\5\1\0\1\x7f\0\0\1", 11, 0), 11);
	assert_int_equal(send(client, port, 2, 0), 2);
	ground_say(&ground, client, "early");
	int server = ground_accept(&ground);
	ground_hear(&ground, server, "early");
	assert_int_equal(recv(client, reply, 12, MSG_WAITALL), 12);
	assert_memory_equal(reply, "\5\0\5\0\0\1", 6);
	close(client);
	ground_hear_end(server);
	close(server);
	proxy_ground_row(&ground, PROXY_BY_SOCKS, PROXY_ALLOWED, "127.0.0.1:%", 0, "");
	/* What is not spoken: BIND, and SOCKS 4. */
	client = ground_client(&ground);
	assert_int_equal(send(client, "\5\1\0\5\2\0\1\x7f\0\0\1\1\1", 13, 0), 13);
	assert_int_equal(recv(client, reply, 12, MSG_WAITALL), 12);
	assert_int_equal(reply[3], 7);
	close(client);
	client = ground_client(&ground);
	assert_int_equal(send(client, "\4\1\1\1\1\1\1\1\0", 9, 0), 9);
	assert_true(recv(client, reply, sizeof(reply), 0) <= 2);
	close(client);
	proxy_ground_ask_end(&ground);
	proxy_ground_row(&ground, PROXY_BY_SOCKS, PROXY_FAILED, "", 0, "");
	proxy_ground_row(&ground, PROXY_BY_SOCKS, PROXY_FAILED, "", 0, "");
	proxy_ground_end(&ground);
}

/* A service of the host is one, however it is written in the rule and by the client; another port is none of it. */
static void test_host_service(void **state)
{
	static const char *const rules[] = { "localhost:%", NULL };
	static const char *const asked[] = { "127.0.0.1:%", "localhost:%", "[::1]:%" };
	struct proxy_ground ground;
	char line[64], text[256];
	(void)state;
	proxy_ground_start(&ground, &(struct proxy_options){ .rules = rules, .no_exemption = true });
	for (size_t i = 0; i < ARRAY_SIZE(asked); i++) {
		int client = ground_client(&ground);
		snprintf(line, sizeof(line), "CONNECT %s HTTP/1.0\r\n\r\n", asked[i]);
		ground_say(&ground, client, line);
		close(ground_accept(&ground));
		close(client);
		struct proxy_message row = proxy_ground_row(&ground, PROXY_BY_CONNECT, PROXY_ALLOWED, asked[i], 0, "");
		assert_memory_equal(row.connection.address.bytes, "\x7f\0\0\1", 4);
		assert_true(row.connection.outside);
	}
	int client = ground_client(&ground);
	snprintf(line, sizeof(line), "CONNECT 127.0.0.1:%u HTTP/1.0\r\n\r\n", ground.any_port);
	ground_say(&ground, client, line);
	assert_true(ground_hear_all(client, text, sizeof(text)) > 12);
	assert_memory_equal(text, "HTTP/1.1 403", 12);
	close(client);
	snprintf(line, sizeof(line), "127.0.0.1:%u", ground.any_port);
	proxy_ground_row(&ground, PROXY_BY_CONNECT, PROXY_DENIED, line, 403, "no rule allows it");
	proxy_ground_end(&ground);
}

/* Without a network every request is refused at once, also one that a rule would allow; and nothing is dialled. */
static void test_offline(void **state)
{
	struct proxy_ground ground;
	char text[512];
	uint8_t reply[16];
	(void)state;
	proxy_ground_start(&ground, &(struct proxy_options){ .offline = true });
	int client = ground_client(&ground);
	ground_say(&ground, client, "CONNECT a.test:% HTTP/1.0\r\n\r\n");
	ssize_t length = ground_hear_all(client, text, sizeof(text) - 1);
	assert_true(length > 12);
	text[length] = '\0';
	assert_memory_equal(text, "HTTP/1.1 403", 12);
	assert_non_null(strstr(text, "no network access; to allow it: --net a.test:"));
	close(client);
	proxy_ground_row(&ground, PROXY_BY_CONNECT, PROXY_DENIED, "a.test:%", 403, PROXY_NO_NETWORK);
	client = ground_client(&ground);
	ground_say(&ground, client, "GET http://b.test:%/ HTTP/1.0\r\n\r\n");
	assert_true(ground_hear_all(client, text, sizeof(text)) > 12);
	assert_memory_equal(text, "HTTP/1.1 403", 12);
	close(client);
	proxy_ground_row(&ground, PROXY_BY_HTTP, PROXY_DENIED, "b.test:%", 403, PROXY_NO_NETWORK);
	client = ground_client(&ground);
	assert_int_equal(send(client, "\5\1\0\5\1\0\3\6c.test\1\xbb", 16, 0), 16);
	assert_int_equal(recv(client, reply, 12, MSG_WAITALL), 12);
	assert_int_equal(reply[3], 2);
	close(client);
	proxy_ground_row(&ground, PROXY_BY_SOCKS, PROXY_DENIED, "c.test:443", 0, PROXY_NO_NETWORK);
	client = ground_client(&ground);
	ground_say(&ground, client, "\xff\xfe garbage");
	assert_true(ground_hear_all(client, text, sizeof(text)) > 12);
	assert_memory_equal(text, "HTTP/1.1 400", 12);
	close(client);
	proxy_ground_end(&ground);
}

static void test_forward(void **state)
{
	struct proxy_ground ground;
	char text[16];
	(void)state;
	proxy_ground_start(&ground, NULL);
	int client = ground_dial("127.77.0.1", ground.port), server = ground_accept(&ground);
	/* The server may speak first. */
	ground_say(&ground, server, "220 hello");
	ground_hear(&ground, client, "220 hello");
	close(server);
	ground_hear_end(client);
	close(client);
	proxy_ground_row(&ground, PROXY_BY_ADDRESS, PROXY_ALLOWED, "a.test:%", 0, "");
	/* An address that stands for a name, on a port that it may not use; and one that stands for none. */
	client = ground_dial("127.77.0.1", ground.any_port);
	assert_int_equal(ground_hear_all(client, text, sizeof(text)), -1);
	close(client);
	char host[HOST_TEXT_SIZE];
	sprintf(host, "a.test:%u", ground.any_port);
	proxy_ground_row(&ground, PROXY_BY_ADDRESS, PROXY_DENIED, host, 0, "no rule allows it");
	client = ground_dial("127.0.0.1", ground.any_port);
	assert_int_equal(ground_hear_all(client, text, sizeof(text)), -1);
	close(client);
	proxy_ground_row(&ground, PROXY_BY_ADDRESS, PROXY_DENIED, "", 0, "belongs to no allowed name");
	/* Through the proxy the address inside means its name, too. */
	client = ground_client(&ground);
	ground_say(&ground, client, "CONNECT 127.77.0.1:% HTTP/1.0\r\n\r\n");
	server = ground_accept(&ground);
	close(server);
	close(client);
	proxy_ground_row(&ground, PROXY_BY_CONNECT, PROXY_ALLOWED, "a.test:%", 0, "");
	proxy_ground_end(&ground);
}

/* ---- refusals --------------------------------------------------------------------------------------------------- */

static const struct refusal {
	const char *request;
	unsigned status;
	enum proxy_way way;
	enum proxy_decision decision;
	const char *host, *why;
} refusals[] = {
	{ "CONNECT other.test:443 HTTP/1.1\r\nHost: other.test\r\n\r\n", 403, PROXY_BY_CONNECT, PROXY_DENIED,
	  "other.test:443", "no rule allows it" },
	{ "CONNECT a.test:1 HTTP/1.1\r\nHost: a.test\r\n\r\n", 403, PROXY_BY_CONNECT, PROXY_DENIED, "a.test:1",
	  "no rule allows it" },
	{ "CONNECT sub.a.test:% HTTP/1.1\r\nHost: sub.a.test\r\n\r\n", 403, PROXY_BY_CONNECT, PROXY_DENIED,
	  "sub.a.test:%", "" },
	{ "CONNECT 127.0.0.1:% HTTP/1.0\r\n\r\n", 403, PROXY_BY_CONNECT, PROXY_DENIED, "127.0.0.1:%", "no rule" },
	{ "CONNECT [::1]:% HTTP/1.0\r\n\r\n", 403, PROXY_BY_CONNECT, PROXY_DENIED, "[::1]:%", "no rule" },
	{ "CONNECT mixed.test:% HTTP/1.0\r\n\r\n", 403, PROXY_BY_CONNECT, PROXY_DENIED, "mixed.test:%",
	  "10.0.0.1 is private" },
	{ "CONNECT meta.test:% HTTP/1.0\r\n\r\n", 403, PROXY_BY_CONNECT, PROXY_DENIED, "meta.test:%",
	  "169.254.169.254 is metadata" },
	{ "CONNECT metadata.google.internal:% HTTP/1.0\r\n\r\n", 403, PROXY_BY_CONNECT, PROXY_DENIED,
	  "metadata.google.internal:%", "metadata" },
	{ "CONNECT closed.test:% HTTP/1.0\r\n\r\n", 502, PROXY_BY_CONNECT, PROXY_FAILED, "closed.test:%",
	  "127.0.0.9 cannot be reached: Connection refused" },
	{ "GET http://other.test/ HTTP/1.1\r\nHost: other.test\r\n\r\n", 403, PROXY_BY_HTTP, PROXY_DENIED,
	  "other.test:80", "no rule allows it" },
	{ "GET http://closed.test:%/ HTTP/1.0\r\n\r\n", 502, PROXY_BY_HTTP, PROXY_FAILED, "closed.test:%", "refused" },
};

static const struct refusal malformed[] = {
	{ "CONNECT 127.0.0.1:% HTTP/1.1\r\nHost: x\r\n\r\n", 400, PROXY_BY_HTTP, PROXY_FAILED, "", "Host" },
	{ "CONNECT 2130706433:% HTTP/1.0\r\n\r\n", 400, PROXY_BY_HTTP, PROXY_FAILED, "", "" },
	{ "CONNECT 0x7f.1:% HTTP/1.0\r\n\r\n", 400, PROXY_BY_HTTP, PROXY_FAILED, "", "" },
	{ "CONNECT a.test HTTP/1.0\r\n\r\n", 400, PROXY_BY_HTTP, PROXY_FAILED, "", "port" },
	{ "CONNECT a.test:0 HTTP/1.0\r\n\r\n", 400, PROXY_BY_HTTP, PROXY_FAILED, "", "port" },
	{ "CONNECT a.test:99999 HTTP/1.0\r\n\r\n", 400, PROXY_BY_HTTP, PROXY_FAILED, "", "port" },
	{ "CONNECT u@a.test:% HTTP/1.0\r\n\r\n", 400, PROXY_BY_HTTP, PROXY_FAILED, "", "" },
	{ "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", 400, PROXY_BY_HTTP, PROXY_FAILED, "", "proxy" },
	{ "GET https://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", 400, PROXY_BY_HTTP, PROXY_FAILED, "", "CONNECT" },
	{ "TRACE http://a.test:%/ HTTP/1.1\r\nHost: a.test:%\r\n\r\n", 405, PROXY_BY_HTTP, PROXY_FAILED, "", "" },
	{ "GET http://a.test:%/ HTTP/2.0\r\nHost: a.test:%\r\n\r\n", 505, PROXY_BY_HTTP, PROXY_FAILED, "", "" },
	{ "POST http://a.test:%/ HTTP/1.1\r\nHost: a.test:%\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
	  400, PROXY_BY_HTTP, PROXY_FAILED, "", "" },
	{ "POST http://a.test:%/ HTTP/1.1\r\nHost: a.test:%\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n", 400,
	  PROXY_BY_HTTP, PROXY_FAILED, "", "" },
	{ "GET http://a.test:%/ HTTP/1.1\r\nHost: b.test\r\n\r\n", 400, PROXY_BY_HTTP, PROXY_FAILED, "", "Host" },
	{ "\x16\x03\x01\x02", 400, PROXY_BY_HTTP, PROXY_FAILED, "", "neither" },
};

/* What the client hears. */
static void refuse(const struct proxy_ground *ground, const struct refusal *row, char *text, size_t size)
{
	char status[16];
	int client = ground_client(ground);
	ground_say(ground, client, row->request);
	assert_true(ground_hear_all(client, text, size) > 0);
	close(client);
	sprintf(status, "HTTP/1.1 %u ", row->status);
	if (strncmp(text, status, strlen(status)))
		fail_msg("%s: expected %u, heard %s", row->request, row->status, text);
	assert_non_null(strstr(text, "\r\n\r\ncordon: "));
}

static void test_refusals(void **state)
{
	static const char *const rules[] = { "mixed.test:%",  "meta.test:%",
		                             "closed.test:%", "metadata.google.internal:%",
		                             "*.wild.test:%", NULL };
	struct proxy_ground ground;
	char text[2048];
	(void)state;
	proxy_ground_start(&ground, &(struct proxy_options){ .rules = rules });
	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
		const struct refusal *row = &refusals[i];
		refuse(&ground, row, text, sizeof(text));
		/* The client is told the same as the ledger, but for the addresses of names. */
		struct proxy_message told =
			proxy_ground_row(&ground, row->way, row->decision, row->host, row->status, row->why);
		bool has_address = told.connection.address.length;
		assert_non_null(strstr(text, !has_address ? told.text : row->decision == PROXY_DENIED ?
		                             "its address is not of the public Internet" : "it cannot be reached"));
		assert_true(!has_address || !strstr(text, told.text));
		/* Only what the rules allow is asked for or dialled outside. */
		assert_int_equal(told.connection.outside,
		                 !strstr(row->why, "no rule") && strncmp(row->host, "sub.", 4));
	}
	struct proxy_message totals = proxy_ground_end(&ground);
	assert_int_equal(totals.totals.connections, 0);
	assert_int_equal(totals.totals.denied + totals.totals.failed, ARRAY_SIZE(refusals));
}

/* Those that name no host are told by number, however many there are. */
static void test_malformed(void **state)
{
	enum { TIMES = 3 };
	struct proxy_ground ground;
	struct proxy_message told[TIMES * ARRAY_SIZE(malformed)];
	char text[2048];
	uint64_t count = 0;
	size_t kinds = 0;
	(void)state;
	proxy_ground_start(&ground, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(told); i++)
		refuse(&ground, &malformed[i / TIMES], text, sizeof(text));
	proxy_ground_ask_end(&ground);
	for (; count < ARRAY_SIZE(told); count += told[kinds++].connection.count)
		told[kinds] = proxy_ground_row(&ground, PROXY_BY_HTTP, PROXY_FAILED, "", 0, "");
	assert_true(kinds < count);
	for (size_t i = 0; i < ARRAY_SIZE(malformed); i++) {
		size_t at = 0;
		while (at < kinds &&
		       !(told[at].connection.status == malformed[i].status && strstr(told[at].text, malformed[i].why)))
			at++;
		if (at == kinds)
			fail_msg("%s has no row", malformed[i].request);
	}
	assert_int_equal(proxy_ground_end(&ground).totals.failed, count);
}

static void test_second_address(void **state)
{
	static const char *const rules[] = { "second.test:%", NULL };
	struct proxy_ground ground;
	(void)state;
	proxy_ground_start(&ground, &(struct proxy_options){ .rules = rules });
	int client = ground_client(&ground);
	ground_say(&ground, client, "CONNECT second.test:% HTTP/1.0\r\n\r\n");
	int server = ground_accept(&ground);
	ground_hear(&ground, client, "HTTP/1.1 200 ");
	close(client);
	close(server);
	struct proxy_message row = proxy_ground_row(&ground, PROXY_BY_CONNECT, PROXY_ALLOWED, "second.test:%", 0, "");
	assert_memory_equal(row.connection.address.bytes, "\x7f\0\0\1", 4);
	proxy_ground_end(&ground);
}

/* ---- approval --------------------------------------------------------------------------------------------------- */

static void answer(struct proxy_ground *ground, uint32_t id, bool allowed, bool remember)
{
	struct proxy_message message = { .kind = PROXY_ANSWER, .id = id };
	message.answer.allowed = allowed;
	message.answer.remember = remember;
	proxy_ground_send(ground, &message);
}

static int ask(struct proxy_ground *ground, const char *host, uint32_t *ret_id)
{
	char request[128], expected[128];
	int client = ground_client(ground);
	sprintf(request, "CONNECT %s:%u HTTP/1.0\r\n\r\n", host, ground->port);
	sprintf(expected, "%s:%u", host, ground->port);
	ground_say(ground, client, request);
	if (ret_id) {
		struct proxy_message question = proxy_ground_next(ground);
		assert_int_equal(question.kind, PROXY_QUESTION);
		assert_string_equal(question.host, expected);
		*ret_id = question.id;
	}
	return client;
}

static void expect_served(struct proxy_ground *ground, int client)
{
	int server = ground_accept(ground);
	ground_hear(ground, client, "HTTP/1.1 200 ");
	close(client);
	close(server);
	proxy_ground_row(ground, PROXY_BY_CONNECT, PROXY_ALLOWED, "b.test:%", 0, "");
}

static void expect_denied(struct proxy_ground *ground, int client, const char *host)
{
	ground_hear(ground, client, "HTTP/1.1 403 ");
	close(client);
	proxy_ground_row(ground, PROXY_BY_CONNECT, PROXY_DENIED, host, 403, "it was not approved");
}

static void test_approval(void **state)
{
	struct proxy_ground ground;
	uint32_t first, second;
	int server;
	(void)state;
	proxy_ground_start(&ground, &(struct proxy_options){ .asks = true });
	int waiting = ask(&ground, "b.test", &first), denied = ask(&ground, "closed.test", &second);
	assert_int_not_equal(first, second);
	/* Others go on meanwhile; one that waits for the same is not asked for again. It came before the other, so when
	 * that was served, it waits. */
	int same = ask(&ground, "b.test", NULL), other = ground_tunnel(&ground, &server);
	close(other);
	close(server);
	proxy_ground_row(&ground, PROXY_BY_CONNECT, PROXY_ALLOWED, "a.test:%", 0, "");
	/* An answer to nothing. */
	answer(&ground, 12345, true, true);
	answer(&ground, second, false, false);
	expect_denied(&ground, denied, "closed.test:%");
	assert_false(proxy_ground_has_message(&ground));
	answer(&ground, first, true, false);
	int servers[] = { ground_accept(&ground), ground_accept(&ground) };
	ground_hear(&ground, waiting, "HTTP/1.1 200 ");
	ground_hear(&ground, same, "HTTP/1.1 200 ");
	close(waiting);
	close(same);
	close(servers[0]);
	close(servers[1]);
	proxy_ground_row(&ground, PROXY_BY_CONNECT, PROXY_ALLOWED, "b.test:%", 0, "");
	proxy_ground_row(&ground, PROXY_BY_CONNECT, PROXY_ALLOWED, "b.test:%", 0, "");
	/* What was for those alone is asked again; what is remembered is not. */
	waiting = ask(&ground, "b.test", &first);
	answer(&ground, first, true, true);
	expect_served(&ground, waiting);
	expect_served(&ground, ask(&ground, "b.test", NULL));
	denied = ask(&ground, "closed.test", &second);
	answer(&ground, second, false, true);
	expect_denied(&ground, denied, "closed.test:%");
	expect_denied(&ground, ask(&ground, "closed.test", NULL), "closed.test:%");
	/* The table of addresses stands, whatever a human says of a name. */
	waiting = ask(&ground, "meta.test", &first);
	answer(&ground, first, true, true);
	ground_hear(&ground, waiting, "HTTP/1.1 403 ");
	close(waiting);
	proxy_ground_row(&ground, PROXY_BY_CONNECT, PROXY_DENIED, "meta.test:%", 403, "metadata");
	proxy_ground_end(&ground);
}

static void test_addresses_are_not_approved(void **state)
{
	static const char *const closed[] = { "127.0.0.1", "10.0.0.1", "169.254.169.254", "[::1]",
		                              "[::ffff:127.0.0.1]" };
	static const char *const rules[] = { "127.0.0.9:%", NULL };
	struct proxy_ground ground;
	char host[64], text[2048];
	uint32_t id;
	(void)state;
	proxy_ground_start(&ground, &(struct proxy_options){ .rules = rules, .asks = true, .no_exemption = true });
	/* By the table, and nobody is asked. */
	for (size_t i = 0; i < ARRAY_SIZE(closed); i++) {
		int client = ask(&ground, closed[i], NULL);
		assert_true(ground_hear_all(client, text, sizeof(text)) > 0);
		assert_non_null(strstr(text, " 403 "));
		close(client);
		sprintf(host, "%s:%%", closed[i]);
		proxy_ground_row(&ground, PROXY_BY_CONNECT, PROXY_DENIED, host, 403, "no rule lists it, and it is ");
	}
	/* One that is listed is dialled; one of the public Internet is asked about. */
	int client = ask(&ground, "127.0.0.9", NULL);
	ground_hear(&ground, client, "HTTP/1.1 502 ");
	close(client);
	proxy_ground_row(&ground, PROXY_BY_CONNECT, PROXY_FAILED, "127.0.0.9:%", 502, "cannot be reached");
	client = ask(&ground, "8.8.8.8", &id);
	answer(&ground, id, false, false);
	expect_denied(&ground, client, "8.8.8.8:%");
	proxy_ground_end(&ground);
	/* An exemption opens the table, not the list. */
	proxy_ground_start(&ground, &(struct proxy_options){ .asks = true });
	client = ask(&ground, "127.0.0.1", &id);
	answer(&ground, id, true, true);
	close(ground_accept(&ground));
	ground_hear(&ground, client, "HTTP/1.1 200 ");
	close(client);
	proxy_ground_row(&ground, PROXY_BY_CONNECT, PROXY_ALLOWED, "127.0.0.1:%", 0, "");
	proxy_ground_end(&ground);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_connect),
		cmocka_unit_test(test_socks),
		cmocka_unit_test(test_host_service),
		cmocka_unit_test(test_offline),
		cmocka_unit_test(test_forward),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_second_address),
		cmocka_unit_test(test_approval),
		cmocka_unit_test(test_addresses_are_not_approved),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

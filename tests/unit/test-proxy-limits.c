/* The proxy's limits, each reached; and connections that break. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "support/proxy-ground.h"

#define CONNECT_A "CONNECT a.test:% HTTP/1.0\r\n\r\n"
#define GET_A "GET http://a.test:%/ HTTP/1.1\r\nHost: a.test:%\r\n"
#define SHORT_MS 100            /* bounds that are to be reached; nothing is expected to happen sooner */

static bool has_dialled(const struct proxy_ground *ground)
{
	struct pollfd poll_fd = { .fd = ground->server, .events = POLLIN };
	return poll(&poll_fd, 1, 0) == 1;
}

static uint64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void reset(int fd)
{
	static const struct linger at_once = { .l_onoff = 1 };
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
	close(fd);
}

static void expect_reset(int fd)
{
	char text[256];
	assert_int_equal(ground_hear_all(fd, text, sizeof(text)), -1);
	close(fd);
}

/* How much has arrived for the other end of this socket, which is of this machine, and was not read there. */
static unsigned unread_there(int fd)
{
	struct sockaddr_in there;
	socklen_t length = sizeof(there);
	unsigned address, port, tx, rx, found = 0;
	char line[512];
	assert_int_equal(getpeername(fd, (struct sockaddr *)&there, &length), 0);
	FILE *table = fopen("/proc/self/net/tcp", "re");
	assert_non_null(table);
	while (fgets(line, sizeof(line), table))
		if (sscanf(line, " %*d: %x:%x %*x:%*x %*x %x:%x", &address, &port, &tx, &rx) == 4 &&
		    port == ntohs(there.sin_port) && address == there.sin_addr.s_addr)
			found = rx;
	fclose(table);
	return found;
}

/* ---- how many --------------------------------------------------------------------------------------------------- */

static void test_connections_at_a_time(void **state)
{
	struct proxy_ground ground;
	int servers[3];
	(void)state;
	proxy_ground_start(&ground, &(struct proxy_options){ .connections = 2 });
	int first = ground_tunnel(&ground, &servers[0]), second = ground_tunnel(&ground, &servers[1]);
	int third = ground_client(&ground);
	ground_say(&ground, third, CONNECT_A);
	/* Bytes that came later have gone through: the third was not forgotten, it waits. */
	for (int i = 0; i < 10; i++) {
		ground_say(&ground, second, "ping");
		ground_hear(&ground, servers[1], "ping");
	}
	assert_false(has_dialled(&ground));
	close(first);
	close(servers[0]);
	servers[2] = ground_accept(&ground);
	ground_hear(&ground, third, "HTTP/1.1 200 ");
	proxy_ground_kill(&ground);
	close(second);
	close(third);
	close(servers[1]);
	close(servers[2]);
}

static void test_connections_in_all(void **state)
{
	struct proxy_ground ground;
	int server;
	(void)state;
	proxy_ground_start(&ground, &(struct proxy_options){ .total_connections = 2 });
	for (int i = 0; i < 2; i++) {
		close(ground_tunnel(&ground, &server));
		close(server);
		proxy_ground_row(&ground, PROXY_BY_CONNECT, PROXY_ALLOWED, "a.test:%", 0, "");
	}
	int client = ground_client(&ground);
	ground_say(&ground, client, CONNECT_A);
	ground_hear(&ground, client, "HTTP/1.1 403 ");
	close(client);
	proxy_ground_row(&ground, PROXY_BY_CONNECT, PROXY_FAILED, "a.test:%", 403, "as many connections as it may");
	expect_reset(ground_dial("127.77.0.1", ground.port));
	proxy_ground_row(&ground, PROXY_BY_ADDRESS, PROXY_FAILED, "a.test:%", 0, "as many connections as it may");
	proxy_ground_end(&ground);
}

static void test_bytes_in_all(void **state)
{
	struct proxy_ground ground;
	char bytes[20000] = "";
	size_t received = 0;
	int server;
	(void)state;
	proxy_ground_start(&ground, &(struct proxy_options){ .total_bytes = 10000 });
	int client = ground_tunnel(&ground, &server);
	assert_true(send(client, bytes, sizeof(bytes), MSG_NOSIGNAL) > 0);
	for (ssize_t got; (got = recv(server, bytes, sizeof(bytes), 0)) > 0;)
		received += (size_t)got;
	assert_int_equal(received, 10000);
	close(client);
	close(server);
	struct proxy_message row =
		proxy_ground_row(&ground, PROXY_BY_CONNECT, PROXY_ALLOWED, "a.test:%", 0, "as many bytes as it may");
	assert_int_equal(row.connection.bytes_out, 10000);
	client = ground_client(&ground);
	ground_say(&ground, client, CONNECT_A);
	ground_hear(&ground, client, "HTTP/1.1 403 ");
	close(client);
	proxy_ground_row(&ground, PROXY_BY_CONNECT, PROXY_FAILED, "a.test:%", 403, "as many bytes as it may");
	proxy_ground_end(&ground);
}

/* It ends before the server has heard a byte. */
static void expect_none_left(struct proxy_ground *ground, enum proxy_way way, const char *said)
{
	int client = ground_client_saying(ground, said), server = ground_accept(ground);
	ground_hear(ground, client, "HTTP/1.1 403 ");
	close(client);
	expect_reset(server);
	proxy_ground_row(ground, way, PROXY_FAILED, "a.test:%", 0, "as many bytes as it may");
}

/* What is read to find out which host is meant is counted once it goes there: heads, and what came behind them. */
static void test_bytes_in_and_behind_heads(void **state)
{
	struct proxy_ground ground;
	char text[512];
	(void)state;
	proxy_ground_start(&ground, &(struct proxy_options){ .total_bytes = 250 });
	snprintf(text, sizeof(text), "%sX: %0300d\r\n\r\n", GET_A, 0);
	expect_none_left(&ground, PROXY_BY_HTTP, text);
	snprintf(text, sizeof(text), "%s%0300d", CONNECT_A, 0);
	expect_none_left(&ground, PROXY_BY_CONNECT, text);
	/* Not twice, where one is read with the one before: both fit. */
	snprintf(text, sizeof(text), "%sX: %040d\r\n\r\n%sX: %040d\r\n\r\n", GET_A, 0, GET_A, 0);
	int client = ground_client_saying(&ground, text);
	for (int i = 0; i < 2; i++) {
		int server = ground_accept(&ground);
		ground_hear(&ground, server, "GET / HTTP/1.1\r\n");
		ground_say(&ground, server, "HTTP/1.1 204 x\r\n\r\n");
		ground_hear(&ground, client, "HTTP/1.1 204 x\r\n\r\n");
		close(server);
		proxy_ground_row(&ground, PROXY_BY_HTTP, PROXY_ALLOWED, "a.test:%", 0, "");
	}
	close(client);
	expect_none_left(&ground, PROXY_BY_HTTP, GET_A "\r\n");
	proxy_ground_end(&ground);
}

static void test_bytes_of_a_body(void **state)
{
	static const char *const framings[] = { "Content-Length: 300\r\n\r\n",
		                                "Transfer-Encoding: chunked\r\n\r\n12c\r\n" };
	struct proxy_ground ground;
	char text[512];
	(void)state;
	for (size_t i = 0; i < sizeof(framings) / sizeof(*framings); i++) {
		proxy_ground_start(&ground, &(struct proxy_options){ .total_bytes = 250 });
		snprintf(text, sizeof(text), "POST http://a.test:%%/ HTTP/1.1\r\nHost: a.test:%%\r\n%s%0300d",
		         framings[i], 0);
		int client = ground_client_saying(&ground, text), server = ground_accept(&ground);
		expect_reset(client);
		ssize_t got = recv(server, text, sizeof(text), 0);
		assert_true(got < 150);
		close(server);
		struct proxy_message row = proxy_ground_row(&ground, PROXY_BY_HTTP, PROXY_FAILED, "a.test:%", 0,
		                                            "as many bytes as it may");
		assert_true(row.connection.bytes_out < 150 && row.connection.outside);
		proxy_ground_end(&ground);
	}
}

/* However much of a head there is already, no more is read than may be. */
static void test_bytes_of_a_response(void **state)
{
	struct proxy_ground ground;
	char text[2048];
	(void)state;
	proxy_ground_start(&ground, &(struct proxy_options){ .total_bytes = 2000 });
	int client = ground_client_saying(&ground, GET_A "\r\n"), server = ground_accept(&ground);
	snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nX: %01400d", 0);
	ground_say(&ground, server, text);
	for (int i = 0; i < 30000 && unread_there(server); i++)
		usleep(1000);
	snprintf(text, sizeof(text), "\r\nY: %01000d\r\n\r\n", 0);
	ground_say(&ground, server, text);
	ground_hear(&ground, client, "HTTP/1.1 403 ");
	close(client);
	close(server);
	proxy_ground_row(&ground, PROXY_BY_HTTP, PROXY_FAILED, "a.test:%", 403, "as many bytes as it may");
	proxy_ground_end(&ground);
}

static void test_long_heads(void **state)
{
	struct proxy_ground ground;
	char text[1024];
	(void)state;
	proxy_ground_start(&ground, &(struct proxy_options){ .header_bytes = 1024 });
	int client = ground_client(&ground);
	ground_say(&ground, client, "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nX: ");
	memset(text, 'x', sizeof(text));
	assert_int_equal(send(client, text, sizeof(text), MSG_NOSIGNAL), sizeof(text));
	ground_hear(&ground, client, "HTTP/1.1 431 ");
	close(client);
	proxy_ground_ask_end(&ground);
	proxy_ground_row(&ground, PROXY_BY_HTTP, PROXY_FAILED, "", 431, "too long");
	proxy_ground_end(&ground);
}

/* ---- how long --------------------------------------------------------------------------------------------------- */

static void test_idle(void **state)
{
	struct proxy_ground ground;
	int server;
	(void)state;
	proxy_ground_start(&ground, &(struct proxy_options){ .idle_ms = SHORT_MS });
	uint64_t start = now_ms();
	int client = ground_client_saying(&ground, CONNECT_A);
	server = ground_accept(&ground);
	expect_reset(client);
	expect_reset(server);
	assert_true(now_ms() - start >= SHORT_MS);
	proxy_ground_row(&ground, PROXY_BY_CONNECT, PROXY_ALLOWED, "a.test:%", 0, "nothing moved for too long");
	/* A server that does not answer. */
	client = ground_client_saying(&ground, "GET http://a.test:%/ HTTP/1.1\r\nHost: a.test:%\r\n\r\n");
	server = ground_accept(&ground);
	ground_hear(&ground, client, "HTTP/1.1 504 ");
	close(client);
	close(server);
	proxy_ground_row(&ground, PROXY_BY_HTTP, PROXY_FAILED, "a.test:%", 504, "nothing moved for too long");
	proxy_ground_end(&ground);
}

static void test_slow_heads(void **state)
{
	struct proxy_ground ground;
	struct pollfd answered;
	char text[512];
	(void)state;
	proxy_ground_start(&ground, &(struct proxy_options){ .idle_ms = SHORT_MS });
	/* One byte after the other does not make it longer: this ends because the proxy ends it. */
	int client = ground_client_saying(&ground, "GET http://a.test/ HTTP/1.1\r\nX: ");
	answered = (struct pollfd){ .fd = client, .events = POLLIN };
	for (int i = 0; i < 1000 && poll(&answered, 1, SHORT_MS / 10) == 0; i++)
		(void)!send(client, "x", 1, MSG_NOSIGNAL);
	ground_hear(&ground, client, "HTTP/1.1 400 ");
	close(client);
	/* Nor does silence. */
	client = ground_client(&ground);
	assert_true(ground_hear_all(client, text, sizeof(text)) <= 0);
	close(client);
	proxy_ground_ask_end(&ground);
	proxy_ground_row(&ground, PROXY_BY_HTTP, PROXY_FAILED, "", 400, "in time");
	proxy_ground_row(&ground, PROXY_BY_HTTP, PROXY_FAILED, "", 0, "no request came in time");
	proxy_ground_end(&ground);
}

/* A socket whose queue is full answers nobody. */
static int listen_deaf(int *ret_filler, char ret_rule[32])
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(at);
	int full = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(full, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(full, 0), 0);
	assert_int_equal(getsockname(full, (struct sockaddr *)&at, &length), 0);
	*ret_filler = ground_dial("127.0.0.1", ntohs(at.sin_port));
	sprintf(ret_rule, "a.test:%u", ntohs(at.sin_port));
	return full;
}

static void test_connect_timeout(void **state)
{
	char rule[32], request[64];
	const char *const rules[] = { rule, NULL };
	struct proxy_ground ground;
	int filler, full = listen_deaf(&filler, rule);
	(void)state;
	proxy_ground_start(&ground, &(struct proxy_options){ .connect_ms = SHORT_MS, .rules = rules });
	int client = ground_client(&ground);
	sprintf(request, "CONNECT %s HTTP/1.0\r\n\r\n", rule);
	ground_say(&ground, client, request);
	ground_hear(&ground, client, "HTTP/1.1 504 ");
	close(client);
	proxy_ground_row(&ground, PROXY_BY_CONNECT, PROXY_FAILED, rule, 504, "did not answer in time");
	proxy_ground_end(&ground);
	close(filler);
	close(full);
}

/* A piece of a body, until one of them stays where it is. That it does is seen by waiting; if that was too short, the
 * test proves less, and holds all the same. */
static void fill_with_chunks(int server)
{
	static char chunk[8 + 32768 + 2] = "008000\r\n";
	memcpy(chunk + sizeof(chunk) - 2, "\r\n", 2);
	for (unsigned unread = 0; !unread;) {
		assert_int_equal(send(server, chunk, sizeof(chunk), MSG_NOSIGNAL), sizeof(chunk));
		for (int i = 0; i < 50 && (unread = unread_there(server)); i++)
			usleep(1000);
	}
}

/* All of it, if that was too short. */
static void read_what_comes(int client)
{
	struct pollfd poll_fd = { .fd = client, .events = POLLIN };
	char bytes[65536];
	while (poll(&poll_fd, 1, 50) == 1 && recv(client, bytes, sizeof(bytes), 0) > 0)
		;
}

/* Two things are told of at once: the client takes what is left of a response, after which the next of its requests is
 * dialled for; and the server has closed. That is not said of the one that was dialled then, which does not answer. */
static void test_next_in_its_place(void **state)
{
	char rule[32], request[256];
	const char *const rules[] = { rule, NULL };
	struct proxy_ground ground;
	int filler, full = listen_deaf(&filler, rule);
	(void)state;
	proxy_ground_start(&ground, &(struct proxy_options){ .connect_ms = SHORT_MS, .rules = rules });
	sprintf(request,
	        "GET http://a.test:%%/ HTTP/1.1\r\nHost: a.test:%%\r\n\r\nCONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n",
	        rule, rule);
	int client = ground_client_saying(&ground, request), server = ground_accept(&ground);
	ground_say(&ground, server, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
	fill_with_chunks(server);
	ground_say(&ground, server, "0\r\n\r\n");
	usleep(SHORT_MS * 1000);
	assert_int_equal(kill(ground.pid, SIGSTOP), 0);
	read_what_comes(client);
	close(server);
	assert_int_equal(kill(ground.pid, SIGCONT), 0);
	while (recv(client, request, sizeof(request), 0) > 0)
		;
	struct proxy_message row = proxy_ground_row(&ground, PROXY_BY_HTTP, PROXY_ALLOWED, "a.test:%", 0, "");
	assert_true(row.connection.bytes_in > 32768);
	proxy_ground_row(&ground, PROXY_BY_CONNECT, PROXY_FAILED, rule, 504, "did not answer in time");
	close(client);
	proxy_ground_end(&ground);
	close(filler);
	close(full);
}

/* ---- what breaks ------------------------------------------------------------------------------------------------ */

static void test_resets(void **state)
{
	struct proxy_ground ground;
	int server;
	(void)state;
	proxy_ground_start(&ground, NULL);
	int client = ground_tunnel(&ground, &server);
	reset(client);
	expect_reset(server);
	proxy_ground_row(&ground, PROXY_BY_CONNECT, PROXY_ALLOWED, "a.test:%", 0, "broke it off");
	client = ground_tunnel(&ground, &server);
	ground_say(&ground, server, "last words");
	ground_hear(&ground, client, "last words");
	reset(server);
	expect_reset(client);
	proxy_ground_row(&ground, PROXY_BY_CONNECT, PROXY_ALLOWED, "a.test:%", 0, "broken off");
	proxy_ground_end(&ground);
}

/* Neither reads; then one goes. */
static void test_reset_while_full(void **state)
{
	struct proxy_ground ground;
	char bytes[65536] = "";
	int server;
	(void)state;
	proxy_ground_start(&ground, NULL);
	int client = ground_tunnel(&ground, &server);
	ssize_t sent;
	do {
		struct pollfd writable = { .fd = client, .events = POLLOUT };
		sent = poll(&writable, 1, 100) == 1 ? send(client, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL)
		                                    : 0;
	} while (sent > 0);
	/* Another is served meanwhile. */
	int other_server, other = ground_tunnel(&ground, &other_server);
	reset(client);
	ssize_t got;
	do
		got = recv(server, bytes, sizeof(bytes), 0);
	while (got > 0);
	assert_true(got < 0);
	close(server);
	proxy_ground_row(&ground, PROXY_BY_CONNECT, PROXY_ALLOWED, "a.test:%", 0, "broke it off");
	ground_say(&ground, other, "ping");
	ground_hear(&ground, other_server, "ping");
	proxy_ground_end(&ground);
	close(other);
	close(other_server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_connections_at_a_time),
		cmocka_unit_test(test_connections_in_all),
		cmocka_unit_test(test_bytes_in_all),
		cmocka_unit_test(test_bytes_in_and_behind_heads),
		cmocka_unit_test(test_bytes_of_a_body),
		cmocka_unit_test(test_bytes_of_a_response),
		cmocka_unit_test(test_long_heads),
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_slow_heads),
		cmocka_unit_test(test_connect_timeout),
		cmocka_unit_test(test_next_in_its_place),
		cmocka_unit_test(test_resets),
		cmocka_unit_test(test_reset_while_full),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

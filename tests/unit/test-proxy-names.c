/* The proxy's name service, over UDP and TCP. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "support/proxy-ground.h"

#define TYPE_A 1
#define TYPE_AAAA 28
#define TYPE_MX 15

static size_t write_question(const char *name, unsigned type, uint8_t *bytes)
{
	static const uint8_t head[] = { 0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0 };
	size_t used = sizeof(head);
	memcpy(bytes, head, sizeof(head));
	while (*name) {
		size_t label = strcspn(name, ".");
		bytes[used++] = (uint8_t)label;
		memcpy(bytes + used, name, label);
		used += label;
		name += label + (name[label] == '.');
	}
	memcpy(bytes + used, (const uint8_t[]){ 0, 0, (uint8_t)type, 0, 1 }, 5);
	return used + 5;
}

/* The response's code, and its last four bytes where it has an answer. */
static unsigned read_reply(const uint8_t *bytes, ssize_t length, uint8_t ret_address[4], unsigned *ret_answers)
{
	assert_true(length > 12);
	assert_memory_equal(bytes, "\x12\x34", 2);
	assert_true(bytes[2] & 0x80);
	*ret_answers = bytes[7];
	memcpy(ret_address, bytes + length - 4, 4);
	return bytes[3] & 0xf;
}

static int names_socket(const struct proxy_ground *ground)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(ground->dns_port),
	                          .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct timeval wait = { 30, 0 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

static const struct {
	const char *name;
	unsigned type, code, answers;
	const char *address;
} lookups[] = {
	{ "a.test", TYPE_A, 0, 1, "127.77.0.1" },
	{ "A.Test", TYPE_A, 0, 1, "127.77.0.1" },
	{ "a.test", TYPE_AAAA, 0, 0, NULL },
	{ "a.test", TYPE_MX, 0, 0, NULL },
	{ "one.wild.test", TYPE_A, 0, 1, "198.19.0.1" },
	{ "two.more.wild.test", TYPE_A, 0, 1, "198.19.0.2" },
	{ "one.wild.test", TYPE_A, 0, 1, "198.19.0.1" },
	{ "wild.test", TYPE_A, 3, 0, NULL },
	{ "notwild.test", TYPE_A, 3, 0, NULL },
	{ "sub.a.test", TYPE_A, 3, 0, NULL },
	{ "b.test", TYPE_A, 3, 0, NULL },
	{ "localhost", TYPE_A, 0, 1, "127.0.0.1" },
	{ "app.localhost", TYPE_A, 0, 1, "127.0.0.1" },
	{ "cordon", TYPE_A, 0, 1, "127.0.0.1" },
	{ "notlocalhost", TYPE_A, 3, 0, NULL },
};

static void test_names(void **state)
{
	static const char *const rules[] = { "*.wild.test:443", NULL };
	static const char *const denied[] = { "wild.test", "notwild.test", "sub.a.test", "b.test" };
	struct proxy_ground ground;
	uint8_t question[512], reply[512], address[4];
	char text[INET_ADDRSTRLEN];
	unsigned answers;
	(void)state;
	proxy_ground_start(&ground, &(struct proxy_options){ .rules = rules });
	int udp = names_socket(&ground), tcp = ground_dial("127.0.0.1", ground.dns_port);
	for (size_t i = 0; i < 2 * ARRAY_SIZE(lookups); i++) {
		bool is_tcp = i % 2;
		size_t row = i / 2, length = write_question(lookups[row].name, lookups[row].type, question + 2);
		question[0] = 0;
		question[1] = (uint8_t)length;
		ssize_t got;
		if (is_tcp) {
			assert_int_equal(send(tcp, question, length + 2, 0), length + 2);
			assert_int_equal(recv(tcp, reply, 2, MSG_WAITALL), 2);
			got = recv(tcp, reply, (size_t)reply[0] << 8 | reply[1], MSG_WAITALL);
		} else {
			assert_int_equal(send(udp, question + 2, length, 0), length);
			got = recv(udp, reply, sizeof(reply), 0);
		}
		assert_int_equal(read_reply(reply, got, address, &answers), lookups[row].code);
		assert_int_equal(answers, lookups[row].answers);
		if (lookups[row].address)
			assert_string_equal(inet_ntop(AF_INET, address, text, sizeof(text)), lookups[row].address);
	}
	/* Twice each, over UDP and TCP; told once, or twice if that took long. */
	unsigned counts[ARRAY_SIZE(denied)] = { 0 };
	for (unsigned sum = 0; sum < 2 * ARRAY_SIZE(denied);) {
		struct proxy_message message = proxy_ground_next(&ground);
		assert_int_equal(message.kind, PROXY_NAME_DENIED);
		for (size_t i = 0; i < ARRAY_SIZE(denied); i++)
			if (!strcmp(message.host, denied[i]))
				counts[i] += (unsigned)message.connection.count;
		sum += (unsigned)message.connection.count;
	}
	for (size_t i = 0; i < ARRAY_SIZE(denied); i++)
		assert_int_equal(counts[i], 2);
	/* What is none gets no answer, or says so; and the service goes on. */
	assert_int_equal(send(udp, "\1\2\3", 3, 0), 3);
	assert_int_equal(send(tcp, "\0\3\1\2\3", 5, 0), 5);
	char end[16];
	assert_true(ground_hear_all(tcp, end, sizeof(end)) <= 0);
	size_t length = write_question("a.test", TYPE_A, question);
	assert_int_equal(send(udp, question, length, 0), length);
	assert_int_equal(read_reply(reply, recv(udp, reply, sizeof(reply), 0), address, &answers), 0);
	close(udp);
	close(tcp);
	proxy_ground_end(&ground);
}

static void test_v6_names(void **state)
{
	static const char *const rules[] = { "*.wild.test:443", NULL };
	static const struct {
		const char *name, *address;
	} rows[] = { { "a.test", "2001:2::1:1" }, { "x.wild.test", "2001:2::2:1" } };
	struct proxy_ground ground;
	uint8_t question[512], reply[512], address[4];
	char text[INET6_ADDRSTRLEN];
	unsigned answers;
	(void)state;
	proxy_ground_start(&ground, &(struct proxy_options){ .rules = rules, .has_v6 = true });
	int udp = names_socket(&ground);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t length = write_question(rows[i].name, TYPE_AAAA, question);
		assert_int_equal(send(udp, question, length, 0), length);
		ssize_t got = recv(udp, reply, sizeof(reply), 0);
		assert_int_equal(read_reply(reply, got, address, &answers), 0);
		assert_int_equal(answers, 1);
		assert_string_equal(inet_ntop(AF_INET6, reply + got - 16, text, sizeof(text)), rows[i].address);
	}
	close(udp);
	proxy_ground_end(&ground);
}

static void test_flood_of_names(void **state)
{
	struct proxy_ground ground;
	uint8_t question[512], reply[512];
	unsigned messages = 0;
	uint64_t told = 0;
	(void)state;
	proxy_ground_start(&ground, NULL);
	int udp = names_socket(&ground);
	/* As fast as it goes; what the socket does not hold is lost, as always. */
	size_t length = write_question("flood.test", TYPE_A, question);
	for (int i = 0; i < 5000; i++)
		(void)!send(udp, question, length, MSG_DONTWAIT);
	for (int i = 0; i < 100; i++) {
		char name[32];
		sprintf(name, "n%d.test", i);
		size_t other = write_question(name, TYPE_A, question);
		(void)!send(udp, question, other, MSG_DONTWAIT);
	}
	while (recv(udp, reply, sizeof(reply), MSG_DONTWAIT) > 0)
		;
	/* Others are served. */
	int server, client = ground_tunnel(&ground, &server);
	close(client);
	close(server);
	proxy_ground_send(&ground, &(struct proxy_message){ .kind = PROXY_END });
	struct proxy_message message;
	while ((message = proxy_ground_next(&ground)).kind != PROXY_TOTALS)
		if (message.kind == PROXY_NAME_DENIED && !strcmp(message.host, "flood.test")) {
			messages++;
			told += message.connection.count;
		}
	assert_true(messages >= 1 && told <= 5000 && message.totals.denied >= told);
	/* Each 200 ms, or when 64 names are waiting to be told. */
	assert_true(messages <= told);
	assert_true(told < 100 || messages < told / 4);
	close(udp);
	close(ground.socket);
	close(ground.server);
	assert_int_equal(waitpid(ground.pid, NULL, 0), ground.pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_v6_names),
		cmocka_unit_test(test_flood_of_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A running cordon-proxy: see proxy-ground.h. */
#include "support/proxy-ground.h"

#include <setjmp.h>
#include <stdarg.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "support/proxy-process.h"

#define WAIT_S 30

static const struct {
	const char *name, *address;
} names[] = {
	{ "a.test", "127.0.0.1" },
	{ "b.test", "127.0.0.1" },
	{ "second.test", "127.0.0.9" }, /* nobody listens there */
	{ "second.test", "127.0.0.1" },
	{ "closed.test", "127.0.0.9" },
	{ "mixed.test", "127.0.0.1" },
	{ "mixed.test", "10.0.0.1" },
	{ "meta.test", "169.254.169.254" },
	{ "metadata.google.internal", "127.0.0.1" },
};

static struct address address_of(const char *text)
{
	struct address address = { 0 };
	assert_true(address_parse(text, strlen(text), &address));
	return address;
}

static void expand(const struct proxy_ground *ground, const char *text, char *expanded, size_t size)
{
	size_t used = 0;
	for (; *text && used + 8 < size; text++)
		if (*text == '%')
			used += (size_t)sprintf(expanded + used, "%u", ground->port);
		else
			expanded[used++] = *text;
	assert_int_equal(*text, '\0');
	expanded[used] = '\0';
}

/* ---- sockets ---------------------------------------------------------------------------------------------------- */

static void set_timeouts(int fd)
{
	static const struct timeval wait = { WAIT_S, 0 };
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)), 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)), 0);
}

/* -1 where the port is taken. */
static int bind_at(const char *address, uint16_t *port, int type)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(*port) };
	socklen_t length = sizeof(at);
	static const int on = 1;
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	assert_int_equal(inet_pton(AF_INET, address, &at.sin_addr), 1);
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || (type == SOCK_STREAM && listen(fd, 4096) < 0)) {
		close(fd);
		return -1;
	}
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &length), 0);
	*port = ntohs(at.sin_port);
	set_timeouts(fd);
	return fd;
}

int ground_dial(const char *address, uint16_t port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	set_timeouts(fd);
	assert_int_equal(inet_pton(AF_INET, address, &at.sin_addr), 1);
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

int ground_client(const struct proxy_ground *ground)
{
	return ground_dial("127.0.0.1", ground->proxy_port);
}

int ground_accept(const struct proxy_ground *ground)
{
	int fd = accept4(ground->server, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0)
		fail_msg("the proxy did not dial: %s", strerror(errno));
	set_timeouts(fd);
	return fd;
}

void ground_say(const struct proxy_ground *ground, int fd, const char *text)
{
	char expanded[8192];
	expand(ground, text, expanded, sizeof(expanded));
	size_t length = strlen(expanded);
	assert_int_equal(send(fd, expanded, length, MSG_NOSIGNAL), length);
}

void ground_hear(const struct proxy_ground *ground, int fd, const char *text)
{
	char expected[8192], heard[8192] = "";
	expand(ground, text, expected, sizeof(expected));
	size_t length = strlen(expected), used = 0;
	while (used < length) {
		ssize_t got = recv(fd, heard + used, length - used, 0);
		if (got <= 0)
			fail_msg("expected \"%s\", heard \"%s\" and then %s", expected, heard,
			         got ? strerror(errno) : "the end");
		used += (size_t)got;
	}
	assert_string_equal(heard, expected);
}

ssize_t ground_hear_all(int fd, char *text, size_t size)
{
	size_t used = 0;
	for (;;) {
		ssize_t got = recv(fd, text + used, size - 1 - used, 0);
		text[used + (got > 0 ? (size_t)got : 0)] = '\0';
		if (got < 0 && errno == ECONNRESET)
			return -1;
		if (got < 0)
			fail_msg("there is no end to it: %s, after \"%s\"", strerror(errno), text);
		if (got == 0)
			return (ssize_t)used;
		used += (size_t)got;
		assert_true(used < size - 1);
	}
}

void ground_hear_end(int fd)
{
	char text[4096];
	assert_int_equal(ground_hear_all(fd, text, sizeof(text)), 0);
}

int ground_client_saying(const struct proxy_ground *ground, const char *text)
{
	assert_int_equal(kill(ground->pid, SIGSTOP), 0);
	int fd = ground_client(ground);
	ground_say(ground, fd, text);
	assert_int_equal(kill(ground->pid, SIGCONT), 0);
	return fd;
}

int ground_tunnel(const struct proxy_ground *ground, int *ret_server)
{
	int client = ground_client(ground);
	ground_say(ground, client, "CONNECT a.test:% HTTP/1.1\r\nHost: a.test:%\r\n\r\n");
	*ret_server = ground_accept(ground);
	ground_hear(ground, client, "HTTP/1.1 200 Connection established\r\n\r\n");
	return client;
}

/* ---- messages --------------------------------------------------------------------------------------------------- */

static void send_with(const struct proxy_ground *ground, const struct proxy_message *message, int fd)
{
	assert_int_equal(proxy_process_tell(ground->socket, message, fd), 0);
}

void proxy_ground_send(struct proxy_ground *ground, const struct proxy_message *message)
{
	send_with(ground, message, -1);
}

static struct proxy_message receive(struct proxy_ground *ground)
{
	struct proxy_message message = { 0 };
	ssize_t got = recv(ground->socket, &message, sizeof(message), MSG_WAITALL);
	if (got != sizeof(message))
		fail_msg("no message from the proxy: %s", got < 0 ? strerror(errno) : "it is gone");
	return message;
}

static bool is_open(const struct proxy_message *message)
{
	return message->kind == PROXY_CONNECTION && message->connection.open;
}

struct proxy_message proxy_ground_next(struct proxy_ground *ground)
{
	struct proxy_message message;
	do
		message = receive(ground);
	while (is_open(&message));
	return message;
}

struct proxy_message proxy_ground_open(struct proxy_ground *ground)
{
	struct proxy_message message = receive(ground);
	assert_true(is_open(&message));
	return message;
}

bool proxy_ground_has_message(struct proxy_ground *ground)
{
	struct proxy_message message = { 0 };
	while (recv(ground->socket, &message, sizeof(message), MSG_PEEK | MSG_DONTWAIT) >= 0) {
		if (!is_open(&message))
			return true;
		receive(ground);
	}
	return false;
}

struct proxy_message proxy_ground_row(struct proxy_ground *ground, enum proxy_way way, enum proxy_decision decision,
                                      const char *host, unsigned status, const char *why)
{
	char expected[HOST_TEXT_SIZE];
	struct proxy_message message = proxy_ground_next(ground);
	expand(ground, host, expected, sizeof(expected));
	assert_true(message.kind == PROXY_CONNECTION || message.kind == PROXY_NAME_DENIED);
	if (strcmp(message.host, expected) || message.connection.way != way ||
	    message.connection.decision != decision || !strstr(message.text, why))
		fail_msg("a row for \"%s\" by %d, decided %d: \"%s\"; expected \"%s\", %d, %d, \"%s\"", message.host,
		         message.connection.way, message.connection.decision, message.text, expected, way, decision,
		         why);
	if (status)
		assert_int_equal(message.connection.status, status);
	assert_true(message.connection.count >= 1);
	return message;
}

/* ---- the program ------------------------------------------------------------------------------------------------ */

/* From here on the call says ENOSYS. */
static void take_away(long number)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { ARRAY_SIZE(filter), filter };
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		_exit(97);
}

static void start_program(struct proxy_ground *ground, long without)
{
	ground->socket = proxy_process_start(PROXY_PROGRAM, without ? take_away : NULL, without, &ground->pid);
	assert_true(ground->socket >= 0);
	set_timeouts(ground->socket);
}

static void give_listener(struct proxy_ground *ground, enum egress_use use, int fd, const char *address)
{
	struct proxy_message message = { .kind = PROXY_LISTENER };
	message.listener.use = (uint8_t)use;
	message.listener.address = address_of(address);
	send_with(ground, &message, fd);
	close(fd);
}

/* The same port on several addresses, or for UDP and TCP: perhaps not at the first try. */
static void listen_everywhere(struct proxy_ground *ground, const struct proxy_options *options)
{
	int forward = -1, names_udp = -1, names_tcp = -1;
	for (int i = 0; i < 100 && forward < 0; i++) {
		ground->port = 0;
		ground->server = bind_at("127.0.0.1", &ground->port, SOCK_STREAM);
		forward = ground->server < 0 ? -1 : bind_at("127.77.0.1", &ground->port, SOCK_STREAM);
		if (forward < 0)
			close(ground->server);
	}
	for (int i = 0; i < 100 && names_tcp < 0; i++) {
		ground->dns_port = 0;
		names_udp = bind_at("127.0.0.1", &ground->dns_port, SOCK_DGRAM);
		names_tcp = bind_at("127.0.0.1", &ground->dns_port, SOCK_STREAM);
		if (names_tcp < 0)
			close(names_udp);
	}
	assert_true(forward >= 0 && names_tcp >= 0);
	give_listener(ground, EGRESS_FORWARD, forward, "127.77.0.1");
	give_listener(ground, EGRESS_DNS_UDP, names_udp, "127.0.0.1");
	give_listener(ground, EGRESS_DNS_TCP, names_tcp, "127.0.0.1");
	give_listener(ground, EGRESS_FORWARD, bind_at("0.0.0.0", &ground->any_port, SOCK_STREAM),
	              options->has_v6 ? "::" : "0.0.0.0");
	int listener = bind_at("127.0.0.1", &ground->proxy_port, SOCK_STREAM);
	give_listener(ground, EGRESS_PROXY, listener, "127.0.0.1");
}

static void give_rule(struct proxy_ground *ground, const char *text, const char *inside)
{
	struct proxy_message message = { .kind = PROXY_RULE };
	expand(ground, text, message.host, sizeof(message.host));
	if (inside) {
		message.rule.v4 = address_of(inside);
		message.rule.v6 = address_of("2001:2::1:1");
	}
	proxy_ground_send(ground, &message);
}

static void give_settings(struct proxy_ground *ground, const struct proxy_options *options)
{
	struct proxy_message message = { .kind = PROXY_SETTINGS };
	message.settings.connections = options->connections ? options->connections : 256;
	message.settings.total_connections = options->total_connections ? options->total_connections : 100000;
	message.settings.connect_ms = options->connect_ms ? options->connect_ms : 10000;
	message.settings.idle_ms = options->idle_ms ? options->idle_ms : 60000;
	message.settings.header_bytes = options->header_bytes ? options->header_bytes : 65536;
	message.settings.total_bytes = options->total_bytes;
	message.settings.asks = options->asks;
	message.settings.offline = options->offline;
	message.settings.asks_token = options->tokens != NULL;
	proxy_ground_send(ground, &message);
}

void proxy_ground_give_token(struct proxy_ground *ground, uint32_t command, const char *token)
{
	struct proxy_message message = { .kind = PROXY_TOKEN, .id = command };
	message.secret.length = (uint16_t)strlen(token);
	assert_true(message.secret.length <= sizeof(message.secret.bytes));
	memcpy(message.secret.bytes, token, message.secret.length);
	proxy_ground_send(ground, &message);
}

struct proxy_message proxy_ground_try(struct proxy_ground *ground, const struct proxy_options *options)
{
	static const struct proxy_options ordinary;
	struct proxy_message message = { .kind = PROXY_NAME };
	*ground = (struct proxy_ground){ .pid = -1 };
	options = options ? options : &ordinary;
	start_program(ground, options->without);
	listen_everywhere(ground, options);
	give_settings(ground, options);
	give_rule(ground, "a.test:%", "127.77.0.1");
	for (const char *const *rule = options->rules; rule && *rule; rule++)
		give_rule(ground, *rule, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		strcpy(message.host, names[i].name);
		message.name.address = address_of(names[i].address);
		proxy_ground_send(ground, &message);
	}
	message = (struct proxy_message){ .kind = PROXY_EXEMPTION };
	strcpy(message.host, "127.0.0.0/8");
	if (!options->no_exemption)
		proxy_ground_send(ground, &message);
	for (uint32_t i = 0; options->tokens && options->tokens[i]; i++)
		proxy_ground_give_token(ground, i + 1, options->tokens[i]);
	proxy_ground_send(ground, &(struct proxy_message){ .kind = PROXY_BEGIN });
	return proxy_ground_next(ground);
}

void proxy_ground_start(struct proxy_ground *ground, const struct proxy_options *options)
{
	struct proxy_message message = proxy_ground_try(ground, options);
	if (message.kind != PROXY_READY)
		fail_msg("the proxy is not ready: %s", message.text);
}

void proxy_ground_ask_end(struct proxy_ground *ground)
{
	proxy_ground_send(ground, &(struct proxy_message){ .kind = PROXY_END });
	ground->is_ending = true;
}

struct proxy_message proxy_ground_end(struct proxy_ground *ground)
{
	struct proxy_message message;
	int status;
	if (!ground->is_ending)
		proxy_ground_ask_end(ground);
	do
		message = proxy_ground_next(ground);
	while (message.kind != PROXY_TOTALS);
	close(ground->socket);
	close(ground->server);
	assert_int_equal(waitpid(ground->pid, &status, 0), ground->pid);
	assert_int_equal(status, 0);
	return message;
}

void proxy_ground_kill(struct proxy_ground *ground)
{
	assert_int_equal(kill(ground->pid, SIGKILL), 0);
	assert_int_equal(waitpid(ground->pid, NULL, 0), ground->pid);
	close(ground->socket);
	close(ground->server);
}

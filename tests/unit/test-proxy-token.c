/* Tokens at the proxy's port: who shows none of a command that runs is refused and reaches nothing, and whose token is
 * shown is whose connection it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <sodium.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cordon.h"
#include "support/proxy-ground.h"
#include "support/proxy-process.h"

#define FIRST "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define SECOND "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100"
#define OTHER "00112233445566778899aabbccddeeff00112233445566778899aabbccddeefe"
#define NOT_SHOWN "it shows no token of a command that runs"
#define TIMES 200

static const char *const tokens[] = { FIRST, SECOND, NULL };

static int setup(void **state)
{
	static struct proxy_ground ground;
	proxy_ground_start(&ground, &(struct proxy_options){ .tokens = tokens });
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

/* "Proxy-Authorization: SCHEME USER:PASSWORD in base64". */
static const char *field(const char *scheme, const char *user, const char *password)
{
	static char line[512];
	char pair[256], text[400];
	int length = snprintf(pair, sizeof(pair), "%s:%s", user, password);
	sodium_bin2base64(text, sizeof(text), (unsigned char *)pair, (size_t)length, sodium_base64_VARIANT_ORIGINAL);
	snprintf(line, sizeof(line), "Proxy-Authorization: %s%s\r\n", scheme, text);
	return line;
}

static int connect_with(struct proxy_ground *ground, const char *host, const char *fields)
{
	char text[2048];
	int client = ground_client(ground);
	snprintf(text, sizeof(text), "CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", host, host, fields);
	ground_say(ground, client, text);
	return client;
}

/* What was counted is told a little later, or when a command has ended. */
static struct proxy_message counted(struct proxy_ground *ground)
{
	proxy_ground_send(ground, &(struct proxy_message){ .kind = PROXY_TELL, .id = 7 });
	struct proxy_message row = proxy_ground_next(ground), told = proxy_ground_next(ground);
	/* If the row was told by itself before. */
	assert_int_equal(told.kind, PROXY_TOLD);
	return row;
}

static void is_refused(struct proxy_ground *ground, int client)
{
	char text[4096];
	assert_true(ground_hear_all(client, text, sizeof(text)) > 0);
	close(client);
	if (strncmp(text, "HTTP/1.1 407 Proxy Authentication Required\r\n", 44) ||
	    !strstr(text, "\r\nProxy-Authenticate: Basic realm=\"cordon\"\r\n") || !strstr(text, NOT_SHOWN))
		fail_msg("not refused: %s", text);
	assert_null(strstr(text, FIRST));
	struct proxy_message row = counted(ground);
	assert_int_equal(row.kind, PROXY_CONNECTION);
	assert_int_equal(row.connection.decision, PROXY_DENIED);
	assert_int_equal(row.connection.status, 407);
	assert_int_equal(row.connection.command, 0);
	assert_int_equal(row.connection.count, 1);
	assert_string_equal(row.host, "");
	assert_non_null(strstr(row.text, NOT_SHOWN));
}

static void what_is_refused(void **state)
{
	struct proxy_ground *ground = *state;
	char twice[1100], padded[600];
	is_refused(ground, connect_with(ground, "a.test:%", ""));
	is_refused(ground, connect_with(ground, "a.test:%", "Proxy-Authorization:\r\n"));
	is_refused(ground, connect_with(ground, "a.test:%", "Proxy-Authorization: Basic\r\n"));
	is_refused(ground, connect_with(ground, "a.test:%", "Proxy-Authorization: Basic =\r\n"));
	is_refused(ground, connect_with(ground, "a.test:%", field("Basic ", "cordon", OTHER)));
	is_refused(ground, connect_with(ground, "a.test:%", field("Basic ", "cordon", "")));
	is_refused(ground, connect_with(ground, "a.test:%", field("Basic ", "cordon", FIRST "0")));
	is_refused(ground, connect_with(ground, "a.test:%", field("Basic ", "Cordon", FIRST)));
	is_refused(ground, connect_with(ground, "a.test:%", field("Bearer ", "cordon", FIRST)));
	is_refused(ground, connect_with(ground, "a.test:%", field("Basic", "cordon", FIRST)));
	is_refused(ground, connect_with(ground, "a.test:%", "Proxy-Authorization: Basic " FIRST "\r\n"));
	is_refused(ground, connect_with(ground, "a.test:%", "Authorization: Basic " FIRST "\r\n"));
	/* Two readers could take either of two. */
	snprintf(twice, sizeof(twice), "%s%s", field("Basic ", "cordon", FIRST), field("Basic ", "cordon", FIRST));
	is_refused(ground, connect_with(ground, "a.test:%", twice));
	/* A NUL behind it, as it is in memory. */
	snprintf(padded, sizeof(padded), "%.*sA\r\n", (int)strlen(field("Basic ", "cordon", FIRST)) - 2,
	         field("Basic ", "cordon", FIRST));
	is_refused(ground, connect_with(ground, "a.test:%", padded));
}

static void a_host_is_not_judged_without(void **state)
{
	struct proxy_ground *ground = *state;
	is_refused(ground, connect_with(ground, "unlisted.test:443", ""));
	int client = ground_client(ground);
	ground_say(ground, client, "GET http://a.test:%/ HTTP/1.1\r\nHost: a.test:%\r\n\r\n");
	is_refused(ground, client);
}

static void many_are_one_row(void **state)
{
	struct proxy_ground *ground = *state;
	char text[4096];
	uint64_t count = 0;
	for (int i = 0; i < TIMES; i++) {
		int client = connect_with(ground, "a.test:%", "");
		assert_true(ground_hear_all(client, text, sizeof(text)) > 0);
		close(client);
	}
	proxy_ground_send(ground, &(struct proxy_message){ .kind = PROXY_TELL, .id = 7 });
	int rows = 0;
	for (struct proxy_message row; (row = proxy_ground_next(ground)).kind != PROXY_TOLD; rows++)
		count += row.connection.count;
	assert_int_equal(count, TIMES);
	assert_true(rows < TIMES / 4);
}

static void reach(struct proxy_ground *ground, const char *token, uint32_t command)
{
	int client = connect_with(ground, "a.test:%", field("bASIC   ", "cordon", token));
	int server = ground_accept(ground);
	ground_hear(ground, client, "HTTP/1.1 200 Connection established\r\n\r\n");
	ground_say(ground, client, "hello");
	ground_hear(ground, server, "hello");
	close(server);
	ground_hear_end(client);
	close(client);
	struct proxy_message row =
		proxy_ground_row(ground, PROXY_BY_CONNECT, PROXY_ALLOWED, "a.test:%", 0, "");
	assert_int_equal(row.connection.command, command);
}

static void whose_it_is(void **state)
{
	reach(*state, FIRST, 1);
	reach(*state, SECOND, 2);
}

static void an_unlisted_host(void **state)
{
	struct proxy_ground *ground = *state;
	char text[4096];
	int client = connect_with(ground, "unlisted.test:443", field("Basic ", "cordon", SECOND));
	assert_true(ground_hear_all(client, text, sizeof(text)) > 0);
	close(client);
	assert_memory_equal(text, "HTTP/1.1 403 ", 13);
	struct proxy_message row = proxy_ground_row(ground, PROXY_BY_CONNECT, PROXY_DENIED, "unlisted.test:443", 403,
	                                            "no rule allows it");
	assert_int_equal(row.connection.command, 2);
}

/* Each request of a connection that is kept. */
static void every_request(void **state)
{
	struct proxy_ground *ground = *state;
	char text[2048];
	const char *answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
	int client = ground_client(ground);
	for (uint32_t command = 1; command <= 2; command++) {
		snprintf(text, sizeof(text), "GET http://a.test:%%/x HTTP/1.1\r\nHost: a.test:%%\r\n%s\r\n",
		         field("Basic ", "cordon", tokens[command - 1]));
		ground_say(ground, client, text);
		int server = ground_accept(ground);
		/* The server does not see it. */
		ground_hear(ground, server, "GET /x HTTP/1.1\r\nHost: a.test:%\r\nConnection: close\r\n\r\n");
		ground_say(ground, server, answer);
		close(server);
		ground_hear(ground, client, answer);
		struct proxy_message row =
			proxy_ground_row(ground, PROXY_BY_HTTP, PROXY_ALLOWED, "a.test:%", 0, "");
		assert_int_equal(row.connection.command, command);
	}
	ground_say(ground, client, "GET http://a.test:%/x HTTP/1.1\r\nHost: a.test:%\r\n\r\n");
	is_refused(ground, client);
}

/* ---- SOCKS ------------------------------------------------------------------------------------------------------- */

static void say_bytes(int fd, const char *bytes, size_t length)
{
	assert_int_equal(send(fd, bytes, length, MSG_NOSIGNAL), length);
}

static void hear_bytes(int fd, const char *bytes, size_t length)
{
	char heard[64];
	assert_true(length <= sizeof(heard));
	assert_int_equal(recv(fd, heard, length, MSG_WAITALL), length);
	assert_memory_equal(heard, bytes, length);
}

static int log_in(struct proxy_ground *ground, const char *user, const char *password, bool at_once)
{
	char login[600];
	int client = ground_client(ground);
	int length = snprintf(login, sizeof(login), "\5\2%c\2\1%c%s%c%s", 1, (int)strlen(user), user,
	                      (int)strlen(password), password);
	login[2] = '\0';
	if (at_once) {
		say_bytes(client, login, (size_t)length);
		hear_bytes(client, "\5\2", 2);
		return client;
	}
	say_bytes(client, login, 4);
	hear_bytes(client, "\5\2", 2);
	for (int i = 4; i < length; i++)
		say_bytes(client, login + i, 1);
	return client;
}

static void socks_names(struct proxy_ground *ground, int client)
{
	char request[] = "\5\1\0\3\6a.test\0\0";
	request[11] = (char)(ground->port >> 8);
	request[12] = (char)ground->port;
	say_bytes(client, request, 13);
}

static void socks_reaches(void **state)
{
	struct proxy_ground *ground = *state;
	for (int at_once = 0; at_once < 2; at_once++) {
		int client = log_in(ground, "cordon", SECOND, at_once);
		hear_bytes(client, "\1\0", 2);
		socks_names(ground, client);
		int server = ground_accept(ground);
		hear_bytes(client, "\5\0\0\1\0\0\0\0\0\0", 10);
		close(server);
		ground_hear_end(client);
		close(client);
		struct proxy_message row =
			proxy_ground_row(ground, PROXY_BY_SOCKS, PROXY_ALLOWED, "a.test:%", 0, "");
		assert_int_equal(row.connection.command, 2);
	}
}

static void socks_is_refused(void **state)
{
	struct proxy_ground *ground = *state;
	static const struct {
		const char *user, *password;
	} rows[] = {
		{ "cordon", OTHER }, { "cordon", "" }, { "", FIRST }, { "Cordon", FIRST }, { "cordon", FIRST "0" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int client = log_in(ground, rows[i].user, rows[i].password, false);
		hear_bytes(client, "\1\1", 2);
		ground_hear_end(client);
		close(client);
		struct proxy_message row = counted(ground);
		assert_int_equal(row.connection.decision, PROXY_DENIED);
		assert_int_equal(row.connection.command, 0);
		assert_non_null(strstr(row.text, NOT_SHOWN));
	}
	/* Not without a word of who it is; and what comes behind the greeting is no request. */
	int client = ground_client(ground);
	say_bytes(client, "\5\1\0", 3);
	hear_bytes(client, "\5\xff", 2);
	ground_hear_end(client);
	close(client);
	assert_int_equal(counted(ground).connection.decision, PROXY_FAILED);
	client = ground_client(ground);
	say_bytes(client, "\5\1\2", 3);
	socks_names(ground, client);
	hear_bytes(client, "\5\2\1\1", 4);
	ground_hear_end(client);
	close(client);
	assert_int_equal(counted(ground).connection.decision, PROXY_FAILED);
}

/* ---- commands that end ------------------------------------------------------------------------------------------- */

static void a_command_that_has_ended(void **state)
{
	struct proxy_ground *ground = *state;
	int client = connect_with(ground, "a.test:%", field("Basic ", "cordon", FIRST));
	int server = ground_accept(ground);
	ground_hear(ground, client, "HTTP/1.1 200 Connection established\r\n\r\n");
	proxy_ground_give_token(ground, 1, "");
	/* What it had open ends, and is its own. */
	struct proxy_message row =
		proxy_ground_row(ground, PROXY_BY_CONNECT, PROXY_ALLOWED, "a.test:%", 0, "its command has ended");
	assert_int_equal(row.connection.command, 1);
	char text[64];
	assert_int_equal(ground_hear_all(client, text, sizeof(text)), -1);
	close(client);
	close(server);
	is_refused(ground, connect_with(ground, "a.test:%", field("Basic ", "cordon", FIRST)));
	/* The other goes on, and one that comes later is let in. */
	reach(ground, SECOND, 2);
	proxy_ground_give_token(ground, 3, OTHER);
	proxy_ground_send(ground, &(struct proxy_message){ .kind = PROXY_TELL, .id = 9 });
	assert_int_equal(proxy_ground_next(ground).kind, PROXY_TOLD);
	reach(ground, OTHER, 3);
}

static void what_is_no_token(void **state)
{
	static const char *const wrong[] = { "short", FIRST "0", NULL };
	(void)state;
	for (size_t i = 0; wrong[i]; i++) {
		struct proxy_ground ground;
		const char *const list[] = { wrong[i], NULL };
		struct proxy_message message =
			proxy_ground_try(&ground, &(struct proxy_options){ .tokens = list });
		assert_int_equal(message.kind, PROXY_TOTALS);
		assert_string_equal(message.text, "a token is none, or there are too many");
		proxy_ground_kill(&ground);
	}
}

/* No token was given: nobody may. */
static void none_was_given(void **state)
{
	static const char *const none[] = { NULL };
	struct proxy_ground ground;
	(void)state;
	proxy_ground_start(&ground, &(struct proxy_options){ .tokens = none });
	is_refused(&ground, connect_with(&ground, "a.test:%", field("Basic ", "cordon", "")));
	is_refused(&ground, connect_with(&ground, "a.test:%", field("Basic ", "cordon", FIRST)));
	proxy_ground_end(&ground);
}

/* ---- the program ------------------------------------------------------------------------------------------------- */

static const char *version;             /* that the program is told to have */

static void become(long arg)
{
	char *const arguments[] = { (char[]){ "cordon-proxy" }, (char *)(uintptr_t)version, NULL };
	char *const environment[] = { NULL };
	(void)arg;
	execve(PROXY_PROGRAM, arguments, environment);
}

static struct proxy_message first_of(const char *wanted_version)
{
	struct proxy_message message = { .kind = PROXY_BEGIN };
	pid_t pid;
	version = wanted_version;
	int socket = proxy_process_start(PROXY_PROGRAM, become, 0, &pid);
	assert_true(socket >= 0);
	assert_int_equal(proxy_process_tell(socket, &message, -1), 0);
	assert_int_equal(recv(socket, &message, sizeof(message), MSG_WAITALL), sizeof(message));
	close(socket);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return message;
}

/* A file beside cordon may be of another version, which reads its messages in another way, or asks for no token. */
static void another_version(void **state)
{
	(void)state;
	struct proxy_message message = first_of("0.0.0");
	assert_int_equal(message.kind, PROXY_TOTALS);
	assert_string_equal(message.text, "the program beside cordon is of another version");
	message = first_of(CORDON_VERSION);
	assert_string_equal(message.text, "there are no settings");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(a_host_is_not_judged_without, setup, teardown),
		cmocka_unit_test_setup_teardown(many_are_one_row, setup, teardown),
		cmocka_unit_test_setup_teardown(whose_it_is, setup, teardown),
		cmocka_unit_test_setup_teardown(an_unlisted_host, setup, teardown),
		cmocka_unit_test_setup_teardown(every_request, setup, teardown),
		cmocka_unit_test_setup_teardown(socks_reaches, setup, teardown),
		cmocka_unit_test_setup_teardown(socks_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(a_command_that_has_ended, setup, teardown),
		cmocka_unit_test(what_is_no_token),
		cmocka_unit_test(none_was_given),
		cmocka_unit_test(another_version),
	};
	return cmocka_run_group_tests_name("proxy-token", tests, NULL, NULL);
}

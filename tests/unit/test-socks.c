/* SOCKS as programs speak it and as attackers do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net/socks.h"

#define ROW(what, text, verdict) { what, text, sizeof(text) - 1, verdict }
static const struct {
	const char *what, *bytes;
	size_t length;
	long verdict;
} greetings[] = {
	ROW("plain", "\5\1\0", 3),
	ROW("with others", "\5\3\2\1\0", 5),
	ROW("what comes behind", "\5\1\0\5\1", 3),
	ROW("nothing", "", 0),
	ROW("half", "\5", 0),
	ROW("no methods yet", "\5\2\0", 0),
	ROW("a password only", "\5\1\2", -1),
	ROW("no methods", "\5\0", -1),
	ROW("SOCKS 4", "\4\1\0\x50\1\2\3\4\0", -1),
	ROW("HTTP", "GET / HTTP/1.1\r\n", -1),
};

#define NAME(length, name) "\5\1\0\3" length name
static const struct {
	const char *what, *bytes;
	size_t length;
	long verdict;
	const char *host;
} requests[] = {
#define GOOD(what, text, host) { what, text, sizeof(text) - 1, sizeof(text) - 1, host }
#define REFUSED(what, text, reply) { what, text, sizeof(text) - 1, -(reply), NULL }
#define SHORT(what, text) { what, text, sizeof(text) - 1, 0, NULL }
	GOOD("a name", NAME("\6", "A.test") "\1\xbb", "a.test:443"),
	GOOD("a name of one letter", NAME("\1", "I") "\6\0", "i:1536"),
	GOOD("a name with a dot", NAME("\7", "a.test.") "\0\x50", "a.test:80"),
	GOOD("IPv4", "\5\1\0\1\x7f\0\0\1\0\x16", "127.0.0.1:22"),
	GOOD("IPv4 as a name", NAME("\x9", "127.0.0.1") "\0\x16", "127.0.0.1:22"),
	GOOD("IPv6", "\5\1\0\4\x20\1\xd\xb8\0\0\0\0\0\0\0\0\0\0\0\1\xff\xff", "[2001:db8::1]:65535"),
	GOOD("IPv6 as a name", NAME("\5", "[::1]") "\0\x16", "[::1]:22"),
	SHORT("nothing", ""),
	SHORT("the version", "\5"),
	SHORT("no type", "\5\1\0"),
	SHORT("no length", "\5\1\0\3"),
	SHORT("half a name", NAME("\6", "a.te")),
	SHORT("half a port", NAME("\6", "a.test") "\0"),
	SHORT("half an address", "\5\1\0\1\x7f\0"),
	REFUSED("another version", "\4", SOCKS_FAILED),
	REFUSED("BIND", "\5\2", SOCKS_NO_COMMAND),
	REFUSED("UDP", "\5\3\0\1\0\0\0\0\0\0", SOCKS_NO_COMMAND),
	REFUSED("no command", "\5\0\0\1", SOCKS_NO_COMMAND),
	REFUSED("something where nothing belongs", "\5\1\1", SOCKS_FAILED),
	REFUSED("type 0", "\5\1\0\0", SOCKS_NO_ADDRESS_TYPE),
	REFUSED("type 2", "\5\1\0\2", SOCKS_NO_ADDRESS_TYPE),
	REFUSED("type 255", "\5\1\0\xff", SOCKS_NO_ADDRESS_TYPE),
	REFUSED("no name", NAME("\0", "") "\0\x50", SOCKS_FAILED),
	REFUSED("port 0", NAME("\6", "a.test") "\0\0", SOCKS_FAILED),
	REFUSED("port 0 of an address", "\5\1\0\1\x7f\0\0\1\0\0", SOCKS_FAILED),
	REFUSED("a NUL", NAME("\6", "a.t\0st") "\0\x50", SOCKS_FAILED),
	REFUSED("a NUL at the end", NAME("\7", "a.test\0") "\0\x50", SOCKS_FAILED),
	REFUSED("a space", NAME("\6", "a test") "\0\x50", SOCKS_FAILED),
	REFUSED("a user", NAME("\x8", "x@a.test") "\0\x50", SOCKS_FAILED),
	REFUSED("a port in the name", NAME("\x9", "a.test:80") "\0\x50", SOCKS_FAILED),
	REFUSED("encoded", NAME("\x8", "a%2etest") "\0\x50", SOCKS_FAILED),
	REFUSED("a zone", NAME("\xc", "[fe80::1%lo]") "\0\x50", SOCKS_FAILED),
	REFUSED("IPv6 without brackets", NAME("\3", "::1") "\0\x50", SOCKS_FAILED),
	REFUSED("a number", NAME("\xa", "2130706433") "\0\x50", SOCKS_FAILED),
	REFUSED("octal", NAME("\xa", "0177.0.0.1") "\0\x50", SOCKS_FAILED),
	REFUSED("a star", NAME("\x8", "*.a.test") "\0\x50", SOCKS_FAILED),
	REFUSED("not ASCII", NAME("\7", "\xc3\xa4.test") "\0\x50", SOCKS_FAILED),
	REFUSED("a return and a feed", NAME("\x8", "a.test\r\n") "\0\x50", SOCKS_FAILED),
};

static uint8_t *copy_of(const char *bytes, size_t length)
{
	uint8_t *copy = malloc(length ? length : 1);
	assert_non_null(copy);
	memcpy(copy, bytes, length);
	return copy;
}

static void every_greeting(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(greetings); i++) {
		const char *why = NULL;
		uint8_t *copy = copy_of(greetings[i].bytes, greetings[i].length);
		long verdict = socks_greeting_parse(copy, greetings[i].length, SOCKS_METHOD_NONE, &why);
		free(copy);
		if (verdict != greetings[i].verdict || (verdict < 0 && (!why || !*why)))
			fail_msg("%s: %ld", greetings[i].what, verdict);
	}
}

static const struct {
	const char *what, *bytes;
	size_t length;
	long verdict;
	const char *user, *password;
} logins[] = {
#define LOGIN(what, text, user, password) { what, text, sizeof(text) - 1, sizeof(text) - 1, user, password }
	LOGIN("both", "\1\2me\3you", "me", "you"),
	LOGIN("neither", "\1\0\0", "", ""),
	LOGIN("no password", "\1\1a\0", "a", ""),
	LOGIN("a NUL in it", "\1\2a\0\1b", "a", "b"),
	{ "another version", "\5\1a\1b", 5, -1, NULL, NULL },
	{ "a request", "\5\1\0\1", 4, -1, NULL, NULL },
};

static void every_login(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(logins); i++)
		for (size_t length = 0; length <= logins[i].length; length++) {
			struct socks_login login;
			const char *why = NULL;
			uint8_t *copy = copy_of(logins[i].bytes, length);
			long verdict = socks_login_parse(copy, length, &login, &why);
			long wanted = length < logins[i].length ? 0 : logins[i].verdict;
			if (verdict != (length && logins[i].verdict < 0 ? -1 : wanted) ||
			    (verdict < 0 && (!why || !*why)))
				fail_msg("%s, %zu bytes: %ld", logins[i].what, length, verdict);
			if (verdict > 0) {
				assert_memory_equal(login.user, logins[i].user, strlen(logins[i].user));
				assert_int_equal(login.password_length, strlen(logins[i].password));
				assert_memory_equal(login.password, logins[i].password, login.password_length);
			}
			free(copy);
		}
}

static void greetings_with_a_password(void **state)
{
	const char *why = NULL;
	(void)state;
	assert_int_equal(socks_greeting_parse((const uint8_t *)"\5\2\0\2", 4, SOCKS_METHOD_PASSWORD, &why), 4);
	assert_int_equal(socks_greeting_parse((const uint8_t *)"\5\1\0", 3, SOCKS_METHOD_PASSWORD, &why), -1);
	assert_string_equal(why, "it does not offer a user and a password");
}

static void every_request(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(requests); i++)
		/* Cut anywhere, what is good is a beginning; with something behind it, it is the same. */
		for (size_t length = 0; length <= requests[i].length; length++) {
			struct host host;
			char text[HOST_TEXT_SIZE];
			const char *why = NULL;
			uint8_t *copy = copy_of(requests[i].bytes, length);
			long verdict = socks_request_parse(copy, length, &host, &why);
			free(copy);
			if (length < requests[i].length && requests[i].verdict < 0 && verdict == requests[i].verdict)
				continue;
			if (verdict != (length < requests[i].length ? 0 : requests[i].verdict) ||
			    (verdict < 0 && (!why || !*why)))
				fail_msg("%s, %zu bytes: %ld", requests[i].what, length, verdict);
			if (verdict <= 0)
				continue;
			host_text(&host, text);
			assert_string_equal(text, requests[i].host);
		}
}

static void replies(void **state)
{
	(void)state;
	uint8_t bytes[SOCKS_REPLY_SIZE];
	socks_reply_write(SOCKS_DENIED, bytes);
	assert_memory_equal(bytes, "\5\2\0\1\0\0\0\0\0\0", sizeof(bytes));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_greeting),
		cmocka_unit_test(every_login),
		cmocka_unit_test(greetings_with_a_password),
		cmocka_unit_test(every_request),
		cmocka_unit_test(replies),
	};
	return cmocka_run_group_tests_name("socks", tests, NULL, NULL);
}

/* SOCKS 5 as a proxy reads it (RFC 1928): no authentication, or a user and a password (RFC 1929); CONNECT only. Data
 * in, data out; every byte comes from someone else. Nothing is kept between calls: each part is parsed from its first
 * byte on until it is whole, and is refused as soon as it cannot become one. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "policy/host.h"

#define SOCKS_VERSION 5                 /* the first byte of a connection; no method of HTTP begins with it */

enum socks_reply {
	SOCKS_SUCCEEDED = 0,
	SOCKS_FAILED = 1,
	SOCKS_DENIED = 2,
	SOCKS_NETWORK_UNREACHABLE = 3,
	SOCKS_HOST_UNREACHABLE = 4,
	SOCKS_REFUSED = 5,
	SOCKS_EXPIRED = 6,
	SOCKS_NO_COMMAND = 7,
	SOCKS_NO_ADDRESS_TYPE = 8,
};

/* How a client says who it is: the one way that is accepted. */
enum socks_method { SOCKS_METHOD_NONE = 0, SOCKS_METHOD_PASSWORD = 2 };

/* The greeting: how long it is (then comes SOCKS_GREETED, or SOCKS_GREETED_PASSWORD), 0 while it is not whole, -1 where
 * it is refused, and why, in a few words; then SOCKS_NOT_GREETED is sent and the connection ends. SOCKS 4 is refused,
 * too. */
#define SOCKS_GREETED "\5\0"
#define SOCKS_GREETED_PASSWORD "\5\2"
#define SOCKS_NOT_GREETED "\5\xff"
#define SOCKS_GREETED_SIZE 2
long socks_greeting_parse(const uint8_t *bytes, size_t length, enum socks_method method, const char **ret_why)
	must_check;

/* After SOCKS_GREETED_PASSWORD, a user and a password, at most 255 bytes each; they point into the bytes. The result as
 * before; then comes SOCKS_LOGGED_IN, or SOCKS_NOT_LOGGED_IN and the connection ends. */
#define SOCKS_LOGGED_IN "\1\0"
#define SOCKS_NOT_LOGGED_IN "\1\1"
#define SOCKS_LOGIN_SIZE 2
struct socks_login {
	const char *user, *password;
	size_t user_length, password_length;
};
long socks_login_parse(const uint8_t *bytes, size_t length, struct socks_login *ret_login, const char **ret_why)
	must_check;

/* The request: how long it is, 0 while it is not whole, or -reply (enum socks_reply), and why. */
long socks_request_parse(const uint8_t *bytes, size_t length, struct host *ret_host, const char **ret_why) must_check;

/* The reply; it names no address of the proxy. */
#define SOCKS_REPLY_SIZE 10
void socks_reply_write(enum socks_reply reply, uint8_t ret_bytes[SOCKS_REPLY_SIZE]);

/* SOCKS 5: see socks.h. */
#include "net/socks.h"

#include <string.h>

enum { COMMAND_CONNECT = 1 };
enum { TYPE_IPV4 = 1, TYPE_NAME = 3, TYPE_IPV6 = 4 };
enum { LOGIN_VERSION = 1 };

long socks_greeting_parse(const uint8_t *bytes, size_t length, enum socks_method method, const char **ret_why)
{
	if (!length)
		return 0;
	*ret_why = bytes[0] == 4 ? "SOCKS 4 is not spoken; SOCKS 5 is" : "this is not SOCKS 5";
	if (bytes[0] != SOCKS_VERSION)
		return -1;
	if (length < 2)
		return 0;
	size_t methods = bytes[1];
	*ret_why = method == SOCKS_METHOD_NONE ? "it does not offer to go without authentication" :
	                                         "it does not offer a user and a password";
	if (!methods)
		return -1;
	if (length < 2 + methods)
		return 0;
	return memchr(bytes + 2, method, methods) ? (long)(2 + methods) : -1;
}

long socks_login_parse(const uint8_t *bytes, size_t length, struct socks_login *ret_login, const char **ret_why)
{
	if (!length)
		return 0;
	*ret_why = "this is no user and password of SOCKS 5";
	if (bytes[0] != LOGIN_VERSION)
		return -1;
	if (length < 2)
		return 0;
	size_t user = bytes[1], password_at = 2 + user + 1;
	if (length < password_at)
		return 0;
	size_t password = bytes[password_at - 1];
	if (length < password_at + password)
		return 0;
	*ret_login = (struct socks_login){ .user = (const char *)bytes + 2,
		                           .password = (const char *)bytes + password_at,
		                           .user_length = user,
		                           .password_length = password };
	return (long)(password_at + password);
}

/* How long the address is that begins behind its type; 0 while that is not known, -1 for one that there is not. */
static long address_length(const uint8_t *bytes, size_t length)
{
	switch (bytes[3]) {
	case TYPE_IPV4:
		return 4;
	case TYPE_IPV6:
		return 16;
	case TYPE_NAME:
		return length > 4 ? 1 + bytes[4] : 0;
	default:
		return -1;
	}
}

static const char *read_host(const uint8_t *bytes, size_t length, struct host *ret_host)
{
	if (bytes[3] == TYPE_NAME)
		return host_parse((const char *)bytes + 5, length - 1, ret_host);
	struct host host = { .form = HOST_ADDRESS, .address.length = (uint8_t)length };
	memcpy(host.address.bytes, bytes + 4, length);
	address_text(&host.address, host.name);
	*ret_host = host;
	return NULL;
}

static int check_beginning(const uint8_t *bytes, size_t length, const char **ret_why)
{
	*ret_why = "this is not a request of SOCKS 5";
	if ((length > 0 && bytes[0] != SOCKS_VERSION) || (length > 2 && bytes[2] != 0))
		return -SOCKS_FAILED;
	*ret_why = "only CONNECT is served: no listening, no UDP";
	if (length > 1 && bytes[1] != COMMAND_CONNECT)
		return -SOCKS_NO_COMMAND;
	return 0;
}

long socks_request_parse(const uint8_t *bytes, size_t length, struct host *ret_host, const char **ret_why)
{
	struct host host;
	int rc = check_beginning(bytes, length, ret_why);
	if (rc < 0 || length < 4)
		return rc;
	long address = address_length(bytes, length);
	*ret_why = "there is no such type of address";
	if (address < 0)
		return -SOCKS_NO_ADDRESS_TYPE;
	size_t end = 4 + (size_t)address + 2;
	if (!address || length < end)
		return 0;
	*ret_why = read_host(bytes, (size_t)address, &host);
	if (*ret_why)
		return -SOCKS_FAILED;
	host.port = (uint16_t)(bytes[end - 2] << 8 | bytes[end - 1]);
	*ret_why = "there is no port 0";
	if (!host.port)
		return -SOCKS_FAILED;
	*ret_host = host;
	return (long)end;
}

void socks_reply_write(enum socks_reply reply, uint8_t ret_bytes[SOCKS_REPLY_SIZE])
{
	memset(ret_bytes, 0, SOCKS_REPLY_SIZE);
	ret_bytes[0] = SOCKS_VERSION;
	ret_bytes[1] = (uint8_t)reply;
	ret_bytes[3] = TYPE_IPV4;
}

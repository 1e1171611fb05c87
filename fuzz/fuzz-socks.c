/* Any bytes as a greeting, as a user and a password, and as a request: what is taken for one is whole, and names a host that can be judged. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "net/socks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void check_greeting(const uint8_t *data, size_t size, enum socks_method method)
{
	const char *why = NULL;
	long used = socks_greeting_parse(data, size, method, &why);
	must(used <= (long)size && used >= -1 && (used >= 0 || (why && *why)));
	if (used > 0)
		must(data[0] == 5 && used == 2 + data[1] && memchr(data + 2, method, data[1]) &&
		     socks_greeting_parse(data, (size_t)used - 1, method, &why) == 0);
}

static void check_login(const uint8_t *data, size_t size)
{
	struct socks_login login, again;
	const char *why = NULL;
	long used = socks_login_parse(data, size, &login, &why);
	must(used <= (long)size && used >= -1 && (used >= 0 || (why && *why)));
	if (used <= 0)
		return;
	must(login.user == (const char *)data + 2 && login.password == login.user + login.user_length + 1);
	must(login.user_length <= 255 && login.password_length <= 255);
	must((const uint8_t *)login.password + login.password_length == data + used);
	must(socks_login_parse(data, (size_t)used - 1, &again, &why) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct host host, again;
	const char *why = NULL;
	char text[HOST_TEXT_SIZE];
	check_greeting(data, size, SOCKS_METHOD_NONE);
	check_greeting(data, size, SOCKS_METHOD_PASSWORD);
	check_login(data, size);
	long used = socks_request_parse(data, size, &host, &why);
	must(used <= (long)size && used >= -8 && (used >= 0 || (why && *why)));
	if (used <= 0)
		return 0;
	must(used >= 8 && data[0] == 5 && data[1] == 1 && host.port && host.form != HOST_WILDCARD);
	must(socks_request_parse(data, (size_t)used - 1, &again, &why) == 0);
	/* It is the host that every other part would read in its text. */
	host_text(&host, text);
	must(!host_parse_port(text, strlen(text), &again));
	must(again.form == host.form && again.port == host.port && !strcmp(again.name, host.name));
	must(!memcmp(&again.address, &host.address, sizeof(host.address)));
	return 0;
}

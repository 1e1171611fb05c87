/* Any bytes as a greeting and as a request: what is taken for one is whole, and names a host that can be judged. */
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct host host, again;
	const char *why = NULL;
	char text[HOST_TEXT_SIZE];
	long used = socks_greeting_parse(data, size, &why);
	must(used <= (long)size && used >= -1 && (used >= 0 || (why && *why)));
	if (used > 0)
		must(data[0] == 5 && used == 2 + data[1] && socks_greeting_parse(data, (size_t)used - 1, &why) == 0);
	used = socks_request_parse(data, size, &host, &why);
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

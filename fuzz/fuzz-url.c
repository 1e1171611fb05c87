/* Any bytes as a URL: what is taken for one names a host that stands in it, right behind its scheme. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "net/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes = (const char *)data;
	struct host host, again;
	char text[HOST_TEXT_SIZE + 16];
	if (url_parse(bytes, size, &host))
		return 0;
	must(size > 7 && !strncasecmp(bytes, "http", 4) && host.port && host.form != HOST_WILDCARD);
	for (size_t i = 0; i < size; i++)
		must(bytes[i] > ' ' && bytes[i] < 0x7f && bytes[i] != '\\' && bytes[i] != '#');
	/* A name is there as it is, whatever the case; an address may be spelled in another way. */
	size_t at = bytes[4] == ':' ? 7 : 8;
	if (host.form == HOST_NAME)
		must(size - at >= strlen(host.name) && !strncasecmp(bytes + at, host.name, strlen(host.name)));
	/* Made of what was found it leads to the same place. */
	memcpy(text, "http://", 7);
	host_text(&host, text + 7);
	must(!url_parse(text, strlen(text), &again));
	must(again.port == host.port && !strcmp(again.name, host.name) && again.form == host.form);
	return 0;
}

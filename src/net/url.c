/* URLs: see url.h. */
#include "net/url.h"

#include <string.h>
#include <strings.h>

static const struct {
	const char *name;
	uint16_t port;
} schemes[] = {
	{ "http", 80 },
	{ "https", 443 },
};

/* What is wrong with one of the bytes, at any position. */
static const char *check_bytes(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		unsigned char byte = (unsigned char)text[i];
		if (byte >= 0x80)
			return "it is not ASCII; write such a name as xn--..., and percent-encode the rest";
		if (byte <= 0x20 || byte == 0x7f)
			return "it has a space or a control character in it; percent-encode it";
		if (byte == '\\')
			return "it has a backslash in it, which some programs take for a slash";
		if (byte == '#')
			return "it has a fragment; that is never sent, leave it out";
	}
	return NULL;
}

/* The scheme's port, and what is after the colon; NULL for a scheme that is not supported. */
static const char *read_scheme(const char *text, size_t length, uint16_t *ret_port)
{
	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
		size_t name = strlen(schemes[i].name);
		if (length > name && text[name] == ':' && !strncasecmp(text, schemes[i].name, name)) {
			*ret_port = schemes[i].port;
			return text + name + 1;
		}
	}
	return NULL;
}

const char *url_parse(const char *text, size_t length, struct host *ret_host)
{
	const char *why = check_bytes(text, length), *end = text + length;
	struct host host;
	uint16_t port;
	if (length > URL_LENGTH_MAX)
		return "it is longer than 8192 characters";
	if (why)
		return why;
	const char *at = read_scheme(text, length, &port);
	if (!at)
		return "only http:// and https:// are judged";
	if (end - at < 2 || at[0] != '/' || at[1] != '/')
		return "two slashes belong behind its scheme";
	at += 2;
	size_t authority = 0;
	while (at + authority < end && at[authority] != '/' && at[authority] != '?')
		authority++;
	if (!authority)
		return "it names no host";
	if (memchr(at, '@', authority))
		return "it has a user's name in it";
	/* Within brackets a colon is the address's own. */
	const char *bracket = memrchr(at, ']', authority), *name_end = bracket ? bracket : at;
	bool has_port = memchr(name_end, ':', (size_t)(at + authority - name_end));
	why = (has_port ? host_parse_port : host_parse)(at, authority, &host);
	if (why)
		return why;
	if (!has_port)
		host.port = port;
	*ret_host = host;
	return NULL;
}

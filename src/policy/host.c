/* The shape of hosts: see host.h. Where they may lead is judged elsewhere. */
#include "policy/host.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define NAME_LENGTH_MAX 253
#define LABEL_LENGTH_MAX 63
_Static_assert(HOST_NAME_SIZE > NAME_LENGTH_MAX + 2, "a name fits, and a star before it");

static const char malformed_address[] = "it ends in a number, and is no address of four decimal numbers";

/* Each of these means something in some place where a host is written. */
static const struct {
	char byte;
	const char *why;
} telling[] = {
	{ '\0', "it has a NUL in it" },
	{ ' ', "it has a space in it" },
	{ '@', "it has a user's name in it" },
	{ '%', "it is percent-encoded or names a zone" },
	{ '\\', "it has a backslash in it" },
	{ '/', "it has a slash in it" },
	{ '*', "a star is only allowed as the first label, as in *.example.com" },
	{ '[', "brackets are for IPv6 addresses" },
	{ ']', "brackets are for IPv6 addresses" },
	{ ':', "an IPv6 address belongs in brackets" },
};

static const char *why_not_byte(char byte)
{
	for (size_t i = 0; i < ARRAY_SIZE(telling); i++)
		if (telling[i].byte == byte)
			return telling[i].why;
	if ((unsigned char)byte >= 0x80)
		return "it is not ASCII; write such a name as xn--...";
	return (unsigned char)byte < 0x20 || byte == 0x7f ? "it has a control character in it" :
	       "it has a character in it that no host has";
}

static bool is_label_byte(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '-' || byte == '_';
}

static const char *check_name(const char *name, size_t length)
{
	size_t label = 0;
	char last = '.';
	for (size_t i = 0; i < length; i++)
		if (name[i] != '.' && !is_label_byte(name[i]))
			return why_not_byte(name[i]);
	if (!length)
		return "it is empty";
	if (length > NAME_LENGTH_MAX)
		return "it is longer than 253 characters";
	for (size_t i = 0; i <= length; i++) {
		char byte = name[i];
		bool is_end = i == length || byte == '.';
		if (is_end && !label)
			return "it has an empty label";
		if ((is_end && last == '-') || (byte == '-' && !label))
			return "a label begins or ends with a hyphen";
		label = is_end ? 0 : label + 1;
		if (label > LABEL_LENGTH_MAX)
			return "it has a label of more than 63 characters";
		last = byte;
	}
	return NULL;
}

/* Is it written as numbers? Resolvers have many spellings for addresses, and all end in a number. */
static bool is_address_like(const char *host, size_t length)
{
	const char *dot = memrchr(host, '.', length), *last = dot ? dot + 1 : host;
	return *last >= '0' && *last <= '9';
}

static const char *parse_address(const char *text, size_t length, const char *why, struct host *host)
{
	for (size_t i = 0; i < length; i++)
		if (!strchr("0123456789abcdef:.", text[i]) || !text[i])
			return is_label_byte(text[i]) ? why : why_not_byte(text[i]);
	if (!address_parse(text, length, &host->address))
		return why;
	host->form = HOST_ADDRESS;
	address_text(&host->address, host->name);
	return NULL;
}

/* `host->name` is the text so far, in lower case. */
static const char *parse_lowered(struct host *host, size_t length, bool may_be_wild)
{
	char text[HOST_NAME_SIZE];
	memcpy(text, host->name, length + 1);
	if (text[0] == '[') {
		if (text[length - 1] != ']' || length < 2 || !memchr(text, ':', length))
			return "what is in brackets is no IPv6 address";
		return parse_address(text + 1, length - 2, "what is in brackets is no IPv6 address", host);
	}
	if (length > 1 && text[length - 1] == '.')
		text[--length] = '\0';
	if (is_address_like(text, length))
		return parse_address(text, length, malformed_address, host);
	bool wild = may_be_wild && !strncmp(text, "*.", 2);
	host->form = wild ? HOST_WILDCARD : HOST_NAME;
	memcpy(host->name, text, length + 1);
	return check_name(text + 2 * wild, length - 2 * wild);
}

static const char *parse(const char *text, size_t length, bool may_be_wild, struct host *ret_host)
{
	struct host host = { 0 };
	if (!length)
		return "it is empty";
	if (length >= sizeof(host.name))
		return "it is longer than 253 characters";
	for (size_t i = 0; i < length; i++)
		host.name[i] = text_lower(text[i]);
	const char *why = parse_lowered(&host, length, may_be_wild);
	if (!why)
		*ret_host = host;
	return why;
}

static const char *parse_with_port(const char *text, size_t length, bool may_be_wild, struct host *ret_host)
{
	static const char missing[] = "a port from 1 to 65535 belongs after it, as in example.com:443";
	const char *colon = memrchr(text, ':', length);
	size_t digits = colon ? (size_t)(text + length - colon - 1) : 0;
	unsigned port = 0;
	struct host host;
	if (!digits || digits > 5 || colon[1] == '0')
		return missing;
	for (size_t i = 1; i <= digits; i++) {
		if (colon[i] < '0' || colon[i] > '9')
			return missing;
		port = port * 10 + (unsigned)(colon[i] - '0');
	}
	if (port > UINT16_MAX)
		return missing;
	const char *why = parse(text, (size_t)(colon - text), may_be_wild, &host);
	if (why)
		return why;
	host.port = (uint16_t)port;
	*ret_host = host;
	return NULL;
}

const char *host_parse(const char *text, size_t length, struct host *ret_host)
{
	return parse(text, length, false, ret_host);
}

const char *host_parse_port(const char *text, size_t length, struct host *ret_host)
{
	return parse_with_port(text, length, false, ret_host);
}

const char *host_parse_rule(const char *text, size_t length, struct host *ret_host)
{
	return parse_with_port(text, length, true, ret_host);
}

const char *host_parse_name_port(const char *text, size_t length, struct host *ret_host)
{
	struct host host;
	const char *why = host_parse_port(text, length, &host);
	if (!why && host.form == HOST_ADDRESS)
		return "it is an address, which is allowed by being listed itself";
	if (!why)
		*ret_host = host;
	return why;
}

bool host_is_group(const char *text)
{
	size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-_");
	return length && !text[length] && *text >= 'a' && *text <= 'z' && strcmp(text, "none") != 0 &&
	       strcmp(text, "all") != 0;
}

bool host_is_loopback(const struct host *host)
{
	static const char *const names[] = { "localhost", "127.0.0.1", "::1" };
	for (size_t i = 0; i < ARRAY_SIZE(names) && host->form != HOST_WILDCARD; i++)
		if (!strcmp(host->name, names[i]))
			return true;
	return false;
}

void host_text(const struct host *host, char ret_text[HOST_TEXT_SIZE])
{
	bool brackets = host->form == HOST_ADDRESS && host->address.length == 16;
	int length = snprintf(ret_text, HOST_TEXT_SIZE, "%s%s%s", brackets ? "[" : "", host->name, brackets ? "]" : "");
	if (host->port)
		snprintf(ret_text + length, HOST_TEXT_SIZE - (size_t)length, ":%u", host->port);
}

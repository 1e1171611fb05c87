/* What is sent on, read by someone who is not strict: lines end with any feed, names may have spaces around them. Even
 * to such a reader it must be one message, with one framing and one host. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static inline void must(bool holds)
{
	if (!holds)
		abort();
}

struct look {
	unsigned lines, hosts, lengths, encodings, connections, between;
};

static inline bool look_named(const char *line, size_t length, const char *name)
{
	while (length && (*line == ' ' || *line == '\t'))
		line++, length--;
	size_t size = strlen(name);
	if (length <= size || strncasecmp(line, name, size))
		return false;
	for (line += size, length -= size; length && (*line == ' ' || *line == '\t'); line++)
		length--;
	return length && *line == ':';
}

static inline struct look look_at(const char *text, size_t length)
{
	static const char *const between[] = { "keep-alive", "te", "trailer", "upgrade", "proxy-authorization",
	                                       "proxy-connection", "proxy-authenticate" };
	struct look look = { 0 };
	const char *end = text + length;
	must(length > 4 && !memcmp(end - 4, "\r\n\r\n", 4) && memmem(text, length, "\r\n\r\n", 4) == end - 4);
	must(!memchr(text, '\0', length));
	for (const char *line = text, *feed; line < end; line = feed + 1) {
		feed = memchr(line, '\n', (size_t)(end - line));
		must(feed > line && feed[-1] == '\r' && memchr(line, '\r', (size_t)(feed - line)) == feed - 1);
		must(*line != ' ' && *line != '\t');
		size_t size = (size_t)(feed - line) - 1;
		look.lines++;
		look.hosts += look_named(line, size, "host");
		look.lengths += look_named(line, size, "content-length");
		look.encodings += look_named(line, size, "transfer-encoding");
		look.connections += look_named(line, size, "connection");
		for (size_t i = 0; i < sizeof(between) / sizeof(between[0]); i++)
			look.between += look_named(line, size, between[i]);
	}
	return look;
}

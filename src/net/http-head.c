/* Heads: see http-head.h. */
#include "net/http-head.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

static const struct {
	const char *name;
	enum http_field kind;
} kinds[] = {
	{ "connection", HTTP_FIELD_CONNECTION },
	{ "content-length", HTTP_FIELD_LENGTH },
	{ "expect", HTTP_FIELD_EXPECT },
	{ "host", HTTP_FIELD_HOST },
	{ "http2-settings", HTTP_FIELD_HOP },
	{ "keep-alive", HTTP_FIELD_HOP },
	{ "te", HTTP_FIELD_HOP },
	{ "trailer", HTTP_FIELD_HOP },
	{ "transfer-encoding", HTTP_FIELD_ENCODING },
	{ "upgrade", HTTP_FIELD_HOP },
};

/* ---- words ------------------------------------------------------------------------------------------------------ */

static bool is_token_byte(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
	       (byte && strchr("!#$%&'*+-.^_`|~", byte));
}

bool http_is_token(struct http_span text)
{
	for (size_t i = 0; i < text.length; i++)
		if (!is_token_byte(text.at[i]))
			return false;
	return text.length > 0;
}

bool http_is_text_byte(char byte)
{
	return (unsigned char)byte >= 0x20 ? byte != 0x7f : byte == '\t';
}

bool http_is_word(struct http_span text, const char *word)
{
	return text.length == strlen(word) && !strncasecmp(text.at, word, text.length);
}

static bool is_space(char byte)
{
	return byte == ' ' || byte == '\t';
}

static struct http_span trimmed(const char *from, const char *end)
{
	while (from < end && is_space(*from))
		from++;
	while (from < end && is_space(end[-1]))
		end--;
	return (struct http_span){ from, (size_t)(end - from) };
}

/* Gateways hand fields to programs as variables, in which `-` and `_` are the same. */
static bool is_nearly(struct http_span text, const char *word)
{
	if (text.length != strlen(word))
		return false;
	for (size_t i = 0; i < text.length; i++)
		if ((text.at[i] == '_' ? '-' : text_lower(text.at[i])) != word[i])
			return false;
	return true;
}

enum http_field http_field_kind(struct http_span name)
{
	if (name.length > 6 && !strncasecmp(name.at, "proxy-", 6))
		return http_is_word(name, "proxy-authorization") ? HTTP_FIELD_AUTHORIZATION : HTTP_FIELD_HOP;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (is_nearly(name, kinds[i].name))
			return http_is_word(name, kinds[i].name) ? kinds[i].kind : HTTP_FIELD_AMBIGUOUS;
	return HTTP_FIELD_PLAIN;
}

/* ---- lines ------------------------------------------------------------------------------------------------------ */

int http_line_read(const char *bytes, size_t length, size_t *at, struct http_span *ret_line, const char **ret_why)
{
	const char *from = bytes + *at, *feed = memchr(from, '\n', length - *at);
	const char *end = feed ? feed : bytes + length;
	bool returns = end > from && end[-1] == '\r';
	*ret_why = "a line ends without a carriage return, or there is a control character in it";
	if (feed && !returns)
		return -400;
	end -= returns;
	for (const char *byte = from; byte < end; byte++)
		if (!http_is_text_byte(*byte))
			return -400;
	if (!feed)
		return 0;
	*ret_line = (struct http_span){ from, (size_t)(end - from) };
	*at = (size_t)(feed + 1 - bytes);
	return 1;
}

/* ---- what fields say -------------------------------------------------------------------------------------------- */

static int read_host(struct http_head *head, struct http_span value, const char **ret_why)
{
	*ret_why = "there is more than one Host";
	if (head->has_host)
		return -400;
	head->has_host = true;
	head->host = value;
	return 0;
}

/* Digits, once. A list of the same number twice is one to some, and the first of it to others. */
static int read_length(struct http_head *head, struct http_span value, const char **ret_why)
{
	uint64_t length = 0;
	*ret_why = "there is more than one Content-Length";
	if (head->has_length)
		return -400;
	*ret_why = "Content-Length is no decimal number, or too large";
	if (!value.length || value.length > 19)
		return -400;
	for (size_t i = 0; i < value.length; i++) {
		if (value.at[i] < '0' || value.at[i] > '9')
			return -400;
		length = length * 10 + (uint64_t)(value.at[i] - '0');
	}
	if (length > INT64_MAX)
		return -400;
	head->has_length = true;
	head->length = length;
	return 0;
}

static int read_encoding(struct http_head *head, struct http_span value, const char **ret_why)
{
	*ret_why = "there is more than one Transfer-Encoding";
	if (head->is_chunked)
		return -400;
	*ret_why = "only the transfer coding `chunked` is understood";
	if (!http_is_word(value, "chunked"))
		return -501;
	head->is_chunked = true;
	return 0;
}

static int read_expect(struct http_head *head, struct http_span value, const char **ret_why)
{
	*ret_why = "only 100-continue can be expected";
	if (head->expects_continue || !http_is_word(value, "100-continue"))
		return -417;
	head->expects_continue = true;
	return 0;
}

static int read_option(struct http_head *head, struct http_span option, const char **ret_why)
{
	struct http_fields *fields = &head->fields;
	if (http_is_word(option, "close")) {
		head->closes = true;
		return 0;
	}
	*ret_why = "Connection names what is no field, or one that is not its own";
	if (!http_is_token(option))
		return -400;
	enum http_field kind = http_field_kind(option);
	if (kind == HTTP_FIELD_HOP || kind == HTTP_FIELD_AUTHORIZATION)
		return 0;
	if (kind != HTTP_FIELD_PLAIN || fields->named_count == HTTP_NAMED_MAX)
		return -400;
	fields->named[fields->named_count++] = option;
	return 0;
}

static int read_connection(struct http_head *head, struct http_span value, const char **ret_why)
{
	const char *end = value.at + value.length;
	for (const char *from = value.at, *comma; from < end; from = comma + 1) {
		comma = memchr(from, ',', (size_t)(end - from));
		if (!comma)
			comma = end;
		struct http_span option = trimmed(from, comma);
		int rc = option.length ? read_option(head, option, ret_why) : 0;
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* Whether it is needed, and what it must be, is not known here. */
static int read_authorization(struct http_head *head, struct http_span value, const char **ret_why)
{
	(void)ret_why;
	head->authorization = value;
	head->authorization_count++;
	return 0;
}

static int refuse_ambiguous(struct http_head *head, struct http_span value, const char **ret_why)
{
	(void)head;
	(void)value;
	*ret_why = "a field has `_` in its name where one that matters has `-`";
	return -400;
}

static int (*const readers[])(struct http_head *, struct http_span, const char **) = {
	[HTTP_FIELD_CONNECTION] = read_connection, [HTTP_FIELD_HOST] = read_host,
	[HTTP_FIELD_LENGTH] = read_length,         [HTTP_FIELD_ENCODING] = read_encoding,
	[HTTP_FIELD_EXPECT] = read_expect,         [HTTP_FIELD_AUTHORIZATION] = read_authorization,
	[HTTP_FIELD_AMBIGUOUS] = refuse_ambiguous,
};

static struct http_span name_of(struct http_span line)
{
	const char *colon = memchr(line.at, ':', line.length);
	return (struct http_span){ line.at, colon ? (size_t)(colon - line.at) : 0 };
}

static int read_field(struct http_head *head, struct http_span line, const char **ret_why)
{
	struct http_span name = name_of(line);
	*ret_why = is_space(*line.at) ? "a line begins with a space, as if it went on with the one before" :
	                                "a line is no field: a name without spaces, a colon, a value";
	if (!http_is_token(name))
		return -400;
	int (*reader)(struct http_head *, struct http_span, const char **) = readers[http_field_kind(name)];
	return reader ? reader(head, trimmed(name.at + name.length + 1, line.at + line.length), ret_why) : 0;
}

long http_head_read(const char *bytes, size_t length, size_t at, struct http_head *ret_head, const char **ret_why)
{
	struct http_head head = { .fields.lines = { bytes + at, 0 } };
	struct http_span line;
	for (unsigned count = 0;; count++) {
		int rc = http_line_read(bytes, length, &at, &line, ret_why);
		if (rc <= 0)
			return rc;
		if (!line.length)
			break;
		*ret_why = "there are more than 200 fields";
		if (count == HTTP_FIELDS_MAX)
			return -431;
		rc = read_field(&head, line, ret_why);
		if (rc < 0)
			return rc;
	}
	*ret_why = "there are both Content-Length and Transfer-Encoding";
	if (head.is_chunked && head.has_length)
		return -400;
	head.fields.lines.length = (size_t)(line.at - head.fields.lines.at);
	*ret_head = head;
	return (long)at;
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

size_t http_put(char *buffer, const char *bytes, size_t length)
{
	memcpy(buffer, bytes, length);
	return length;
}

static bool is_sent_on(const struct http_fields *fields, struct http_span name)
{
	enum http_field kind = http_field_kind(name);
	for (size_t i = 0; i < fields->named_count; i++)
		if (fields->named[i].length == name.length && !strncasecmp(fields->named[i].at, name.at, name.length))
			return false;
	return kind == HTTP_FIELD_PLAIN || kind == HTTP_FIELD_EXPECT;
}

size_t http_fields_write(const struct http_fields *fields, char *buffer)
{
	const char *from = fields->lines.at, *end = from + fields->lines.length, *feed;
	size_t used = 0;
	for (; from < end; from = feed + 1) {
		feed = memchr(from, '\n', (size_t)(end - from));
		struct http_span line = { from, (size_t)(feed + 1 - from) };
		if (is_sent_on(fields, name_of(line)))
			used += http_put(buffer + used, line.at, line.length);
	}
	return used;
}

size_t http_framing_write(bool has_length, uint64_t length, bool is_chunked, bool keep_alive, char *buffer)
{
	static const char chunked[] = "Transfer-Encoding: chunked\r\n", close[] = "Connection: close\r\n";
	size_t used = 0;
	if (has_length)
		used = (size_t)sprintf(buffer, "Content-Length: %llu\r\n", (unsigned long long)length);
	if (is_chunked)
		used += http_put(buffer + used, chunked, sizeof(chunked) - 1);
	if (!keep_alive)
		used += http_put(buffer + used, close, sizeof(close) - 1);
	return used + http_put(buffer + used, "\r\n", 2);
}

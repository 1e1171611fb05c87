/* What the heads of requests and responses have in common: lines, fields, framing. For the rest of HTTP (http.h). */
#pragma once
#include "net/http.h"

enum http_field {
	HTTP_FIELD_PLAIN,               /* is sent on */
	HTTP_FIELD_HOP,                 /* between two neighbours only (RFC 9110, 7.6.1) */
	HTTP_FIELD_AUTHORIZATION,       /* Proxy-Authorization: HOP as well */
	HTTP_FIELD_CONNECTION,
	HTTP_FIELD_HOST,
	HTTP_FIELD_LENGTH,
	HTTP_FIELD_ENCODING,
	HTTP_FIELD_EXPECT,
	HTTP_FIELD_AMBIGUOUS,           /* one of those above to some readers: with `_` for `-` */
};

/* Does it decide where a message goes or ends? */
enum http_field http_field_kind(struct http_span name);

bool http_is_token(struct http_span text);
/* Visible characters, spaces, tabs, and what is not ASCII. */
bool http_is_text_byte(char byte);
bool http_is_word(struct http_span text, const char *word);     /* whatever the case */

/* The line at `*at`, which then is behind its end: 1. 0: it has not ended. -400: it cannot be one. */
int http_line_read(const char *bytes, size_t length, size_t *at, struct http_span *ret_line,
                   const char **ret_why) must_check;

struct http_head {
	struct http_fields fields;
	bool has_host, has_length, is_chunked, closes, expects_continue;
	struct http_span host;
	struct http_span authorization; /* of the last Proxy-Authorization */
	unsigned authorization_count;
	uint64_t length;
};

/* All lines from `at` on up to the empty one: what is behind that, 0 or -status. */
long http_head_read(const char *bytes, size_t length, size_t at, struct http_head *ret_head,
                    const char **ret_why) must_check;

/* The lines that are sent on, as they came. */
size_t http_fields_write(const struct http_fields *fields, char *buffer);
/* What tells the body and the end of the connection, and the empty line. */
size_t http_framing_write(bool has_length, uint64_t length, bool is_chunked, bool keep_alive, char *buffer);
size_t http_put(char *buffer, const char *bytes, size_t length);

/* HTTP/1 as a proxy reads it and sends it on (RFC 9110, RFC 9112). Data in, data out; every byte comes from someone
 * else. Strict: a message that two readers could cut in two ways is refused, so that nobody behind the proxy sees a
 * request that was not judged. What is sent on is written anew: one host, one framing, nothing that was meant for the
 * proxy.
 *
 * Heads are parsed from their first byte on each time; nothing can change until another line has ended, so the caller
 * asks again once there is another '\n'. How long a head may become is the caller's to say (431). All spans point into
 * the bytes that were parsed. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "policy/host.h"

#define HTTP_FIELDS_MAX 200             /* more in one head: 431 */
#define HTTP_TARGET_MAX 8192            /* a longer one: 414 */
#define HTTP_NAMED_MAX 16               /* fields that Connection names; more: 400 */
#define HTTP_TRAILER_MAX 8192           /* bytes behind the last chunk */

struct http_span {
	const char *at;
	size_t length;
};

enum http_method { HTTP_CONNECT, HTTP_HEAD, HTTP_OTHER };

enum http_body {
	HTTP_BODY_NONE,
	HTTP_BODY_LENGTH,               /* so many bytes */
	HTTP_BODY_CHUNKED,              /* http_chunk_step() finds the end */
	HTTP_BODY_UNTIL_CLOSE,          /* of responses only */
};

/* The lines of a head behind the first, and what was understood of them. */
struct http_fields {
	struct http_span lines;
	struct http_span named[HTTP_NAMED_MAX];         /* by Connection: not sent on */
	size_t named_count;
};

struct http_request {
	enum http_method method;
	struct http_span method_text;
	struct host host;               /* with its port: 80 where an absolute form names none */
	struct http_span path;          /* as it came: may be empty, or begin with `?`; of CONNECT empty */
	unsigned minor;                 /* of the version: 0 or 1 */
	enum http_body body;
	uint64_t length;                /* of HTTP_BODY_LENGTH */
	bool keep_alive;                /* may another request follow on this connection? */
	bool expects_continue;          /* the body may come only after a 100 */
	struct http_span authorization; /* of Proxy-Authorization; empty where there is not exactly one */
	struct http_fields fields;
};

struct http_response {
	unsigned status, minor;
	struct http_span reason;
	enum http_body body;
	bool has_length;                /* a length was given, also where there is no body: the answer to HEAD, 304 */
	uint64_t length;
	bool keep_alive;                /* may another request follow on this connection? */
	bool is_interim;                /* 1xx: another head follows; not for HTTP/1.0 clients */
	struct http_fields fields;
};

/* How long the head is; what is behind it is its body or the next request. 0: it is not whole, and what is there may
 * still become one. Otherwise -status to answer with (400, 405, 414, 417, 431, 501, 505), and why, in a few words. */
long http_request_parse(const char *bytes, size_t length, struct http_request *ret_request,
                        const char **ret_why) must_check;

/* The same for what a server sent to `request`; every fault is -502. */
long http_response_parse(const char *bytes, size_t length, const struct http_request *request,
                         struct http_response *ret_response, const char **ret_why) must_check;

/* The head to send on, of a request in origin form. `keep_alive` false adds "Connection: close". How long it is; the
 * buffer has HTTP_HEAD_EXTRA more bytes than the head that was parsed. Not for CONNECT. */
#define HTTP_HEAD_EXTRA (HOST_TEXT_SIZE + 128)
size_t http_request_write(const struct http_request *request, bool keep_alive, char *buffer);
size_t http_response_write(const struct http_response *response, bool keep_alive, char *buffer);

/* What the proxy itself answers to CONNECT when it is connected. */
#define HTTP_CONNECTED "HTTP/1.1 200 Connection established\r\n\r\n"

/* What it answers otherwise: `why` as plain text, closing the connection; of a HEAD without the text. Control
 * characters in `why` become spaces; 407 asks for a user and a password. How long it is; it always fits. */
#define HTTP_REFUSAL_SIZE 1024
size_t http_refusal_write(unsigned status, const char *why, bool is_head, char buffer[HTTP_REFUSAL_SIZE]);

/* ---- chunks ----------------------------------------------------------------------------------------------------- */

/* The position in a chunked body. All zero at its beginning. */
struct http_chunk {
	uint8_t state;
	uint8_t digits;                 /* of a size, so far */
	uint8_t name_length;            /* of a trailer's name */
	char name[30];                  /* its beginning, in lower case */
	uint16_t trailer;               /* bytes of trailers so far */
	uint64_t left;                  /* of a chunk */
};

/* The next bytes of the body. `ret_used` of them belong to it and can be sent on as they are; `ret_done`: the body ends
 * there. 0, or -1 with a reason: then nothing of these bytes may be sent on, and both connections end. A chunk has no
 * extensions, its size at most 16 digits and 2^63 - 1; trailers are fields that change nothing about the message. */
int http_chunk_step(struct http_chunk *chunk, const char *bytes, size_t length, size_t *ret_used, bool *ret_done,
                    const char **ret_why) must_check;
/* The same, as far as to the end of the first bytes that are content: `ret_content` of them, the last of `ret_used`.
 * Bytes that are sent on before a later call fails are a body that was cut short. */
int http_chunk_content(struct http_chunk *chunk, const char *bytes, size_t length, size_t *ret_used,
                       size_t *ret_content, bool *ret_done, const char **ret_why) must_check;

/* Requests as programs send them, and as those do who want two readers to see two requests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net/http.h"

#define GET "GET http://a.test/x HTTP/1.1\r\n"
#define POST "POST http://a.test/x HTTP/1.1\r\nHost: a.test\r\n"
#define HOST "Host: a.test\r\n"
#define END "\r\n"

/* What is accepted, and what is sent on; of CONNECT only the host. */
static const struct {
	const char *what, *text, *host, *written;
	enum http_body body;
	uint64_t length;
	bool keep_alive;
} accepted[] = {
	{ "plain", GET HOST END, "a.test:80", "GET /x HTTP/1.1\r\n" HOST END, HTTP_BODY_NONE, 0, true },
	{ "what lies behind is not looked at", GET HOST END "GET / HTTP/0.9\n\n", "a.test:80",
	  "GET /x HTTP/1.1\r\n" HOST END, HTTP_BODY_NONE, 0, true },
	{ "a port", "GET http://a.test:8080/ HTTP/1.1\r\nHost: a.test:8080\r\n" END, "a.test:8080",
	  "GET / HTTP/1.1\r\nHost: a.test:8080\r\n" END, HTTP_BODY_NONE, 0, true },
	{ "the port that is meant anyway", "GET http://a.test:80/ HTTP/1.1\r\n" HOST END, "a.test:80",
	  "GET / HTTP/1.1\r\n" HOST END, HTTP_BODY_NONE, 0, true },
	{ "the same host in other letters", "GET HTTP://A.Test./ HTTP/1.1\r\nhOST:\t A.TEST \r\n" END, "a.test:80",
	  "GET / HTTP/1.1\r\n" HOST END, HTTP_BODY_NONE, 0, true },
	{ "no path", "GET http://a.test HTTP/1.1\r\n" HOST END, "a.test:80", "GET / HTTP/1.1\r\n" HOST END,
	  HTTP_BODY_NONE, 0, true },
	{ "a question and no path", "GET http://a.test?q HTTP/1.1\r\n" HOST END, "a.test:80",
	  "GET /?q HTTP/1.1\r\n" HOST END, HTTP_BODY_NONE, 0, true },
	{ "a path that looks like a host", "GET http://a.test//b@c:80/ HTTP/1.1\r\n" HOST END, "a.test:80",
	  "GET //b@c:80/ HTTP/1.1\r\n" HOST END, HTTP_BODY_NONE, 0, true },
	{ "of the whole server", "OPTIONS http://a.test HTTP/1.1\r\n" HOST END, "a.test:80",
	  "OPTIONS * HTTP/1.1\r\n" HOST END, HTTP_BODY_NONE, 0, true },
	{ "of IPv6", "GET http://[2001:DB8::1]/ HTTP/1.1\r\nHost: [2001:db8:0::1]\r\n" END, "[2001:db8::1]:80",
	  "GET / HTTP/1.1\r\nHost: [2001:db8::1]\r\n" END, HTTP_BODY_NONE, 0, true },
	{ "of IPv4", "GET http://192.0.2.1:81/ HTTP/1.1\r\nHost: 192.0.2.1:81\r\n" END, "192.0.2.1:81",
	  "GET / HTTP/1.1\r\nHost: 192.0.2.1:81\r\n" END, HTTP_BODY_NONE, 0, true },
	{ "HTTP/1.0", "GET http://a.test/ HTTP/1.0\r\n" END, "a.test:80",
	  "GET / HTTP/1.0\r\n" HOST "Connection: close\r\n" END, HTTP_BODY_NONE, 0, false },
	{ "HTTP/1.0 that wants to stay", "GET http://a.test/ HTTP/1.0\r\nConnection: keep-alive\r\n" END, "a.test:80",
	  "GET / HTTP/1.0\r\n" HOST "Connection: close\r\n" END, HTTP_BODY_NONE, 0, false },
	{ "that wants to go", GET HOST "Connection: close\r\n" END, "a.test:80",
	  "GET /x HTTP/1.1\r\n" HOST "Connection: close\r\n" END, HTTP_BODY_NONE, 0, false },
	{ "a body", POST "Content-Length: 0042\r\nA: b\r\n" END, "a.test:80",
	  "POST /x HTTP/1.1\r\n" HOST "A: b\r\nContent-Length: 42\r\n" END, HTTP_BODY_LENGTH, 42, true },
	{ "an empty body", POST "Content-Length: 0\r\n" END, "a.test:80",
	  "POST /x HTTP/1.1\r\n" HOST "Content-Length: 0\r\n" END, HTTP_BODY_LENGTH, 0, true },
	{ "the longest body", POST "Content-Length: 9223372036854775807\r\n" END, "a.test:80",
	  "POST /x HTTP/1.1\r\n" HOST "Content-Length: 9223372036854775807\r\n" END, HTTP_BODY_LENGTH, INT64_MAX,
	  true },
	{ "chunks", POST "Transfer-Encoding: Chunked \r\n" END, "a.test:80",
	  "POST /x HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n" END, HTTP_BODY_CHUNKED, 0, true },
	{ "that waits", POST "Expect: 100-Continue\r\nContent-Length: 1\r\n" END, "a.test:80",
	  "POST /x HTTP/1.1\r\n" HOST "Expect: 100-Continue\r\nContent-Length: 1\r\n" END, HTTP_BODY_LENGTH, 1, true },
	{ "what is between neighbours",
	  GET HOST "Connection: Upgrade, x-y,, keep-alive\r\nUpgrade: h2c\r\nHTTP2-Settings: a\r\nX-Y: 1\r\n"
	           "X-Z: 2\r\nProxy-Authorization: Basic eA==\r\nProxy-Connection: keep-alive\r\nTE: "
	           "trailers\r\nTrailer: X\r\nKeep-Alive: 5\r\n" END,
	  "a.test:80", "GET /x HTTP/1.1\r\n" HOST "X-Z: 2\r\n" END, HTTP_BODY_NONE, 0, true },
	{ "any bytes in a value", GET HOST "A:\xc3\xa4\xff \t!\r\nB:\r\n" END, "a.test:80",
	  "GET /x HTTP/1.1\r\n" HOST "A:\xc3\xa4\xff \t!\r\nB:\r\n" END, HTTP_BODY_NONE, 0, true },
	{ "names that are nearly others", GET HOST "Hos: 1\r\nT: 2\r\nProxy: 3\r\nAZaz09!-_: 4\r\n" END, "a.test:80",
	  "GET /x HTTP/1.1\r\n" HOST "Hos: 1\r\nT: 2\r\nProxy: 3\r\nAZaz09!-_: 4\r\n" END, HTTP_BODY_NONE, 0, true },
	{ "another method", "M-SEARCH http://a.test/x HTTP/1.1\r\n" HOST END, "a.test:80",
	  "M-SEARCH /x HTTP/1.1\r\n" HOST END, HTTP_BODY_NONE, 0, true },
	{ "CONNECT", "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n" END, "a.test:443", NULL, HTTP_BODY_NONE, 0,
	  true },
	{ "CONNECT without a port in Host", "CONNECT A.test:443 HTTP/1.1\r\n" HOST END, "a.test:443", NULL,
	  HTTP_BODY_NONE, 0, true },
	{ "CONNECT by HTTP/1.0", "CONNECT a.test:443 HTTP/1.0\r\n" END, "a.test:443", NULL, HTTP_BODY_NONE, 0, false },
	{ "CONNECT with no body, and says so", "CONNECT a.test:443 HTTP/1.1\r\nContent-Length: 0\r\n" HOST END,
	  "a.test:443", NULL, HTTP_BODY_NONE, 0, true },
	{ "CONNECT to IPv6", "CONNECT [::1]:22 HTTP/1.1\r\nHost: [::1]:22\r\n" END, "[::1]:22", NULL, HTTP_BODY_NONE, 0,
	  true },
};

#define BAD(what, status, text) { what, text, sizeof(text) - 1, -(status) }
static const struct {
	const char *what, *text;
	size_t length;
	long verdict;
} refused[] = {
	/* The first line. */
	BAD("an empty line first", 400, END GET HOST END),
	BAD("HTTP/0.9", 400, "GET http://a.test/\r\n"),
	BAD("a version of 0.9", 505, "GET http://a.test/ HTTP/0.9\r\n" END),
	BAD("HTTP/2", 505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
	BAD("HTTP/1.2", 505, "GET http://a.test/ HTTP/1.2\r\n" HOST END),
	BAD("a version of many digits", 400, "GET http://a.test/ HTTP/1.10\r\n" HOST END),
	BAD("no target", 400, "GET HTTP/1.1\r\n" HOST END),
	BAD("a word alone", 400, "GET\r\n" HOST END),
	BAD("another protocol", 400, "GET http://a.test/ XTTP/1.1\r\n" HOST END),
	BAD("a version of letters", 400, "GET http://a.test/ HTTP/x.1\r\n" HOST END),
	BAD("a minor version of letters", 400, "GET http://a.test/ HTTP/1.x\r\n" HOST END),
	BAD("a version without a dot", 400, "GET http://a.test/ HTTP/1/1\r\n" HOST END),
	BAD("HTTP/9.9", 505, "GET http://a.test/ HTTP/9.9\r\n" HOST END),
	BAD("a version in other letters", 400, "GET http://a.test/ http/1.1\r\n" HOST END),
	BAD("TLS", 400, "\x16\x03\x01\x02\0\x01\0"),
	BAD("two spaces", 400, "GET  http://a.test/ HTTP/1.1\r\n" HOST END),
	BAD("two spaces before the version", 400, "GET http://a.test/  HTTP/1.1\r\n" HOST END),
	BAD("a space behind the version", 400, "GET http://a.test/ HTTP/1.1 \r\n" HOST END),
	BAD("a space before the method", 400, " GET http://a.test/ HTTP/1.1\r\n" HOST END),
	BAD("tabs", 400, "GET\thttp://a.test/\tHTTP/1.1\r\n" HOST END),
	BAD("a space in the path", 400, "GET http://a.test/a b HTTP/1.1\r\n" HOST END),
	BAD("a method that is no word", 400, "G(T http://a.test/ HTTP/1.1\r\n" HOST END),
	BAD("TRACE", 405, "TRACE http://a.test/ HTTP/1.1\r\n" HOST END),
	BAD("connect", 405, "connect a.test:443 HTTP/1.1\r\n" HOST END),
	BAD("head", 405, "head http://a.test/ HTTP/1.1\r\n" HOST END),
	BAD("origin form", 400, "GET / HTTP/1.1\r\n" HOST END),
	BAD("asterisk form", 400, "OPTIONS * HTTP/1.1\r\n" HOST END),
	BAD("authority form", 400, "GET a.test:80 HTTP/1.1\r\n" HOST END),
	BAD("https", 400, "GET https://a.test/ HTTP/1.1\r\n" HOST END),
	BAD("https at the port of http", 400, "GET https://a.test:80/ HTTP/1.1\r\n" HOST END),
	BAD("ftp", 400, "GET ftp://a.test/ HTTP/1.1\r\n" HOST END),
	BAD("no slashes", 400, "GET http:a.test/ HTTP/1.1\r\n" HOST END),
	BAD("no host", 400, "GET http:///x HTTP/1.1\r\n" HOST END),
	BAD("a user", 400, "GET http://u@a.test/ HTTP/1.1\r\n" HOST END),
	BAD("a user and a password", 400, "GET http://a.test:80@b.test/ HTTP/1.1\r\n" HOST END),
	BAD("a user, and no Host to compare with", 400, "GET http://u@a.test/ HTTP/1.0\r\n" END),
	BAD("a number, and no Host to compare with", 400, "GET http://2130706433/ HTTP/1.0\r\n" END),
	BAD("a fragment", 400, "GET http://a.test/#b HTTP/1.1\r\n" HOST END),
	BAD("a fragment behind the host", 400, "GET http://a.test#b HTTP/1.1\r\n" HOST END),
	BAD("a backslash", 400, "GET http://a.test\\b HTTP/1.1\r\n" HOST END),
	BAD("not ASCII", 400, "GET http://a.test/\xc3\xa4 HTTP/1.1\r\n" HOST END),
	BAD("a NUL", 400, "GET http://a.test/\0 HTTP/1.1\r\n" HOST END),
	/* Hosts that are read in more than one way. */
	BAD("an encoded host", 400, "GET http://a%2etest/ HTTP/1.1\r\n" HOST END),
	BAD("an encoded NUL", 400, "GET http://a.test%00.b/ HTTP/1.1\r\n" HOST END),
	BAD("a zone", 400, "GET http://[fe80::1%25lo]/ HTTP/1.1\r\n" HOST END),
	BAD("a bare zone", 400, "CONNECT [fe80::1%lo]:80 HTTP/1.1\r\n" HOST END),
	BAD("a number", 400, "GET http://2130706433/ HTTP/1.1\r\nHost: 2130706433\r\n" END),
	BAD("an octal address", 400, "GET http://0177.0.0.1/ HTTP/1.1\r\nHost: 0177.0.0.1\r\n" END),
	BAD("a hexadecimal address", 400, "GET http://0x7f.1/ HTTP/1.1\r\nHost: 0x7f.1\r\n" END),
	BAD("a short address", 400, "CONNECT 127.1:80 HTTP/1.1\r\nHost: 127.1:80\r\n" END),
	BAD("two dots at the end", 400, "GET http://a.test../ HTTP/1.1\r\n" HOST END),
	BAD("no ASCII name", 400, "GET http://\xc3\xa4.test/ HTTP/1.1\r\n" HOST END),
	BAD("IPv6 without brackets", 400, "CONNECT ::1:80 HTTP/1.1\r\n" HOST END),
	BAD("port 0", 400, "CONNECT a.test:0 HTTP/1.1\r\n" HOST END),
	BAD("port 65536", 400, "CONNECT a.test:65536 HTTP/1.1\r\n" HOST END),
	BAD("a huge port", 400, "CONNECT a.test:18446744073709551696 HTTP/1.1\r\n" HOST END),
	BAD("no port", 400, "CONNECT a.test HTTP/1.1\r\n" HOST END),
	BAD("an empty port", 400, "CONNECT a.test: HTTP/1.1\r\n" HOST END),
	BAD("an empty port of a URL", 400, "GET http://a.test:/ HTTP/1.1\r\n" HOST END),
	BAD("a signed port", 400, "GET http://a.test:+80/ HTTP/1.1\r\n" HOST END),
	BAD("CONNECT with a URL", 400, "CONNECT http://a.test:80 HTTP/1.1\r\n" HOST END),
	BAD("CONNECT with a path", 400, "CONNECT a.test:80/ HTTP/1.1\r\n" HOST END),
	/* Host. */
	BAD("no Host", 400, GET END),
	BAD("an empty Host", 400, GET "Host:\r\n" END),
	BAD("another Host", 400, GET "Host: b.test\r\n" END),
	BAD("another port", 400, GET "Host: a.test:81\r\n" END),
	BAD("the port left out", 400, "GET http://a.test:81/ HTTP/1.1\r\n" HOST END),
	BAD("two Hosts", 400, GET HOST HOST END),
	BAD("two Hosts that differ", 400, GET HOST "Host: b.test\r\n" END),
	BAD("a Host with a user", 400, GET "Host: x@a.test\r\n" END),
	BAD("a list of Hosts", 400, GET "Host: a.test, b.test\r\n" END),
	BAD("CONNECT with another Host", 400, "CONNECT a.test:443 HTTP/1.1\r\nHost: b.test:443\r\n" END),
	BAD("CONNECT with another port", 400, "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:80\r\n" END),
	BAD("another Host in HTTP/1.0", 400, "GET http://a.test/ HTTP/1.0\r\nHost: b.test\r\n" END),
	/* Lines. */
	BAD("a bare feed", 400, "GET http://a.test/ HTTP/1.1\nHost: a.test\n\n"),
	BAD("a bare feed at the end", 400, GET HOST "\n"),
	BAD("a bare feed in a value", 400, GET HOST "A: b\nContent-Length: 5\r\n" END),
	BAD("a bare return", 400, GET HOST "A: b\rContent-Length: 5\r\n" END),
	BAD("two returns", 400, GET HOST "A: b\r\r\n" END),
	BAD("a NUL in a value", 400, GET HOST "A: b\0c\r\n" END),
	BAD("a NUL in a name", 400, GET HOST "A\0: b\r\n" END),
	BAD("a control character", 400, GET HOST "A: \x0b\r\n" END),
	BAD("a DEL", 400, GET HOST "A: \x7f\r\n" END),
	BAD("a folded line", 400, GET HOST "A: b\r\n c\r\n" END),
	BAD("a line folded by a tab", 400, GET HOST "A: b\r\n\tc\r\n" END),
	BAD("a folded encoding", 501, POST "Transfer-Encoding:\r\n chunked\r\n" END),
	BAD("a folded first field", 400, GET " " HOST END),
	BAD("a space before the colon", 400, POST "Content-Length : 5\r\n" END),
	BAD("a tab before the colon", 400, POST "Transfer-Encoding\t: chunked\r\n" END),
	BAD("a space in a name", 400, GET HOST "A b: c\r\n" END),
	BAD("no colon", 400, GET HOST "Abc\r\n" END),
	BAD("no name", 400, GET HOST ": c\r\n" END),
	BAD("a name in quotes", 400, GET HOST "\"A\": c\r\n" END),
	BAD("a name that is not ASCII", 400, GET HOST "\xc3\xa4: c\r\n" END),
	/* Where the body ends. */
	BAD("CL.TE", 400, POST "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n" END "0\r\n\r\nG"),
	BAD("TE.CL", 400, POST "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n" END),
	BAD("CL 0 and TE", 400, POST "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n" END),
	BAD("TE twice", 400, POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n" END),
	BAD("TE and another", 400, POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n" END),
	BAD("another and TE", 501, POST "Transfer-Encoding: x\r\nTransfer-Encoding: chunked\r\n" END),
	BAD("xchunked", 501, POST "Transfer-Encoding: xchunked\r\n" END),
	BAD("chunked in quotes", 501, POST "Transfer-Encoding: \"chunked\"\r\n" END),
	BAD("chunked twice", 501, POST "Transfer-Encoding: chunked, chunked\r\n" END),
	BAD("chunked and a comma", 501, POST "Transfer-Encoding: chunked,\r\n" END),
	BAD("chunked and a parameter", 501, POST "Transfer-Encoding: chunked;a=b\r\n" END),
	BAD("chunked, not last", 501, POST "Transfer-Encoding: chunked, identity\r\n" END),
	BAD("gzip, chunked", 501, POST "Transfer-Encoding: gzip, chunked\r\n" END),
	BAD("identity", 501, POST "Transfer-Encoding: identity\r\n" END),
	BAD("an empty encoding", 501, POST "Transfer-Encoding:\r\n" END),
	BAD("chunked and a vertical tab", 400, POST "Transfer-Encoding: chunked\x0b\r\n" END),
	BAD("TE with an underscore", 400, POST "Transfer_Encoding: chunked\r\n" END),
	BAD("CL with an underscore", 400, POST "Content_Length: 5\r\n" END),
	BAD("TE in HTTP/1.0", 400, "POST http://a.test/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n" END),
	BAD("CL twice", 400, POST "Content-Length: 5\r\nContent-Length: 5\r\n" END),
	BAD("CL twice, differing", 400, POST "Content-Length: 5\r\ncontent-length: 6\r\n" END),
	BAD("a list of CL", 400, POST "Content-Length: 5, 5\r\n" END),
	BAD("+5", 400, POST "Content-Length: +5\r\n" END),
	BAD("-5", 400, POST "Content-Length: -5\r\n" END),
	BAD("5 5", 400, POST "Content-Length: 5 5\r\n" END),
	BAD("0x5", 400, POST "Content-Length: 0x5\r\n" END),
	BAD("5.0", 400, POST "Content-Length: 5.0\r\n" END),
	BAD("5_0", 400, POST "Content-Length: 5_0\r\n" END),
	BAD("an empty CL", 400, POST "Content-Length:\r\n" END),
	BAD("2^63", 400, POST "Content-Length: 9223372036854775808\r\n" END),
	BAD("2^64", 400, POST "Content-Length: 18446744073709551616\r\n" END),
	BAD("CONNECT with a body", 400, "CONNECT a.test:443 HTTP/1.1\r\nContent-Length: 5\r\n" HOST END),
	BAD("CONNECT with chunks", 400, "CONNECT a.test:443 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" HOST END),
	/* The rest. */
	BAD("another expectation", 417, POST "Expect: 200-ok\r\n" END),
	BAD("Connection names the length", 400, POST "Connection: Content-Length\r\nContent-Length: 5\r\n" END),
	BAD("Connection names the encoding", 400, POST "Connection: close, transfer-encoding\r\n" END),
	BAD("Connection names the host", 400, GET HOST "Connection: host\r\n" END),
	BAD("Connection names no field", 400, GET HOST "Connection: a b\r\n" END),
	BAD("Connection names too many", 400, GET HOST "Connection: a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q\r\n" END),
};

/* Of a copy, so that a read past its end is seen. */
static long parse(const char *bytes, size_t length, char **ret_copy, struct http_request *ret_request)
{
	const char *why = NULL;
	*ret_copy = malloc(length ? length : 1);
	assert_non_null(*ret_copy);
	memcpy(*ret_copy, bytes, length);
	long verdict = http_request_parse(*ret_copy, length, ret_request, &why);
	if (verdict < 0)
		assert_true(why && *why);
	return verdict;
}

static long verdict_of(const char *bytes, size_t length)
{
	struct http_request request;
	char *copy;
	long verdict = parse(bytes, length, &copy, &request);
	free(copy);
	return verdict;
}

static void sent_on(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(accepted); i++) {
		struct http_request request;
		char *copy, host[HOST_TEXT_SIZE], buffer[4096 + HTTP_HEAD_EXTRA];
		size_t length = (size_t)(strstr(accepted[i].text, "\r\n\r\n") + 4 - accepted[i].text);
		long verdict = parse(accepted[i].text, strlen(accepted[i].text), &copy, &request);
		if (verdict != (long)length)
			fail_msg("%s: %ld", accepted[i].what, verdict);
		host_text(&request.host, host);
		assert_string_equal(host, accepted[i].host);
		assert_int_equal(request.method == HTTP_CONNECT, !strncmp(accepted[i].text, "CONNECT", 7));
		assert_int_equal(request.body, accepted[i].body);
		assert_int_equal(request.length, accepted[i].length);
		assert_int_equal(request.keep_alive, accepted[i].keep_alive);
		assert_int_equal(request.expects_continue, strstr(accepted[i].text, "100-Continue") != NULL);
		if (accepted[i].written) {
			size_t used = http_request_write(&request, request.keep_alive, buffer);
			assert_true(used <= length + HTTP_HEAD_EXTRA);
			buffer[used] = '\0';
			assert_string_equal(buffer, accepted[i].written);
		}
		free(copy);
		/* Less of it is never more than a beginning. */
		for (size_t cut = 0; cut < length; cut++)
			if (verdict_of(accepted[i].text, cut) != 0)
				fail_msg("%s, cut to %zu bytes", accepted[i].what, cut);
	}
}

static void not_sent_on(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		long verdict = verdict_of(refused[i].text, refused[i].length);
		if (verdict != refused[i].verdict)
			fail_msg("%s: %ld", refused[i].what, verdict);
	}
}

static void head_is_told_from_others(void **state)
{
	(void)state;
	struct http_request request;
	char *copy;
	assert_true(parse("HEAD http://a.test/ HTTP/1.1\r\n" HOST END, 46, &copy, &request) > 0);
	assert_int_equal(request.method, HTTP_HEAD);
	free(copy);
}

static void bounds(void **state)
{
	(void)state;
	size_t room = 1 << 20;
	char *text = malloc(room);
	assert_non_null(text);
	for (int more = 0; more < 2; more++) {
		/* Fields. */
		size_t used = (size_t)sprintf(text, GET HOST);
		for (int i = 1; i < HTTP_FIELDS_MAX + more; i++)
			used += (size_t)sprintf(text + used, "a:\r\n");
		used += (size_t)sprintf(text + used, END);
		assert_int_equal(verdict_of(text, used), more ? -431 : (long)used);
		/* The target: without its host it is 14 bytes shorter. */
		used = (size_t)sprintf(text, "GET http://a.test/%0*d HTTP/1.1\r\n" HOST END,
		                       HTTP_TARGET_MAX - 14 + more, 0);
		assert_int_equal(verdict_of(text, used), more ? -414 : (long)used);
	}
	/* A megabyte that never ends is waited for; who reads it has a bound. */
	size_t used = (size_t)sprintf(text, GET HOST "A: ");
	memset(text + used, 'b', room - used);
	assert_int_equal(verdict_of(text, room), 0);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sent_on),
		cmocka_unit_test(not_sent_on),
		cmocka_unit_test(head_is_told_from_others),
		cmocka_unit_test(bounds),
	};
	return cmocka_run_group_tests_name("http-request", tests, NULL, NULL);
}

/* Any bytes as a request: what is taken for one names one host, and what is sent on is one request to every reader. */
#include <stdint.h>

#include "http-look.h"
#include "net/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct http_request *request, size_t head)
{
	static char buffer[(1 << 20) + HTTP_HEAD_EXTRA];
	must(request->host.port && request->host.form != HOST_WILDCARD && request->minor <= 1);
	must(request->length <= INT64_MAX && (request->body == HTTP_BODY_LENGTH || !request->length));
	if (request->method == HTTP_CONNECT) {
		must(request->body == HTTP_BODY_NONE);
		return;
	}
	for (int keep_alive = 0; keep_alive < 2; keep_alive++) {
		size_t length = http_request_write(request, keep_alive, buffer);
		must(length <= head + HTTP_HEAD_EXTRA);
		struct look look = look_at(buffer, length);
		must(look.hosts == 1 && look.between == 0 && look.connections == !keep_alive);
		must(look.lengths == (request->body == HTTP_BODY_LENGTH) &&
		     look.encodings == (request->body == HTTP_BODY_CHUNKED));
		const char *space = memchr(buffer, ' ', length);
		must(space && (space[1] == '/' || !memcmp(space, " * HTTP/1.", 10)));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct http_request request, other;
	const char *bytes = (const char *)data, *why = NULL;
	if (size > 1 << 20)
		return 0;
	long used = http_request_parse(bytes, size, &request, &why);
	must(used <= (long)size);
	must(used >= 0 || (why && *why && used <= -400 && used >= -505));
	if (used <= 0)
		return 0;
	check(&request, (size_t)used);
	/* What is meant for the proxy lies in the head. */
	if (request.authorization.length)
		must(request.authorization.at > bytes &&
		     request.authorization.at + request.authorization.length < bytes + used);
	/* Without its last byte it was not whole; without what is behind it, it is the same. */
	must(http_request_parse(bytes, (size_t)used - 1, &other, &why) == 0);
	must(http_request_parse(bytes, (size_t)used, &other, &why) == used && other.body == request.body);
	return 0;
}

/* Any bytes as a response, to each kind of request: what is sent on is one response to every reader. The first byte
 * says what was asked. */
#include <stdint.h>

#include "http-look.h"
#include "net/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char buffer[(1 << 20) + HTTP_HEAD_EXTRA];
	struct http_response response, other;
	const char *why = NULL;
	if (!size || size > 1 << 20)
		return 0;
	struct http_request request = { .method = *data & 1 ? HTTP_HEAD : HTTP_OTHER, .minor = *data >> 1 & 1 };
	const char *bytes = (const char *)data + 1;
	long used = http_response_parse(bytes, --size, &request, &response, &why);
	must(used <= (long)size && (used >= 0 || (used == -502 && why && *why)));
	if (used <= 0)
		return 0;
	must(response.status >= 100 && response.status <= 599 && response.length <= INT64_MAX);
	must(response.body == HTTP_BODY_NONE || (request.method != HTTP_HEAD && response.status >= 200));
	must(response.body != HTTP_BODY_UNTIL_CLOSE || !response.keep_alive);
	for (int keep_alive = 0; keep_alive < 2; keep_alive++) {
		size_t length = http_response_write(&response, keep_alive, buffer);
		must(length <= (size_t)used + HTTP_HEAD_EXTRA);
		struct look look = look_at(buffer, length);
		must(look.hosts == 0 && look.between == 0 && look.connections == (!keep_alive && !response.is_interim));
		must(look.lengths == response.has_length && look.encodings == (response.body == HTTP_BODY_CHUNKED));
	}
	must(http_response_parse(bytes, (size_t)used - 1, &request, &other, &why) == 0);
	must(http_response_parse(bytes, (size_t)used, &request, &other, &why) == used && other.body == response.body);
	return 0;
}

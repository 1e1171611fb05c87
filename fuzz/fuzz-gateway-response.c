/* Any bytes as what a service sends to the gateway, in any pieces: a byte that says what was asked and one for the
 * pieces, then the response. What comes into the sandbox is one response to every reader; the key is not in its fields
 * nor in its content without chunks; and the pieces make no difference. */
#include <stdint.h>

#include "gateway/response.h"
#include "http-look.h"

#define KEY "abcab"
#define SIZE_MAX_HERE (1 << 16)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct sink {
	char *bytes;
	size_t length, size;
};

static void emit(void *context, const char *bytes, size_t length)
{
	struct sink *sink = context;
	must(length <= sink->size - sink->length);
	memcpy(sink->bytes + sink->length, bytes, length);
	sink->length += length;
}

static void pass(const struct http_request *request, const char *bytes, size_t length, size_t piece, struct sink *sink,
                 bool *ret_whole)
{
	const char *why = NULL;
	struct response *response = response_new(request, KEY, strlen(KEY), 4096, emit, sink);
	must(response != NULL);
	int rc = 0;
	sink->length = 0;
	for (size_t at = 0; !rc && at < length; at += piece)
		rc = response_add(response, bytes + at, piece < length - at ? piece : length - at, &why);
	must(!rc || (why && *why));
	*ret_whole = !rc && !response_end(response, &why) && response_is_done(response);
	response_free(response);
}

/* The content that a client reads takes the place of what was sent. */
static void strip_chunks(const struct http_request *request, struct sink *sink, bool is_whole, size_t *ret_content)
{
	struct http_response response;
	struct http_chunk chunk = { 0 };
	const char *why = NULL;
	bool done = false;
	long end = http_response_parse(sink->bytes, sink->length, request, &response, &why);
	must(end > 0 && !response.is_interim);
	look_at(sink->bytes, (size_t)end);
	*ret_content = (size_t)end;
	if (response.body != HTTP_BODY_CHUNKED)
		return;
	size_t kept = (size_t)end;
	for (size_t at = kept, used, content; at < sink->length && !done; at += used) {
		must(!http_chunk_content(&chunk, sink->bytes + at, sink->length - at, &used, &content, &done, &why) &&
		     used);
		memmove(sink->bytes + kept, sink->bytes + at + used - content, content);
		kept += content;
	}
	must(done == is_whole);
	sink->length = kept;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2 || size > SIZE_MAX_HERE)
		return 0;
	struct http_request request = { .method = data[0] & 1 ? HTTP_HEAD : HTTP_OTHER, .minor = data[0] >> 1 & 1 };
	const char *bytes = (const char *)data + 2;
	size_t length = size - 2, content = 0, again = 0;
	struct sink sink = { malloc(16 * size + 8192), 0, 16 * size + 8192 },
		    whole = { malloc(16 * size + 8192), 0, 16 * size + 8192 };
	bool is_whole = false, other = false;
	must(sink.bytes && whole.bytes);
	pass(&request, bytes, length, data[1] + 1u, &sink, &is_whole);
	pass(&request, bytes, length, length + 1, &whole, &other);
	must(other == is_whole);
	if (sink.length) {
		strip_chunks(&request, &sink, is_whole, &content);
		must(!memmem(sink.bytes + content, sink.length - content, KEY, strlen(KEY)));
		must(!memmem(sink.bytes, content, KEY, strlen(KEY)));
	}
	if (is_whole) {
		strip_chunks(&request, &whole, is_whole, &again);
		must(whole.length == sink.length && !memcmp(whole.bytes, sink.bytes, sink.length));
	}
	free(sink.bytes);
	free(whole.bytes);
	return 0;
}

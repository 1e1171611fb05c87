/* Chunked bodies: see http.h. A state per place in the grammar; each takes one byte, but for the data of a chunk, which
 * is passed in one step. */
#include <string.h>

#include "base/text.h"
#include "net/http-head.h"

enum state {
	SIZE,                   /* hexadecimal digits */
	SIZE_FEED,
	DATA,
	DATA_RETURN,
	DATA_FEED,
	TRAILER,                /* the beginning of a line behind the last chunk */
	TRAILER_NAME,
	TRAILER_VALUE,
	TRAILER_FEED,
	END_FEED,
	DONE,
};

static const char malformed[] = "a chunk is malformed";

static int hex_value(char byte)
{
	byte = text_lower(byte);
	return byte >= '0' && byte <= '9' ? byte - '0' : byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

static const char *take_size(struct http_chunk *chunk, char byte)
{
	int digit = hex_value(byte);
	if (byte == '\r' && chunk->digits) {
		chunk->state = SIZE_FEED;
		return NULL;
	}
	if (digit < 0)
		return chunk->digits && byte == ';' ? "a chunk has an extension" : malformed;
	if (chunk->digits == 16 || chunk->left > INT64_MAX >> 4)
		return "a chunk is too large";
	chunk->digits++;
	chunk->left = chunk->left << 4 | (uint64_t)digit;
	return NULL;
}

static const char *take_name(struct http_chunk *chunk, char byte)
{
	struct http_span name = { chunk->name, chunk->name_length };
	if (byte != ':') {
		if (!http_is_token((struct http_span){ &byte, 1 }))
			return "a trailer is no field";
		/* None of the names that matter is as long as this. */
		if (chunk->name_length < sizeof(chunk->name))
			chunk->name[chunk->name_length++] = byte;
		return NULL;
	}
	if (!name.length || http_field_kind(name) != HTTP_FIELD_PLAIN)
		return "a trailer is no field, or one that belongs into the head";
	chunk->state = TRAILER_VALUE;
	return NULL;
}

static const char *take_trailer(struct http_chunk *chunk, char byte)
{
	if (++chunk->trailer > HTTP_TRAILER_MAX)
		return "the trailers are too long";
	if (chunk->state == TRAILER_VALUE) {
		if (byte == '\r')
			chunk->state = TRAILER_FEED;
		else if (!http_is_text_byte(byte))
			return "a trailer has a control character in it";
		return NULL;
	}
	if (chunk->state == TRAILER) {
		chunk->name_length = 0;
		chunk->state = byte == '\r' ? END_FEED : TRAILER_NAME;
		if (byte == '\r')
			return NULL;
	}
	return take_name(chunk, byte);
}

/* A byte that can be only this one. */
static const char *take_fixed(struct http_chunk *chunk, char byte)
{
	static const struct {
		char byte;
		enum state next;
	} fixed[] = {
		[DATA_RETURN] = { '\r', DATA_FEED }, [DATA_FEED] = { '\n', SIZE }, [TRAILER_FEED] = { '\n', TRAILER },
		[END_FEED] = { '\n', DONE }, [SIZE_FEED] = { '\n', DATA },
	};
	if (fixed[chunk->state].byte != byte)
		return malformed;
	bool is_last = chunk->state == SIZE_FEED && !chunk->left;
	chunk->state = is_last ? TRAILER : fixed[chunk->state].next;
	chunk->digits = 0;
	return NULL;
}

static const char *take(struct http_chunk *chunk, char byte)
{
	switch (chunk->state) {
	case SIZE:
		return take_size(chunk, byte);
	case TRAILER:
	case TRAILER_NAME:
	case TRAILER_VALUE:
		return take_trailer(chunk, byte);
	default:
		return take_fixed(chunk, byte);
	}
}

int http_chunk_content(struct http_chunk *chunk, const char *bytes, size_t length, size_t *ret_used,
                       size_t *ret_content, bool *ret_done, const char **ret_why)
{
	size_t at = 0, content = 0;
	while (at < length && chunk->state != DONE && !content) {
		if (chunk->state == DATA) {
			content = length - at < chunk->left ? length - at : (size_t)chunk->left;
			at += content;
			chunk->left -= content;
			if (!chunk->left)
				chunk->state = DATA_RETURN;
			continue;
		}
		*ret_why = take(chunk, bytes[at++]);
		if (*ret_why)
			return -1;
	}
	*ret_used = at;
	*ret_content = content;
	*ret_done = chunk->state == DONE;
	return 0;
}

int http_chunk_step(struct http_chunk *chunk, const char *bytes, size_t length, size_t *ret_used, bool *ret_done,
                    const char **ret_why)
{
	size_t at = 0, used = 0, content;
	bool done = chunk->state == DONE;
	for (; at < length && !done; at += used)
		if (http_chunk_content(chunk, bytes + at, length - at, &used, &content, &done, ret_why) < 0)
			return -1;
	*ret_used = at;
	*ret_done = done;
	return 0;
}

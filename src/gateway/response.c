/* See response.h. */
#include "gateway/response.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRAMING 32              /* around a chunk: its size, the end of its line, and the last chunk */

struct response {
	const struct http_request *request;
	const char *key;
	size_t key_length, head_max;
	response_emit *emit;
	void *context;
	char *head;                     /* what came before the end of the head was found */
	size_t head_length;
	bool has_head, is_done;
	unsigned status;
	enum http_body body;
	uint64_t left;                  /* of HTTP_BODY_LENGTH */
	struct http_chunk chunk;
	char *content;                  /* that was not passed on yet */
	size_t length;
	char *out;
};

struct response *response_new(const struct http_request *request, const char *key, size_t key_length, size_t head_max,
                              response_emit *emit, void *context)
{
	struct response *response = calloc(1, sizeof(*response));
	if (!response)
		return NULL;
	*response = (struct response){ .request = request, .key = key, .key_length = key_length, .head_max = head_max,
		                       .emit = emit, .context = context };
	response->head = malloc(head_max + RESPONSE_PIECE);
	response->content = malloc(key_length + RESPONSE_PIECE);
	response->out = malloc(key_length + RESPONSE_PIECE + FRAMING);
	if (!response->head || !response->content || !response->out) {
		response_free(response);
		return NULL;
	}
	return response;
}

void response_free(struct response *response)
{
	if (!response)
		return;
	free(response->head);
	free(response->content);
	free(response->out);
	free(response);
}

bool response_is_done(const struct response *response)
{
	return response->is_done;
}

unsigned response_status(const struct response *response)
{
	return response->status;
}

/* ---- the key ---------------------------------------------------------------------------------------------------- */

static void mask(const struct response *response, char *bytes, size_t length)
{
	char *end = bytes + length;
	size_t size = response->key_length;
	for (char *at = bytes; size && (at = memmem(at, (size_t)(end - at), response->key, size)); at += size)
		memset(at, '*', size);
}

/* How many bytes at the end may begin a key. */
static size_t may_begin(const struct response *response, const char *bytes, size_t length)
{
	size_t tail = response->key_length ? response->key_length - 1 : 0;
	for (tail = length < tail ? length : tail; tail; tail--)
		if (!memcmp(bytes + length - tail, response->key, tail))
			return tail;
	return 0;
}

/* ---- content ---------------------------------------------------------------------------------------------------- */

/* What cannot begin a key any more; at the end of the body all of it, and the last chunk. */
static void pass_on(struct response *response)
{
	bool is_chunked = response->body == HTTP_BODY_CHUNKED;
	char *out = response->out;
	size_t used = 0;
	mask(response, response->content, response->length);
	size_t tail = response->is_done ? 0 : may_begin(response, response->content, response->length);
	size_t ready = response->length - tail;
	if (is_chunked && ready)
		used += (size_t)sprintf(out, "%zx\r\n", ready);
	memcpy(out + used, response->content, ready);
	used += ready;
	if (is_chunked && ready)
		used += (size_t)sprintf(out + used, "\r\n");
	if (is_chunked && response->is_done)
		used += (size_t)sprintf(out + used, "0\r\n\r\n");
	if (used)
		response->emit(response->context, out, used);
	memmove(response->content, response->content + ready, tail);
	response->length = tail;
}

/* At most a piece: as many bytes of it as belong to the body. */
static int take_piece(struct response *response, const char *bytes, size_t length, const char **ret_why)
{
	size_t content = length, used = 0;
	if (response->body == HTTP_BODY_LENGTH) {
		content = length < response->left ? length : (size_t)response->left;
		response->left -= content;
		response->is_done = !response->left;
	}
	if (response->body != HTTP_BODY_CHUNKED) {
		memcpy(response->content + response->length, bytes, content);
		response->length += content;
	}
	for (size_t at = 0; response->body == HTTP_BODY_CHUNKED && at < length && !response->is_done; at += used) {
		if (http_chunk_content(&response->chunk, bytes + at, length - at, &used, &content, &response->is_done,
		                       ret_why) < 0)
			return -1;
		memcpy(response->content + response->length, bytes + at + used - content, content);
		response->length += content;
	}
	pass_on(response);
	return 0;
}

static int take_body(struct response *response, const char *bytes, size_t length, const char **ret_why)
{
	for (size_t piece; length && !response->is_done; bytes += piece, length -= piece) {
		piece = length < RESPONSE_PIECE ? length : RESPONSE_PIECE;
		if (take_piece(response, bytes, piece, ret_why) < 0)
			return -1;
	}
	return 0;
}

/* ---- the head --------------------------------------------------------------------------------------------------- */

static int write_head(struct response *response, const struct http_response *head, size_t length, const char **ret_why)
{
	char *text = malloc(length + HTTP_HEAD_EXTRA);
	*ret_why = "out of memory";
	if (!text)
		return -1;
	/* The spans point into the bytes that were read. What says where the body ends is written anew. */
	mask(response, response->head + (head->reason.at - response->head), head->reason.length);
	mask(response, response->head + (head->fields.lines.at - response->head), head->fields.lines.length);
	response->has_head = true;
	response->status = head->status;
	response->body = head->body;
	response->left = head->length;
	response->is_done = head->body == HTTP_BODY_NONE || (head->body == HTTP_BODY_LENGTH && !head->length);
	response->emit(response->context, text, http_response_write(head, false, text));
	free(text);
	return 0;
}

/* Of interim responses the client was given the one that it may wait for. 1: the head is read, *ret_end is behind
 * it. */
static int read_head(struct response *response, size_t *ret_end, const char **ret_why)
{
	for (;;) {
		struct http_response head;
		long end = http_response_parse(response->head, response->head_length, response->request, &head,
		                               ret_why);
		if (end < 0)
			return -1;
		if ((end ? (size_t)end : response->head_length) > response->head_max) {
			*ret_why = "the head of the response is too long";
			return -1;
		}
		if (!end)
			return 0;
		if (!head.is_interim) {
			*ret_end = (size_t)end;
			return write_head(response, &head, (size_t)end, ret_why) < 0 ? -1 : 1;
		}
		response->head_length -= (size_t)end;
		memmove(response->head, response->head + end, response->head_length);
	}
}

static int take_head(struct response *response, const char *bytes, size_t length, const char **ret_why)
{
	size_t end;
	memcpy(response->head + response->head_length, bytes, length);
	response->head_length += length;
	/* Nothing changes until another line has ended, or too much has come. */
	if (response->head_length <= response->head_max && !memchr(bytes, '\n', length))
		return 0;
	int rc = read_head(response, &end, ret_why);
	return rc <= 0 ? rc : take_body(response, response->head + end, response->head_length - end, ret_why);
}

int response_add(struct response *response, const char *bytes, size_t length, const char **ret_why)
{
	for (size_t piece; length && !response->has_head; bytes += piece, length -= piece) {
		piece = length < RESPONSE_PIECE ? length : RESPONSE_PIECE;
		if (take_head(response, bytes, piece, ret_why) < 0)
			return -1;
	}
	return take_body(response, bytes, length, ret_why);
}

int response_end(struct response *response, const char **ret_why)
{
	*ret_why = "the service broke it off before its response was whole";
	if (response->is_done)
		return 0;
	if (!response->has_head || response->body != HTTP_BODY_UNTIL_CLOSE)
		return -1;
	response->is_done = true;
	pass_on(response);
	return 0;
}

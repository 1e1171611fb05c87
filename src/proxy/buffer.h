/* Bytes on their way. What is empty holds no memory. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/cleanup.h"

struct buffer {
	char *bytes;
	size_t start, end, size;
};

static inline size_t buffer_length(const struct buffer *buffer)
{
	return buffer->end - buffer->start;
}

/* NULL where it holds no memory: nothing may be added to that, not even 0. */
static inline const char *buffer_at(const struct buffer *buffer)
{
	return buffer->bytes ? buffer->bytes + buffer->start : NULL;
}

void buffer_free(struct buffer *buffer);
/* The first bytes are done with. */
void buffer_drop(struct buffer *buffer, size_t length);
/* Room for `length` more bytes at buffer->bytes + buffer->end; -1 where memory is short. */
int buffer_reserve(struct buffer *buffer, size_t length) must_check;
int buffer_append(struct buffer *buffer, const char *bytes, size_t length) must_check;

/* Reads what there is, about `step` bytes at a time, until `max` are in it. How many came; 0 at the end of the stream;
 * or -errno. */
ssize_t buffer_receive(struct buffer *buffer, int fd, size_t step, size_t max) must_check;
/* Sends the first bytes, at most `length`, and drops them. How many went, or -errno. */
ssize_t buffer_send(struct buffer *buffer, int fd, size_t length) must_check;

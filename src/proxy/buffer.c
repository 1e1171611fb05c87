/* Buffers: see buffer.h. */
#include "proxy/buffer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

void buffer_free(struct buffer *buffer)
{
	free(buffer->bytes);
	*buffer = (struct buffer){ 0 };
}

void buffer_drop(struct buffer *buffer, size_t length)
{
	buffer->start += length;
	if (buffer->start == buffer->end)
		buffer_free(buffer);
}

int buffer_reserve(struct buffer *buffer, size_t length)
{
	size_t held = buffer_length(buffer);
	if (buffer->size - buffer->end >= length)
		return 0;
	if (buffer->start) {
		memmove(buffer->bytes, buffer->bytes + buffer->start, held);
		buffer->start = 0;
		buffer->end = held;
	}
	if (buffer->size - held >= length)
		return 0;
	char *grown = realloc(buffer->bytes, held + length);
	if (!grown)
		return -1;
	buffer->bytes = grown;
	buffer->size = held + length;
	return 0;
}

int buffer_append(struct buffer *buffer, const char *bytes, size_t length)
{
	if (buffer_reserve(buffer, length) < 0)
		return -1;
	memcpy(buffer->bytes + buffer->end, bytes, length);
	buffer->end += length;
	return 0;
}

ssize_t buffer_receive(struct buffer *buffer, int fd, size_t step, size_t max)
{
	size_t held = buffer_length(buffer), room = held < step ? step : held;
	ssize_t got;
	if (held >= max)
		return -ENOBUFS;
	room = room > max - held ? max - held : room;
	if (buffer_reserve(buffer, room) < 0)
		return -ENOMEM;
	do
		got = recv(fd, buffer->bytes + buffer->end, room, MSG_DONTWAIT);
	while (got < 0 && errno == EINTR);
	int error = errno;
	if (got > 0)
		buffer->end += (size_t)got;
	else
		buffer_drop(buffer, 0);
	return got < 0 ? -error : got;
}

ssize_t buffer_send(struct buffer *buffer, int fd, size_t length)
{
	ssize_t sent;
	do
		sent = send(fd, buffer_at(buffer), length, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent < 0)
		return -errno;
	buffer_drop(buffer, (size_t)sent);
	return sent;
}

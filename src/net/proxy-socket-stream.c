/* A stream: see proxy-socket.h. Every message is of the same length, so nothing tells where one ends. A descriptor
 * comes with the first byte of its message. */
#include "net/proxy-socket.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "net/proxy-descriptor.h"

int proxy_socket_receive(int fd, struct proxy_inbox *inbox)
{
	size_t size = sizeof(inbox->message);
	if (inbox->length == size)
		inbox->length = 0;
	while (inbox->length < size) {
		ssize_t got = recv(fd, (char *)&inbox->message + inbox->length, size - inbox->length, MSG_DONTWAIT);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return errno == EAGAIN ? 0 : -1;
		if (got == 0) {
			errno = inbox->length ? EBADMSG : 0;
			return -1;
		}
		inbox->length += (size_t)got;
	}
	return 1;
}

/* The rest of a message that has begun. */
static int await_rest(int fd, struct proxy_message *message, size_t length)
{
	while (length < sizeof(*message)) {
		ssize_t got = recv(fd, (char *)message + length, sizeof(*message) - length, 0);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return -1;
		length += (size_t)got;
	}
	return 0;
}

int proxy_socket_await(int fd, struct proxy_message *ret_message, int *ret_passed)
{
	ssize_t got = proxy_descriptor_receive(fd, ret_message, ret_passed);
	return got <= 0 ? -1 : await_rest(fd, ret_message, (size_t)got);
}

/* macOS heeds MSG_DONTWAIT where it receives, but not where it sends. Its poll() tells of room from the low-water mark
 * on, which is 2048 bytes: as much as a message at least, so that sending one does not wait then. */
static bool has_room(int fd)
{
	struct pollfd room = { .fd = fd, .events = POLLOUT };
	_Static_assert(sizeof(struct proxy_message) <= 2048, "there is room for a message or none");
	return poll(&room, 1, 0) == 1;
}

int proxy_socket_send(int fd, const struct proxy_message *message, size_t *sent)
{
	while (*sent < sizeof(*message)) {
		if (!has_room(fd))
			return 0;
		ssize_t went = send(fd, (const char *)message + *sent, sizeof(*message) - *sent,
		                    MSG_DONTWAIT | MSG_NOSIGNAL);
		if (went < 0 && errno == EINTR)
			continue;
		if (went < 0)
			return errno == EAGAIN || errno == ENOBUFS ? 0 : -1;
		*sent += (size_t)went;
	}
	return 1;
}

int proxy_socket_put(int fd, const struct proxy_message *message, int passed)
{
	ssize_t went = proxy_descriptor_send(fd, message, passed);
	if (went < 0)
		return -1;
	for (size_t sent = (size_t)went; sent < sizeof(*message);) {
		went = send(fd, (const char *)message + sent, sizeof(*message) - sent, MSG_NOSIGNAL);
		if (went < 0 && errno == EINTR)
			continue;
		if (went < 0) {
			/* Part of it is gone: this is no error after which it may be tried again. */
			errno = EBADMSG;
			return -1;
		}
		sent += (size_t)went;
	}
	return 0;
}

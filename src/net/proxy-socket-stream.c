/* A stream: see proxy-socket.h. Every message is of the same length, so nothing tells where one ends. What waits, and
 * what passes a descriptor, is in proxy-socket-rights.c, and on Windows in proxy-socket-windows.c. Linux's own flags
 * that other systems lack are 0 there. */
#include "net/proxy-socket.h"

#include <errno.h>
#include <sys/socket.h>

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

int proxy_socket_send(int fd, const struct proxy_message *message, size_t *sent)
{
	while (*sent < sizeof(*message)) {
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

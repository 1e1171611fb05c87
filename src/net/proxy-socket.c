/* Packets: see proxy-socket.h. */
#include "net/proxy-socket.h"

#include <errno.h>
#include <sys/socket.h>

#include "net/proxy-descriptor.h"

int proxy_socket_receive(int fd, struct proxy_inbox *inbox)
{
	ssize_t got;
	do
		got = recv(fd, &inbox->message, sizeof(inbox->message), MSG_DONTWAIT | MSG_TRUNC);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return errno == EAGAIN ? 0 : -1;
	errno = got ? EBADMSG : 0;
	return got == sizeof(inbox->message) ? 1 : -1;
}

int proxy_socket_await(int fd, struct proxy_message *ret_message, int *ret_passed)
{
	return proxy_descriptor_receive(fd, ret_message, ret_passed) == sizeof(*ret_message) ? 0 : -1;
}

int proxy_socket_send(int fd, const struct proxy_message *message, size_t *sent)
{
	ssize_t went;
	do
		went = send(fd, message, sizeof(*message), MSG_DONTWAIT | MSG_NOSIGNAL);
	while (went < 0 && errno == EINTR);
	if (went < 0)
		return errno == EAGAIN || errno == ENOBUFS ? 0 : -1;
	errno = EBADMSG;
	*sent = (size_t)went;
	return went == sizeof(*message) ? 1 : -1;
}

int proxy_socket_put(int fd, const struct proxy_message *message, int passed)
{
	return proxy_descriptor_send(fd, message, passed) < 0 ? -1 : 0;
}

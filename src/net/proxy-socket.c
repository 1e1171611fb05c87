/* Packets: see proxy-socket.h. */
#include "net/proxy-socket.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

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
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec part = { ret_message, sizeof(*ret_message) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
	                          .msg_controllen = sizeof(control) };
	ssize_t got;
	do
		got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	*ret_passed = -1;
	if (got != sizeof(*ret_message))
		return -1;
	const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
	    header->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(ret_passed, CMSG_DATA(header), sizeof(int));
	return message.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ? -1 : 0;
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
	struct iovec part = { (void *)(uintptr_t)message, sizeof(*message) };
	union {
		struct cmsghdr header;
		unsigned char space[CMSG_SPACE(sizeof(int))];
	} control = { .header = {
			      .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1 };
	if (passed >= 0) {
		memcpy(CMSG_DATA(&control.header), &passed, sizeof(passed));
		header.msg_control = &control;
		header.msg_controllen = sizeof(control);
	}
	return sendmsg(fd, &header, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

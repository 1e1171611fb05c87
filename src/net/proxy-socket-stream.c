/* A stream: see proxy-socket.h. Every message is of the same length, so nothing tells where one ends. A descriptor
 * comes with the first byte of its message. Linux's own flags that macOS lacks are 0 there (base/macos/system.h). */
#include "net/proxy-socket.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
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
	if (got <= 0)
		return -1;
	const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
	    header->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(ret_passed, CMSG_DATA(header), sizeof(int));
	if (*ret_passed >= 0)
		fcntl(*ret_passed, F_SETFD, FD_CLOEXEC);
	return message.msg_flags & MSG_CTRUNC ? -1 : await_rest(fd, ret_message, (size_t)got);
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
	ssize_t went = sendmsg(fd, &header, MSG_NOSIGNAL);
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

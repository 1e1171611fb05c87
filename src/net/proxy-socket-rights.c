/* Messages of a stream that are waited for, and the descriptor that comes with the first byte of one: see
 * proxy-socket.h. */
#include "net/proxy-socket.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

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

/* See proxy-descriptor.h. Linux's own flags that macOS lacks are 0 there (base/macos/system.h). */
#include "net/proxy-descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

ssize_t proxy_descriptor_receive(int fd, struct proxy_message *ret_message, int *ret_passed)
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
		return got;
	const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
	    header->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(ret_passed, CMSG_DATA(header), sizeof(int));
	if (*ret_passed >= 0)
		fcntl(*ret_passed, F_SETFD, FD_CLOEXEC);
	return message.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ? -1 : got;
}

ssize_t proxy_descriptor_send(int fd, const struct proxy_message *message, int passed)
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
	return sendmsg(fd, &header, MSG_NOSIGNAL);
}

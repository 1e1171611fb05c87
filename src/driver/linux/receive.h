/* A message, and the descriptors that may come with it. */
#pragma once
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define RECEIVE_MAX 4

/* Those of `fds` that did not come are -1. There is room for `count`: of more, the kernel drops the others. */
static inline ssize_t receive_some(int socket_fd, void *message, size_t size, int flags, int *fds, size_t count)
{
	struct iovec part = { message, size };
	union {
		struct cmsghdr header;
		unsigned char space[CMSG_SPACE(RECEIVE_MAX * sizeof(int))];
	} control;
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
	                         .msg_controllen = CMSG_LEN(count * sizeof(int)) };
	ssize_t length;
	do
		length = recvmsg(socket_fd, &header, flags | MSG_CMSG_CLOEXEC);
	while (length < 0 && errno == EINTR);
	const struct cmsghdr *rights = length < 0 ? NULL : CMSG_FIRSTHDR(&header);
	for (size_t i = 0; i < count; i++)
		fds[i] = -1;
	if (rights && rights->cmsg_type == SCM_RIGHTS && rights->cmsg_len <= CMSG_LEN(count * sizeof(int)))
		memcpy(fds, CMSG_DATA(rights), rights->cmsg_len - CMSG_LEN(0));
	return length;
}

static inline ssize_t receive_with(int socket_fd, void *message, size_t size, int flags, int *ret_fd)
{
	return receive_some(socket_fd, message, size, flags, ret_fd, 1);
}

/* A message, and the one descriptor that may come with it. */
#pragma once
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* `*ret_fd` is -1 where none came. There is room for one: of more, the kernel drops the others. */
static inline ssize_t receive_with(int socket_fd, void *message, size_t size, int flags, int *ret_fd)
{
	struct iovec part = { message, size };
	union {
		struct cmsghdr header;
		unsigned char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
	                         .msg_controllen = CMSG_LEN(sizeof(int)) };
	ssize_t length;
	do
		length = recvmsg(socket_fd, &header, flags | MSG_CMSG_CLOEXEC);
	while (length < 0 && errno == EINTR);
	const struct cmsghdr *rights = length < 0 ? NULL : CMSG_FIRSTHDR(&header);
	*ret_fd = -1;
	if (rights && rights->cmsg_type == SCM_RIGHTS && rights->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(ret_fd, CMSG_DATA(rights), sizeof(int));
	return length;
}

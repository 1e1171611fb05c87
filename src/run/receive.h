/* A message, the one descriptor that may come with it, and who sent it. */
#pragma once
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* `*ret_fd` is -1 where none came. There is room for one: of more, the kernel drops the others. `*ret_pid` is left as it is where the
 * socket does not tell; it may be NULL. */
static inline ssize_t receive_with(int socket_fd, void *message, size_t size, int flags, int *ret_fd, pid_t *ret_pid)
{
	struct iovec part = { message, size };
	union {
		struct cmsghdr header;
		unsigned char space[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
	                         .msg_controllen = ret_pid ? sizeof(control) : CMSG_LEN(sizeof(int)) };
	struct ucred sender;
	ssize_t length;
	do
		length = recvmsg(socket_fd, &header, flags | MSG_CMSG_CLOEXEC);
	while (length < 0 && errno == EINTR);
	*ret_fd = -1;
	for (struct cmsghdr *part_of = length < 0 ? NULL : CMSG_FIRSTHDR(&header); part_of; part_of = CMSG_NXTHDR(&header, part_of)) {
		if (part_of->cmsg_type == SCM_RIGHTS && part_of->cmsg_len == CMSG_LEN(sizeof(int)))
			memcpy(ret_fd, CMSG_DATA(part_of), sizeof(int));
		if (ret_pid && part_of->cmsg_type == SCM_CREDENTIALS && part_of->cmsg_len == CMSG_LEN(sizeof(sender))) {
			memcpy(&sender, CMSG_DATA(part_of), sizeof(sender));
			*ret_pid = sender.pid;
		}
	}
	return length;
}

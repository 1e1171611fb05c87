/* The listeners that were made inside, out of the control socket: see child-net.c, which sends them. */
#include <string.h>
#include <sys/socket.h>

#include "driver/linux/control.h"
#include "driver/linux/supervise.h"

static void close_all(int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (fds[i] >= 0)
			close(take_fd(&fds[i]));
}

/* One message and the descriptors with it; how many these are, or -1. */
static int receive(int control_fd, struct control_message *message, int fds[CONTROL_LISTENERS_MAX])
{
	struct iovec part = { message, sizeof(*message) };
	union {
		struct cmsghdr header;
		unsigned char space[CMSG_SPACE(CONTROL_LISTENERS_MAX * sizeof(int))];
	} control;
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
	                         .msg_controllen = sizeof(control) };
	ssize_t length = recvmsg(control_fd, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (length < 0)
		return -1;
	struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
	size_t count = rights && rights->cmsg_type == SCM_RIGHTS ? (rights->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;
	if (count)
		memcpy(fds, CMSG_DATA(rights), count * sizeof(int));
	if (length == sizeof(*message) && message->kind == CONTROL_LISTENERS && message->value > 0 &&
	    message->value <= CONTROL_LISTENERS_MAX && count == (size_t)__builtin_popcountll(message->made) &&
	    (message->value == CONTROL_LISTENERS_MAX || !(message->made >> message->value)))
		return (int)count;
	close_all(fds, count);
	errno = EPROTO;
	return -1;
}

int supervise_receive_listeners(int control_fd, int *fds, size_t count, struct cordon_error *err)
{
	for (size_t i = 0; i < count; i++)
		fds[i] = -1;
	for (size_t at = 0; at < count;) {
		struct control_message message = { 0 };
		int received[CONTROL_LISTENERS_MAX] = { 0 }, next = 0;
		int number = receive(control_fd, &message, received);
		/* Of a visitor's, init was there before. */
		if (number < 0 && message.kind == CONTROL_STARTED)
			continue;
		if (number >= 0 && (size_t)message.value > count - at) {
			close_all(received, (size_t)number);
			errno = EPROTO;
			number = -1;
		}
		if (number < 0) {
			int os_errno = errno;
			close_all(fds, count);
			return fail(err, CORDON_E_INTERNAL, os_errno, "listeners",
			            "the command's listeners were not handed out");
		}
		for (int i = 0; i < message.value; i++)
			if (message.made & (UINT64_C(1) << i))
				fds[at + (size_t)i] = received[next++];
		at += (size_t)message.value;
	}
	return 0;
}

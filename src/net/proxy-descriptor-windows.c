/* See proxy-descriptor.h. Windows passes no descriptor beside bytes: behind a message that has one, which is
 * PROXY_LISTENER and no other, come the words by which the process at the other end takes it. So a message is taken, and
 * sent, whole. */
#include "net/proxy-descriptor.h"

#include <errno.h>
#include <sys/socket.h>

static int receive_all(int fd, void *bytes, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t got = recv(fd, (char *)bytes + done, size - done, 0);
		if (got <= 0)
			return -1;
		done += (size_t)got;
	}
	return 0;
}

static int send_all(int fd, const void *bytes, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t sent = send(fd, (const char *)bytes + done, size - done, 0);
		if (sent < 0) {
			errno = EBADMSG;
			return -1;
		}
		done += (size_t)sent;
	}
	return 0;
}

ssize_t proxy_descriptor_receive(int fd, struct proxy_message *ret_message, int *ret_passed)
{
	struct socket_passed words;
	*ret_passed = -1;
	if (receive_all(fd, ret_message, sizeof(*ret_message)) < 0)
		return -1;
	if (ret_message->kind != PROXY_LISTENER)
		return sizeof(*ret_message);
	if (receive_all(fd, &words, sizeof(words)) < 0)
		return -1;
	*ret_passed = socket_take_passed(&words);
	return *ret_passed < 0 ? -1 : (ssize_t)sizeof(*ret_message);
}

ssize_t proxy_descriptor_send(int fd, const struct proxy_message *message, int passed)
{
	struct socket_passed words;
	bool passes = message->kind == PROXY_LISTENER;
	if (passes != (passed >= 0)) {
		errno = EINVAL;
		return -1;
	}
	if (passes && socket_pass(fd, passed, &words) < 0)
		return -1;
	if (send_all(fd, message, sizeof(*message)) < 0 || (passes && send_all(fd, &words, sizeof(words)) < 0))
		return -1;
	return sizeof(*message);
}

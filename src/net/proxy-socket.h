/* Messages on the proxy's socket (proxy-message.h), whole. On Linux a message is one packet: proxy-socket.c. Where
 * there are no such sockets they follow each other on a stream, all of the same length: proxy-socket-stream.c. */
#pragma once
#include <stddef.h>

#include "base/cleanup.h"
#include "net/proxy-message.h"

/* What has come of the next message; all zero at first. */
struct proxy_inbox {
	struct proxy_message message;
	size_t length;
};

/* Without waiting. 1: inbox->message is one, and the inbox begins anew with the next call; 0: not yet; -1: there will
 * be none: 0 in errno at the end, EBADMSG where what came is none. */
int proxy_socket_receive(int fd, struct proxy_inbox *inbox) must_check;
/* Waits for one, and the descriptor that came with it, or -1. 0, or -1 where there is none. */
int proxy_socket_await(int fd, struct proxy_message *ret_message, int *ret_passed) must_check;
/* Without waiting, the rest of a message of which *sent bytes are gone. 1: all of it is; 0: not yet; -1 and errno. */
int proxy_socket_send(int fd, const struct proxy_message *message, size_t *sent) must_check;
/* Waits until all of it is sent, and one descriptor with it unless that is below 0. 0, or -1 and errno, EINTR and
 * ETOOMANYREFS among them where nothing of it is gone. */
int proxy_socket_put(int fd, const struct proxy_message *message, int passed) must_check;

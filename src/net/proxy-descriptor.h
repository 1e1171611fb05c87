/* The parts of net/proxy-socket.h that carry a descriptor (SCM_RIGHTS): for packets and streams alike. */
#pragma once
#include <sys/types.h>

#include "base/cleanup.h"
#include "net/proxy-message.h"

/* Waits for the first bytes of a message, and the descriptor that came with them, or -1. How many bytes came; 0 at the
 * end; -1 where there are none, or not all of what was sent with them. */
ssize_t proxy_descriptor_receive(int fd, struct proxy_message *ret_message, int *ret_passed) must_check;
/* Sends the first bytes of a message, and one descriptor with them unless that is below 0. How many, or -1 and errno. */
ssize_t proxy_descriptor_send(int fd, const struct proxy_message *message, int passed) must_check;

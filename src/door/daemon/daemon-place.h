/* Where the daemon listens. */
#pragma once
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/cleanup.h"

struct daemon_place {
	struct sockaddr_un address;
	int directory_fd;               /* what the address goes by where the path is too long for one; or -1 */
};

/* The socket in cordon's data directory. False: there is no such directory. */
bool daemon_place_in(const char *directory, struct daemon_place *ret_place) must_check;
/* The same for the environment's data directory. */
bool daemon_place(struct daemon_place *ret_place) must_check;

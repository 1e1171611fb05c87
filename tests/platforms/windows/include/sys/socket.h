/* No socket has a name in the file system. */
#pragma once
#include <errno.h>
#define AF_UNIX 1
#define SOCK_STREAM 1
#define SOCK_CLOEXEC 0
struct sockaddr {
	unsigned short sa_family;
};
static inline int socket(int family, int type, int protocol)
{
	(void)family, (void)type, (void)protocol;
	errno = EAFNOSUPPORT;
	return -1;
}
static inline int bind(int fd, const struct sockaddr *address, unsigned length)
{
	(void)fd, (void)address, (void)length;
	errno = EBADF;
	return -1;
}

#pragma once
#include <time.h>
#define POLLIN 1
#define POLLOUT 4
#define POLLERR 8
#define POLLHUP 16
struct pollfd {
	int fd;
	short events, revents;
};
/* Reading of pipes; any other descriptor is always readable, and every one is writable. Looks every 10 ms. */
int poll(struct pollfd *fds, unsigned count, int timeout_ms);
/* Without signals that could be blocked meanwhile. */
static inline int ppoll(struct pollfd *fds, unsigned count, const struct timespec *timeout, const void *mask)
{
	(void)mask;
	return poll(fds, count, timeout ? (int)(timeout->tv_sec * 1000 + timeout->tv_nsec / 1000000) : -1);
}

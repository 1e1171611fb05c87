/* There is none: callers look from time to time instead. */
#pragma once
#include <errno.h>
#include <stdint.h>
#define EPOLL_CLOEXEC 1
#define EPOLL_CTL_ADD 1
#define EPOLLIN 1
struct epoll_event {
	uint32_t events;
};
static inline int epoll_create1(int flags)
{
	(void)flags;
	errno = ENOSYS;
	return -1;
}
static inline int epoll_ctl(int epoll_fd, int operation, int fd, struct epoll_event *event)
{
	(void)epoll_fd;
	(void)operation;
	(void)fd;
	(void)event;
	errno = ENOSYS;
	return -1;
}

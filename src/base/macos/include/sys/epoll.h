/* epoll(7) over kqueue(2): one descriptor that is readable when one of several is. Of the interface only what is
 * used. */
#pragma once
#include <errno.h>
#include <stdint.h>
#include <sys/event.h>
#include <unistd.h>
#include <fcntl.h>

#define EPOLL_CLOEXEC 1
#define EPOLL_CTL_ADD 1
#define EPOLLIN 1

struct epoll_event {
	uint32_t events;
};

static inline int epoll_create1(int flags)
{
	int fd = kqueue();
	if (fd >= 0 && flags)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	return fd;
}

static inline int epoll_ctl(int epoll_fd, int operation, int fd, struct epoll_event *event)
{
	struct kevent change;
	if (operation != EPOLL_CTL_ADD || event->events != EPOLLIN) {
		errno = EINVAL;
		return -1;
	}
	EV_SET(&change, fd, EVFILT_READ, EV_ADD, 0, 0, NULL);
	return kevent(epoll_fd, &change, 1, NULL, 0, NULL);
}

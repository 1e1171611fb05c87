/* epoll(7) over kqueue(2), in base/macos/epoll.c, and over select(), in base/windows/epoll.c. Of the interface only what
 * is used: descriptors that can be read and written, by level or by edge. An event of one descriptor may come as two, one
 * for reading and one for writing. On Windows the end of what there is to read is EPOLLIN, what was told by edge is told
 * again only once a call has said EAGAIN, and other descriptors than sockets are looked at every 10 ms. */
#pragma once
#include <stdint.h>

#define EPOLL_CLOEXEC 1
#define EPOLL_CTL_ADD 1
#define EPOLL_CTL_DEL 2
#define EPOLL_CTL_MOD 3

#define EPOLLIN 0x001u
#define EPOLLOUT 0x004u
#define EPOLLERR 0x008u                 /* with either of the two */
#define EPOLLHUP 0x010u
#define EPOLLRDHUP 0x2000u              /* told whether it was asked for or not, or not at all */
#define EPOLLET (1u << 31)

struct epoll_event {
	uint32_t events;
	union {
		void *ptr;
		int fd;
		uint64_t u64;
	} data;
};

int epoll_create1(int flags);
/* `event` of EPOLL_CTL_DEL may be NULL. */
int epoll_ctl(int epoll_fd, int operation, int fd, struct epoll_event *event);
int epoll_wait(int epoll_fd, struct epoll_event *ret_events, int max, int timeout_ms);

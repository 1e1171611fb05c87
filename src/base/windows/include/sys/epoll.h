/* epoll(7) over select(), in base/windows/epoll.c. Of the interface only what is used: descriptors that can be read and
 * written, by level or by edge; other descriptors than sockets are looked at every 10 ms. By edge, what was told is told
 * again only once a call has said EAGAIN. */
#pragma once
#include <stdint.h>

#define EPOLL_CLOEXEC 1
#define EPOLL_CTL_ADD 1
#define EPOLL_CTL_DEL 2
#define EPOLL_CTL_MOD 3

#define EPOLLIN 0x001u                  /* also at the end of what there is to read */
#define EPOLLOUT 0x004u
#define EPOLLERR 0x008u                 /* it could not connect */
#define EPOLLHUP 0x010u                 /* never told, as the next one */
#define EPOLLRDHUP 0x2000u
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

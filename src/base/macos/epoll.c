/* See sys/epoll.h. */
#include <sys/epoll.h>
#include <sys/event.h>

#define EVENTS_MAX 128

int epoll_create1(int flags)
{
	int fd = kqueue();
	if (fd >= 0 && flags)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	return fd;
}

/* A kqueue has a filter for each direction. */
static int set_filter(int epoll_fd, int fd, int16_t filter, bool wanted, const struct epoll_event *event)
{
	struct kevent change;
	bool by_edge = event && event->events & EPOLLET;
	EV_SET(&change, fd, filter, wanted ? EV_ADD | (by_edge ? EV_CLEAR : 0) : EV_DELETE, 0, 0,
	       event ? (void *)(uintptr_t)event->data.u64 : NULL);
	int result = kevent(epoll_fd, &change, 1, NULL, 0, NULL);
	return result < 0 && !wanted && errno == ENOENT ? 0 : result;
}

int epoll_ctl(int epoll_fd, int operation, int fd, struct epoll_event *event)
{
	bool reads = operation != EPOLL_CTL_DEL && event->events & EPOLLIN;
	bool writes = operation != EPOLL_CTL_DEL && event->events & EPOLLOUT;
	bool is_new = operation == EPOLL_CTL_ADD;
	if ((reads || !is_new) && set_filter(epoll_fd, fd, EVFILT_READ, reads, event) < 0)
		return -1;
	return writes || !is_new ? set_filter(epoll_fd, fd, EVFILT_WRITE, writes, event) : 0;
}

static uint32_t events_of(const struct kevent *happened)
{
	bool is_read = happened->filter == EVFILT_READ, has_ended = happened->flags & EV_EOF;
	uint32_t events = is_read ? EPOLLIN : EPOLLOUT;
	if (has_ended)
		events |= is_read ? EPOLLRDHUP : EPOLLHUP;
	/* Of a socket: its error. */
	if (has_ended && happened->fflags)
		events |= EPOLLERR;
	return events;
}

int epoll_wait(int epoll_fd, struct epoll_event *ret_events, int max, int timeout_ms)
{
	struct timespec wait = { timeout_ms / 1000, timeout_ms % 1000 * 1000000L };
	struct kevent happened[EVENTS_MAX];
	int count = kevent(epoll_fd, NULL, 0, happened, max < EVENTS_MAX ? max : EVENTS_MAX,
	                   timeout_ms < 0 ? NULL : &wait);
	for (int i = 0; i < count; i++) {
		ret_events[i].events = events_of(&happened[i]);
		ret_events[i].data.u64 = (uintptr_t)happened[i].udata;
	}
	return count;
}

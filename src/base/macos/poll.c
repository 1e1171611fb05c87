/* poll(2) with terminals: macOS's own knows no devices, so these are asked about by select(). See system.h. Nothing
 * here is macOS's alone. */
#include <poll.h>
#undef poll
#include <stdbool.h>
#include <sys/select.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define FDS_MAX 64
#define SLICE_MS 100    /* select() does not tell what is not asked for: the end of a pipe that is not read */

int system_poll(struct pollfd *fds, nfds_t count, int timeout_ms);

static long long now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* What select() finds in so much time: which of `fds` can be read and written. -1: errno says why. */
static int look(const struct pollfd *fds, nfds_t count, int wait_ms, fd_set *ret_read, fd_set *ret_write)
{
	struct timeval wait = { wait_ms / 1000, wait_ms % 1000 * 1000 };
	int highest = -1;
	FD_ZERO(ret_read);
	FD_ZERO(ret_write);
	for (nfds_t i = 0; i < count; i++) {
		if (fds[i].fd < 0)
			continue;
		if (fds[i].events & POLLIN)
			FD_SET(fds[i].fd, ret_read);
		if (fds[i].events & POLLOUT)
			FD_SET(fds[i].fd, ret_write);
		highest = fds[i].fd > highest ? fds[i].fd : highest;
	}
	return select(highest + 1, ret_read, ret_write, NULL, &wait);
}

/* All of them, without waiting. */
static int ask(struct pollfd *fds, nfds_t count, const bool *is_terminal)
{
	struct pollfd others[FDS_MAX], terminals[FDS_MAX];
	fd_set readable, writable;
	int ready = 0;
	for (nfds_t i = 0; i < count; i++) {
		others[i] = terminals[i] = fds[i];
		if (is_terminal[i])
			others[i].fd = -1;
		else
			terminals[i].fd = -1;
	}
	if (poll(others, count, 0) < 0 || look(terminals, count, 0, &readable, &writable) < 0)
		return -1;
	for (nfds_t i = 0; i < count; i++) {
		fds[i].revents = others[i].revents;
		if (is_terminal[i])
			fds[i].revents = (short)((FD_ISSET(fds[i].fd, &readable) ? POLLIN : 0) |
			                         (FD_ISSET(fds[i].fd, &writable) ? POLLOUT : 0));
		ready += fds[i].revents != 0;
	}
	return ready;
}

int system_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	bool is_terminal[FDS_MAX] = { false }, any = false;
	if (count > FDS_MAX)
		return poll(fds, count, timeout_ms);
	for (nfds_t i = 0; i < count; i++) {
		if (fds[i].fd >= FD_SETSIZE)
			return poll(fds, count, timeout_ms);
		is_terminal[i] = fds[i].fd >= 0 && isatty(fds[i].fd);
		any |= is_terminal[i];
	}
	if (!any)
		return poll(fds, count, timeout_ms);
	for (long long until = now_ms() + timeout_ms;;) {
		fd_set readable, writable;
		int ready = ask(fds, count, is_terminal);
		long long left = timeout_ms < 0 ? SLICE_MS : until - now_ms();
		if (ready != 0 || left <= 0)
			return ready;
		if (look(fds, count, left < SLICE_MS ? (int)left : SLICE_MS, &readable, &writable) < 0)
			return -1;
	}
}

/* See sys/eventfd.h. */
#include <sys/event.h>
#include <sys/eventfd.h>

#include "base/cleanup.h"

#define IDENT 1

static int change(int fd, uint16_t flags, uint32_t wanted)
{
	struct kevent event;
	EV_SET(&event, IDENT, EVFILT_USER, flags, wanted, 0, NULL);
	return kevent(fd, &event, 1, NULL, 0, NULL);
}

int eventfd(unsigned value, int flags)
{
	auto_close int fd = kqueue();
	if (fd < 0 || (flags & EFD_CLOEXEC && fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) ||
	    change(fd, EV_ADD | EV_CLEAR, 0) < 0 || (value && eventfd_write(fd, value) < 0))
		return -1;
	return take_fd(&fd);
}

int eventfd_write(int fd, eventfd_t value)
{
	return value ? change(fd, 0, NOTE_TRIGGER) : 0;
}

int eventfd_read(int fd, eventfd_t *ret_value)
{
	static const struct timespec now = { 0 };
	struct kevent event;
	int count = kevent(fd, NULL, 0, &event, 1, &now);
	if (count == 0)
		errno = EAGAIN;
	if (count <= 0)
		return -1;
	*ret_value = 1;
	return 0;
}

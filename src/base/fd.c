/* See fd.h; proc(5). */
#include "base/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static const char *link_of(int fd, char text[64])
{
	snprintf(text, 64, "/proc/self/fd/%d", fd);
	return text;
}

ssize_t fd_path(int fd, char *ret_path, size_t size)
{
	char link[64];
	ssize_t length = readlink(link_of(fd, link), ret_path, size);
	return length <= 0 || length == (ssize_t)size || ret_path[0] != '/' ? -1 : length;
}

int fd_reopen(int fd, int flags)
{
	char link[64];
	return open(link_of(fd, link), flags);
}

/* eventfd(2): over kqueue(2) in base/macos/eventfd.c, and as a flag in the table of sockets in base/windows/eventfd.c. A
 * descriptor that poll() finds readable from eventfd_write() to eventfd_read(). It has no counter: what is read is 1,
 * however often it was written to. read() and write() do not take it, a child of fork() has none, and on Windows
 * epoll_ctl() does not take it either. */
#pragma once
#include <stdint.h>

#define EFD_CLOEXEC 1
#define EFD_NONBLOCK 2                  /* it never blocks */

typedef uint64_t eventfd_t;

int eventfd(unsigned value, int flags);
int eventfd_write(int fd, eventfd_t value);
int eventfd_read(int fd, eventfd_t *ret_value);

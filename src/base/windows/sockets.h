/* Sockets behind descriptors, with the semantics of Linux's manual pages, less what is said here. Their numbers lie far
 * above those of files (PROXY_FD apart, see socket_adopt()), so that close(), poll() and fcntl() can tell. Sources
 * include <sys/socket.h> and its like, which lead here. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* It has others of these names than poll.h, which is for descriptors. */
#pragma push_macro("POLLIN")
#undef POLLIN
#pragma push_macro("POLLOUT")
#undef POLLOUT
#pragma push_macro("POLLERR")
#undef POLLERR
#pragma push_macro("POLLHUP")
#undef POLLHUP
#define pollfd winsock_pollfd
#include <winsock2.h>
#include <ws2tcpip.h>
#undef pollfd
#undef POLLIN
#pragma pop_macro("POLLIN")
#undef POLLOUT
#pragma pop_macro("POLLOUT")
#undef POLLERR
#pragma pop_macro("POLLERR")
#undef POLLHUP
#pragma pop_macro("POLLHUP")

#define SOCK_CLOEXEC 0x10000000         /* all of them are */
#define SOCK_NONBLOCK 0x20000000
#define MSG_DONTWAIT 0x40000000
#define MSG_NOSIGNAL 0                  /* there is none */
#define MSG_TRUNC 0                     /* what is longer is an error */
#define SHUT_RD SD_RECEIVE
#define SHUT_WR SD_SEND
#define SHUT_RDWR SD_BOTH

int system_socket(int family, int type, int protocol);
/* A stream over 127.0.0.1, whatever family is asked for. */
int system_socketpair(int family, int type, int protocol, int ret_fds[2]);
int system_bind(int fd, const struct sockaddr *address, socklen_t size);
int system_listen(int fd, int backlog);
/* Never waits, as the next one. */
int system_connect(int fd, const struct sockaddr *address, socklen_t size);
int system_accept4(int fd, struct sockaddr *ret_address, socklen_t *size, int flags);
ssize_t system_recv(int fd, void *bytes, size_t size, int flags);
ssize_t system_send(int fd, const void *bytes, size_t size, int flags);
ssize_t system_recvfrom(int fd, void *bytes, size_t size, int flags, struct sockaddr *ret_address, socklen_t *length);
ssize_t system_sendto(int fd, const void *bytes, size_t size, int flags, const struct sockaddr *address,
                      socklen_t length);
int system_shutdown(int fd, int how);
int system_getsockname(int fd, struct sockaddr *ret_address, socklen_t *size);
/* Of SO_SNDTIMEO, a struct timeval. */
int system_setsockopt(int fd, int level, int name, const void *value, socklen_t size);
/* SO_ERROR is a number of errno. */
int system_getsockopt(int fd, int level, int name, void *ret_value, socklen_t *size);

/* ---- for what handles descriptors of every kind ------------------------------------------------------------------ */

/* Is it a socket, or what epoll_create1() or eventfd() gives? */
bool socket_is(int fd);
int socket_close(int fd);
/* What poll() tells of it now. */
short socket_look(int fd, short events);

/* ---- between processes --------------------------------------------------------------------------------------------- */

/* Of one end of a pair: the process that has the other end from now on. */
void socket_has_peer(int fd, uint32_t process);
/* `passed`, in the words that the process at the other end of `fd` takes as its own: opaque, and of use to that process
 * alone, once. */
struct socket_passed {
	unsigned char bytes[sizeof(WSAPROTOCOL_INFOW)];
};
int socket_pass(int fd, int passed, struct socket_passed *ret_words);
int socket_take_passed(const struct socket_passed *words);
/* The same, once, by this number, which no file has. */
int socket_adopt(int fd, const struct socket_passed *words);

/* See sockets.h. Winsock's sockets never wait here; a call that may wait does so with select(). */
#include "base/windows/descriptors.h"

#include <pthread.h>
#include <string.h>

#include "base/cleanup.h"

#define FIRST 0x100000                  /* the lowest number; of files there are far fewer */
#define ENTRIES_MAX 16384
#define ADOPTED 0                       /* the entry of socket_adopt() */
#define STRANGERS_MAX 1000              /* that connect to a pair's listener before its other end does */
#define POLL_IN 1                       /* poll.h's, which winsock's header has others of */
#define POLL_OUT 4

static struct {
	pthread_mutex_t lock;
	struct entry entries[ENTRIES_MAX];
	size_t next;                    /* where to look for a free one */
	int adopted_fd;                 /* -1: none */
} table = { .lock = PTHREAD_MUTEX_INITIALIZER, .next = ADOPTED + 1, .adopted_fd = -1 };

static int fail_with(int number)
{
	errno = number;
	return -1;
}

static int number_of(int error)
{
	static const struct {
		int error, number;
	} rows[] = {
		{ WSAEWOULDBLOCK, EAGAIN },           { WSAEINTR, EINTR },
		{ WSAEACCES, EACCES },                { WSAEINVAL, EINVAL },
		{ WSAEMFILE, EMFILE },                { WSAENOBUFS, ENOBUFS },
		{ WSAEINPROGRESS, EINPROGRESS },      { WSAEALREADY, EALREADY },
		{ WSAENOTSOCK, ENOTSOCK },            { WSAEMSGSIZE, EMSGSIZE },
		{ WSAEADDRINUSE, EADDRINUSE },        { WSAEADDRNOTAVAIL, EADDRNOTAVAIL },
		{ WSAENETDOWN, ENETDOWN },            { WSAENETUNREACH, ENETUNREACH },
		{ WSAENETRESET, ENETRESET },          { WSAECONNABORTED, ECONNABORTED },
		{ WSAECONNRESET, ECONNRESET },        { WSAEISCONN, EISCONN },
		{ WSAENOTCONN, ENOTCONN },            { WSAESHUTDOWN, EPIPE },
		{ WSAETIMEDOUT, ETIMEDOUT },          { WSAECONNREFUSED, ECONNREFUSED },
		{ WSAEHOSTUNREACH, EHOSTUNREACH },    { WSAEAFNOSUPPORT, EAFNOSUPPORT },
		{ WSAEPROTONOSUPPORT, EPROTONOSUPPORT },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].error == error)
			return rows[i].number;
	return error ? EIO : 0;
}

int socket_fail(void)
{
	return fail_with(number_of(WSAGetLastError()));
}

/* ---- the table ----------------------------------------------------------------------------------------------------- */

static pthread_once_t start_once = PTHREAD_ONCE_INIT;
static int start_error;

static void start_winsock(void)
{
	WSADATA data;
	start_error = WSAStartup(MAKEWORD(2, 2), &data);
}

static bool is_started(void)
{
	pthread_once(&start_once, start_winsock);
	errno = ENETDOWN;
	return !start_error;
}

struct entry *entry_find(int fd)
{
	size_t at = fd >= FIRST ? (size_t)(fd - FIRST) : fd >= 0 && fd == table.adopted_fd ? ADOPTED : ENTRIES_MAX;
	if (at < ENTRIES_MAX && table.entries[at].kind != ENTRY_FREE)
		return &table.entries[at];
	errno = EBADF;
	return NULL;
}

int entry_add(enum entry_kind kind, struct entry **ret_entry)
{
	int fd = -1;
	pthread_mutex_lock(&table.lock);
	for (size_t tried = 0; fd < 0 && tried < ENTRIES_MAX; tried++) {
		size_t at = table.next;
		table.next = at + 1 < ENTRIES_MAX ? at + 1 : ADOPTED + 1;
		if (table.entries[at].kind != ENTRY_FREE)
			continue;
		fd = (int)at + FIRST;
		*ret_entry = &table.entries[at];
		**ret_entry = (struct entry){ .kind = kind, .socket = INVALID_SOCKET };
	}
	pthread_mutex_unlock(&table.lock);
	return fd < 0 ? fail_with(EMFILE) : fd;
}

void entry_free(int fd)
{
	struct entry *entry = entry_find(fd);
	pthread_mutex_lock(&table.lock);
	if (fd == table.adopted_fd)
		table.adopted_fd = -1;
	*entry = (struct entry){ 0 };
	pthread_mutex_unlock(&table.lock);
}

bool socket_is(int fd)
{
	int before = errno;
	bool is = entry_find(fd);
	errno = before;
	return is;
}

/* The socket of a descriptor; INVALID_SOCKET and errno. */
static SOCKET of(int fd)
{
	const struct entry *entry = entry_find(fd);
	if (entry && entry->kind != ENTRY_SOCKET)
		errno = ENOTSOCK;
	return entry && entry->kind == ENTRY_SOCKET ? entry->socket : INVALID_SOCKET;
}

/* A descriptor of this socket, which is closed where there is none to be had. */
static int take_socket(SOCKET socket, bool waits)
{
	struct entry *entry;
	int fd = -1;
	if (socket == INVALID_SOCKET)
		return socket_fail();
	if (ioctlsocket(socket, (long)FIONBIO, &(u_long){ 1 }) != 0)
		socket_fail();
	else
		fd = entry_add(ENTRY_SOCKET, &entry);
	if (fd < 0) {
		closesocket(socket);
		return -1;
	}
	SetHandleInformation((HANDLE)socket, HANDLE_FLAG_INHERIT, 0);
	entry->socket = socket;
	entry->waits = waits;
	return fd;
}

int socket_close(int fd)
{
	struct entry *entry = entry_find(fd);
	if (!entry)
		return -1;
	if (entry->watched_by)
		epoll_forget(entry->watched_by, fd);
	if (entry->kind == ENTRY_SOCKET)
		closesocket(entry->socket);
	else if (entry->kind == ENTRY_EPOLL)
		epoll_free(entry->interests);
	entry_free(fd);
	return 0;
}

/* ---- waiting -------------------------------------------------------------------------------------------------------- */

/* True: it can be written, or read. `ms` below 0: as long as it takes. */
static bool is_ready(SOCKET socket, bool writing, int ms)
{
	fd_set set = { 1, { socket } };
	struct timeval wait = { ms / 1000, ms % 1000 * 1000 };
	return select(0, writing ? NULL : &set, writing ? &set : NULL, NULL, ms < 0 ? NULL : &wait) == 1;
}

short socket_look(int fd, short events)
{
	const struct entry *entry = entry_find(fd);
	if (!entry)
		return 0;
	if (entry->kind == ENTRY_EPOLL)
		return epoll_look(fd, events);
	if (entry->kind == ENTRY_EVENT)
		return events & POLL_IN && atomic_load(&entry->is_set) ? POLL_IN : 0;
	return (short)((events & POLL_IN && is_ready(entry->socket, false, 0) ? POLL_IN : 0) |
	               (events & POLL_OUT && is_ready(entry->socket, true, 0) ? POLL_OUT : 0));
}

/* After a call that could not go on: true, it may be tried again. */
static bool await(struct entry *entry, bool writing, int flags)
{
	if (socket_fail(), errno != EAGAIN)
		return false;
	entry->told &= writing ? ~(uint32_t)POLL_OUT : ~(uint32_t)POLL_IN;
	if (!entry->waits || flags & MSG_DONTWAIT)
		return false;
	if (is_ready(entry->socket, writing, writing && entry->send_ms ? (int)entry->send_ms : -1))
		return true;
	errno = EAGAIN;
	return false;
}

/* ---- calls ---------------------------------------------------------------------------------------------------------- */

static int size_of(size_t size)
{
	return size > INT32_MAX ? INT32_MAX : (int)size;
}

int system_socket(int family, int type, int protocol)
{
	int kind = type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (!is_started())
		return -1;
	return take_socket(WSASocketW(family, kind, protocol, NULL, 0,
	                              WSA_FLAG_OVERLAPPED | WSA_FLAG_NO_HANDLE_INHERIT), !(type & SOCK_NONBLOCK));
}

/* No other program's socket can be put in this one's place. */
int system_bind(int fd, const struct sockaddr *address, socklen_t size)
{
	static const BOOL alone = TRUE;
	SOCKET socket = of(fd);
	if (socket == INVALID_SOCKET)
		return -1;
	return setsockopt(socket, SOL_SOCKET, SO_EXCLUSIVEADDRUSE, (const char *)&alone, sizeof(alone)) == 0 &&
	                       bind(socket, address, size) == 0 ? 0 : socket_fail();
}

int system_listen(int fd, int backlog)
{
	SOCKET socket = of(fd);
	return socket == INVALID_SOCKET ? -1 : listen(socket, backlog) == 0 ? 0 : socket_fail();
}

int system_connect(int fd, const struct sockaddr *address, socklen_t size)
{
	struct entry *entry = entry_find(fd);
	if (of(fd) == INVALID_SOCKET)
		return -1;
	if (connect(entry->socket, address, size) == 0)
		return 0;
	if (WSAGetLastError() != WSAEWOULDBLOCK)
		return socket_fail();
	return fail_with(EINPROGRESS);
}

int system_accept4(int fd, struct sockaddr *ret_address, socklen_t *size, int flags)
{
	SOCKET socket = of(fd);
	if (socket == INVALID_SOCKET)
		return -1;
	SOCKET accepted = accept(socket, ret_address, size);
	if (accepted != INVALID_SOCKET || WSAGetLastError() != WSAECONNRESET)
		return take_socket(accepted, !(flags & SOCK_NONBLOCK));
	/* Linux has another word for it. */
	return fail_with(ECONNABORTED);
}

ssize_t system_recv(int fd, void *bytes, size_t size, int flags)
{
	struct entry *entry = entry_find(fd);
	int got;
	if (of(fd) == INVALID_SOCKET)
		return -1;
	do
		got = recv(entry->socket, bytes, size_of(size), flags & ~MSG_DONTWAIT);
	while (got < 0 && await(entry, false, flags));
	if (got >= 0 || errno != ECONNRESET)
		return got;
	/* Windows goes on saying so; Linux says it once, and then that there is no more. */
	bool was_reset = entry->was_reset;
	entry->was_reset = true;
	return was_reset ? 0 : -1;
}

ssize_t system_send(int fd, const void *bytes, size_t size, int flags)
{
	struct entry *entry = entry_find(fd);
	int sent;
	if (of(fd) == INVALID_SOCKET)
		return -1;
	do
		sent = send(entry->socket, bytes, size_of(size), flags & ~MSG_DONTWAIT);
	while (sent < 0 && await(entry, true, flags));
	return sent;
}

ssize_t system_recvfrom(int fd, void *bytes, size_t size, int flags, struct sockaddr *ret_address, socklen_t *length)
{
	struct entry *entry = entry_find(fd);
	int got;
	if (of(fd) == INVALID_SOCKET)
		return -1;
	do
		got = recvfrom(entry->socket, bytes, size_of(size), flags & ~MSG_DONTWAIT, ret_address, length);
	while (got < 0 && await(entry, false, flags));
	return got;
}

ssize_t system_sendto(int fd, const void *bytes, size_t size, int flags, const struct sockaddr *address,
                      socklen_t length)
{
	struct entry *entry = entry_find(fd);
	int sent;
	if (of(fd) == INVALID_SOCKET)
		return -1;
	do
		sent = sendto(entry->socket, bytes, size_of(size), flags & ~MSG_DONTWAIT, address, length);
	while (sent < 0 && await(entry, true, flags));
	return sent;
}

int system_shutdown(int fd, int how)
{
	SOCKET socket = of(fd);
	return socket == INVALID_SOCKET ? -1 : shutdown(socket, how) == 0 ? 0 : socket_fail();
}

int system_getsockname(int fd, struct sockaddr *ret_address, socklen_t *size)
{
	SOCKET socket = of(fd);
	return socket == INVALID_SOCKET ? -1 : getsockname(socket, ret_address, size) == 0 ? 0 : socket_fail();
}

int system_setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
	struct entry *entry = entry_find(fd);
	const struct timeval *wait = value;
	if (of(fd) == INVALID_SOCKET)
		return -1;
	if (level != SOL_SOCKET || name != SO_SNDTIMEO)
		return setsockopt(entry->socket, level, name, value, size) == 0 ? 0 : socket_fail();
	entry->send_ms = (unsigned)(wait->tv_sec * 1000 + wait->tv_usec / 1000);
	return 0;
}

int system_getsockopt(int fd, int level, int name, void *ret_value, socklen_t *size)
{
	SOCKET socket = of(fd);
	if (socket == INVALID_SOCKET)
		return -1;
	if (getsockopt(socket, level, name, ret_value, size) != 0)
		return socket_fail();
	if (level == SOL_SOCKET && name == SO_ERROR)
		*(int *)ret_value = number_of(*(int *)ret_value);
	return 0;
}

/* ---- pairs ---------------------------------------------------------------------------------------------------------- */

static bool is_at(const struct sockaddr_in *a, const struct sockaddr_in *b)
{
	return a->sin_port == b->sin_port && a->sin_addr.s_addr == b->sin_addr.s_addr;
}

/* What connects to `listener` from there; whoever else does is sent away. */
static int accept_from(int listener, const struct sockaddr_in *from)
{
	for (int i = 0; i < STRANGERS_MAX; i++) {
		struct sockaddr_in peer;
		socklen_t size = sizeof(peer);
		if (!is_ready(of(listener), false, -1))
			return socket_fail();
		int fd = system_accept4(listener, (struct sockaddr *)&peer, &size, 0);
		if (fd < 0 ? errno != ECONNABORTED && errno != EAGAIN : is_at(&peer, from))
			return fd;
		if (fd >= 0)
			socket_close(fd);
	}
	return fail_with(EAGAIN);
}

/* Until it is connected, or is not going to be: other programs may have taken the room at the listener. */
static int await_connected(int fd)
{
	fd_set done = { 1, { of(fd) } }, failed = done;
	int error = 0;
	socklen_t size = sizeof(error);
	if (select(0, NULL, &done, &failed, NULL) < 0)
		return socket_fail();
	if (system_getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
		return -1;
	return error ? fail_with(error) : 0;
}

static int make_pair(int listener, int ret_fds[2])
{
	struct sockaddr_in there = { .sin_family = AF_INET, .sin_addr = { .s_addr = htonl(INADDR_LOOPBACK) } }, here;
	socklen_t size = sizeof(there);
	if (system_bind(listener, (struct sockaddr *)&there, size) < 0 || system_listen(listener, 16) < 0 ||
	    system_getsockname(listener, (struct sockaddr *)&there, &size) < 0)
		return -1;
	if (system_connect(ret_fds[0], (struct sockaddr *)&there, size) < 0 && errno != EINPROGRESS)
		return -1;
	if (await_connected(ret_fds[0]) < 0 || system_getsockname(ret_fds[0], (struct sockaddr *)&here, &size) < 0)
		return -1;
	ret_fds[1] = accept_from(listener, &here);
	return ret_fds[1] < 0 ? -1 : 0;
}

int system_socketpair(int family, int type, int protocol, int ret_fds[2])
{
	static const BOOL at_once = TRUE;
	int ends[2] = { -1, -1 }, result = -1;
	(void)family;
	(void)protocol;
	int listener = system_socket(AF_INET, SOCK_STREAM, 0);
	if (listener >= 0 && (ends[0] = system_socket(AF_INET, type, 0)) >= 0)
		result = make_pair(listener, ends);
	int error = errno;
	if (listener >= 0)
		socket_close(listener);
	if (result < 0 && ends[0] >= 0)
		socket_close(ends[0]);
	errno = error;
	for (int i = 0; result == 0 && i < 2; i++) {
		system_setsockopt(ends[i], IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof(at_once));
		ret_fds[i] = ends[i];
	}
	return result;
}

/* ---- between processes ---------------------------------------------------------------------------------------------- */

void socket_has_peer(int fd, uint32_t process)
{
	struct entry *entry = entry_find(fd);
	if (entry)
		entry->peer = process;
}

int socket_pass(int fd, int passed, struct socket_passed *ret_words)
{
	WSAPROTOCOL_INFOW words;
	const struct entry *entry = entry_find(fd);
	SOCKET socket = of(passed);
	if (!entry || socket == INVALID_SOCKET)
		return -1;
	if (WSADuplicateSocketW(socket, entry->peer, &words) != 0)
		return socket_fail();
	memcpy(ret_words->bytes, &words, sizeof(words));
	return 0;
}

int socket_take_passed(const struct socket_passed *words)
{
	WSAPROTOCOL_INFOW info;
	memcpy(&info, words->bytes, sizeof(info));
	if (!is_started())
		return -1;
	return take_socket(WSASocketW(FROM_PROTOCOL_INFO, FROM_PROTOCOL_INFO, FROM_PROTOCOL_INFO, &info, 0,
	                              WSA_FLAG_OVERLAPPED | WSA_FLAG_NO_HANDLE_INHERIT), true);
}

int socket_adopt(int fd, const struct socket_passed *words)
{
	int taken = socket_take_passed(words);
	if (taken < 0)
		return -1;
	table.entries[ADOPTED] = *entry_find(taken);
	entry_free(taken);
	table.adopted_fd = fd;
	return 0;
}

/* Attempts to talk to the outside: networks, sockets, shared memory, the caller's terminal. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "attempt.h"

/* FAMILY TYPE PROTOCOL: such a socket can be made. */
enum answer try_socket(char **arguments)
{
	return escaped_if_fd(socket(atoi(arguments[0]), atoi(arguments[1]), atoi(arguments[2])));
}

static socklen_t address_of(const char *host, const char *port, struct sockaddr_storage *ret)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)atoi(port)) };
	if (inet_pton(AF_INET, host, &v4.sin_addr) == 1) {
		memcpy(ret, &v4, sizeof(v4));
		return sizeof(v4);
	}
	if (inet_pton(AF_INET6, host, &v6.sin6_addr) != 1)
		return 0;
	memcpy(ret, &v6, sizeof(v6));
	return sizeof(v6);
}

static enum answer ask(char **arguments, int type)
{
	struct sockaddr_storage address;
	struct timeval patience = { .tv_usec = 500000 };
	socklen_t length = address_of(arguments[0], arguments[1], &address);
	int fd = socket(address.ss_family, type, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, length) < 0)
		return escaped_if(false);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return escaped_if(send(fd, "hello\n", 6, MSG_NOSIGNAL) == 6 && fd_contains(fd, arguments[2]));
}

/* ADDRESS PORT TEXT: there is an answer, and it has the text. */
enum answer try_tcp(char **arguments)
{
	return ask(arguments, SOCK_STREAM);
}

enum answer try_udp(char **arguments)
{
	return ask(arguments, SOCK_DGRAM);
}

/* PORT: we are where somebody of the host's has it. */
enum answer try_port_taken(char **arguments)
{
	struct sockaddr_storage address;
	socklen_t length = address_of("127.0.0.1", arguments[0], &address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0)
		return escaped_if(false);
	return bind(fd, (struct sockaddr *)&address, length) < 0 && errno == EADDRINUSE ? ESCAPED : CONTAINED;
}

/* Any interface but loopback. */
enum answer try_interfaces(char **arguments)
{
	(void)arguments;
	struct if_nameindex *list = if_nameindex();
	if (!list)
		return escaped_if(false);
	for (struct if_nameindex *at = list; at->if_index; at++)
		if (strcmp(at->if_name, "lo")) {
			note("%s", at->if_name);
			return ESCAPED;
		}
	return CONTAINED;
}

/* Any route that leaves loopback, by asking the kernel. */
enum answer try_netlink_routes(char **arguments)
{
	(void)arguments;
	struct {
		struct nlmsghdr header;
		struct rtmsg route;
	} request = { { sizeof(request), RTM_GETROUTE, NLM_F_REQUEST | NLM_F_DUMP, 1, 0 }, { .rtm_family = AF_INET } };
	static char bytes[65536];
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	unsigned loopback = if_nametoindex("lo");
	if (fd < 0 || send(fd, &request, sizeof(request), 0) < 0)
		return escaped_if(false);
	for (;;) {
		int length = (int)recv(fd, bytes, sizeof(bytes), 0);
		if (length <= 0)
			return escaped_if(false);
		for (struct nlmsghdr *at = (void *)bytes; NLMSG_OK(at, (unsigned)length); at = NLMSG_NEXT(at, length)) {
			if (at->nlmsg_type == NLMSG_DONE || at->nlmsg_type == NLMSG_ERROR)
				return CONTAINED;
			int left = (int)RTM_PAYLOAD(at);
			for (struct rtattr *part = RTM_RTA(NLMSG_DATA(at)); RTA_OK(part, left);
			     part = RTA_NEXT(part, left))
				if (part->rta_type == RTA_OIF && *(unsigned *)RTA_DATA(part) != loopback)
					return ESCAPED;
		}
	}
}

/* address | route: of loopback's, more than there is. 198.51.100.0/24 is set aside for documentation. */
enum answer try_netlink_change(char **arguments)
{
	struct {
		struct nlmsghdr header;
		struct ifaddrmsg message;
		struct rtattr local_header;
		uint8_t local[4];
	} address = { { sizeof(address), RTM_NEWADDR, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE, 1, 0 },
	              { .ifa_family = AF_INET, .ifa_prefixlen = 32, .ifa_index = if_nametoindex("lo") },
	              { RTA_LENGTH(4), IFA_LOCAL }, { 198, 51, 100, 1 } };
	struct {
		struct nlmsghdr header;
		struct rtmsg message;
		struct rtattr to_header;
		uint8_t to[4];
		struct rtattr over_header;
		unsigned over;
	} route = { { sizeof(route), RTM_NEWROUTE, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE, 1, 0 },
	            { .rtm_family = AF_INET, .rtm_dst_len = 24, .rtm_table = RT_TABLE_MAIN, .rtm_scope = RT_SCOPE_LINK,
	              .rtm_protocol = RTPROT_BOOT, .rtm_type = RTN_UNICAST },
	            { RTA_LENGTH(4), RTA_DST }, { 198, 51, 100, 0 }, { RTA_LENGTH(4), RTA_OIF }, if_nametoindex("lo") };
	bool is_route = !strcmp(arguments[0], "route");
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
		char rest[1024];
	} answer;
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	if (fd < 0 ||
	    send(fd, is_route ? (void *)&route : (void *)&address, is_route ? sizeof(route) : sizeof(address), 0) < 0 ||
	    recv(fd, &answer, sizeof(answer), 0) < (ssize_t)sizeof(answer.header) ||
	    answer.header.nlmsg_type != NLMSG_ERROR)
		return escaped_if(false);
	errno = -answer.error.error;
	return escaped_if(!errno);
}

/* ---- unix sockets ------------------------------------------------------------------------------------------------ */

static enum answer connect_to(const struct sockaddr_un *address, socklen_t length, const char *wanted)
{
	struct timeval patience = { .tv_sec = 1 };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)address, length) < 0)
		return escaped_if(false);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return escaped_if(fd_contains(fd, wanted));
}

/* NAME TEXT */
enum answer try_abstract(char **arguments)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t length = strlen(arguments[0]);
	memcpy(address.sun_path + 1, arguments[0], length);
	return connect_to(&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length), arguments[1]);
}

/* PATH TEXT; relative to the directory, since a path may be longer than an address. */
enum answer try_unix(char **arguments)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char *slash = strrchr(arguments[0], '/');
	if (slash) {
		*slash = '\0';
		if (chdir(arguments[0]) < 0)
			return escaped_if(false);
	}
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", slash ? slash + 1 : arguments[0]);
	return connect_to(&address, sizeof(address), arguments[1]);
}

/* PATH: one half of a pair is pointed elsewhere. */
enum answer try_unix_datagram(char **arguments)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int pair[2];
	char *slash = strrchr(arguments[0], '/');
	*slash = '\0';
	if (chdir(arguments[0]) < 0 || socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) < 0)
		return escaped_if(false);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", slash + 1);
	return escaped_if(connect(pair[0], (struct sockaddr *)&address, sizeof(address)) == 0 &&
	                  send(pair[0], "hello", 5, 0) == 5);
}

/* ---- System V and POSIX ------------------------------------------------------------------------------------------ */

enum answer try_shm(char **arguments)
{
	int id = shmget((key_t)atol(arguments[0]), 0, 0);
	char *memory = id < 0 ? (void *)-1 : shmat(id, NULL, SHM_RDONLY);
	return escaped_if(memory != (void *)-1 && !strcmp(memory, arguments[1]));
}

enum answer try_sem(char **arguments)
{
	int id = semget((key_t)atol(arguments[0]), 0, 0);
	return escaped_if(id >= 0 && semctl(id, 0, GETVAL) >= 0);
}

enum answer try_msg(char **arguments)
{
	struct msqid_ds info;
	int id = msgget((key_t)atol(arguments[0]), 0);
	return escaped_if(id >= 0 && msgctl(id, IPC_STAT, &info) == 0);
}

enum answer try_mq(char **arguments)
{
	return escaped_if_fd((int)syscall(SYS_mq_open, arguments[0], O_RDWR, 0, NULL));
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* KIND TEXT: we are in this namespace. */
enum answer try_namespace(char **arguments)
{
	char path[64], text[64] = "";
	snprintf(path, sizeof(path), "/proc/self/ns/%s", arguments[0]);
	if (readlink(path, text, sizeof(text) - 1) < 0)
		return broken(path);
	return strcmp(text, arguments[1]) ? CONTAINED : ESCAPED;
}

enum answer try_hostname(char **arguments)
{
	char name[256] = "";
	if (gethostname(name, sizeof(name) - 1) < 0)
		return broken("gethostname");
	return strcmp(name, arguments[0]) ? CONTAINED : ESCAPED;
}

/* ---- the caller's terminal --------------------------------------------------------------------------------------- */

static int terminal(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (isatty(fd))
			return fd;
	return open("/dev/tty", O_RDWR);
}

/* TEXT: typed into it, as if by the person who sits there. */
enum answer try_terminal_type(char **arguments)
{
	int fd = terminal();
	if (fd < 0)
		return escaped_if(false);
	for (const char *at = arguments[0]; *at; at++)
		if (ioctl(fd, TIOCSTI, at) < 0)
			return escaped_if(false);
	return escaped_if(ioctl(fd, TIOCSTI, "\n") == 0);
}

enum answer try_terminal_write(char **arguments)
{
	int fd = terminal();
	return escaped_if(fd >= 0 && write(fd, arguments[0], strlen(arguments[0])) > 0);
}

/* It can be opened by the name every process has for its own. */
enum answer try_terminal_open(char **arguments)
{
	(void)arguments;
	return escaped_if_fd(open("/dev/tty", O_RDWR | O_NONBLOCK));
}

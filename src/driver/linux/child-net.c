/* The network inside, between clone and exec: loopback, and for a network of listed hosts the addresses that the proxy
 * is reached by and the listeners, which are handed out to it before the command starts. Compiled like the rest of
 * what runs in the caller's memory: see child.c.
 *
 * No socket allows its address to be shared (SO_REUSEADDR on UDP, SO_REUSEPORT), so the command cannot listen
 * beside them; changing addresses or routes takes a capability that it does not have. */
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <time.h>

#include "base/compat.h"
#include "driver/linux/control.h"
#include "driver/linux/launch.h"
#include "driver/linux/sys.h"

#define BACKLOG 1024
#define IN_USE_TRIES 100                /* two milliseconds each */
#define LOOPBACK_SECONDS 30             /* far more than it ever takes */
#define LOOPBACK_INDEX 1                /* in every network namespace */

#ifndef IPV6_FREEBIND
#define IPV6_FREEBIND 78
#endif

static int unavailable(struct launch *launch, long result, const char *subject, const char *reason)
{
	if (launch->listeners_optional)
		return -1;
	return launch_fail(
		launch, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, result, "network", subject, reason,
		"a network of listed hosts needs netlink and sockets of the sandbox's own, which nothing around "
		"cordon may refuse; --net none needs neither");
}

/* Down in a new network namespace; programs expect 127.0.0.1 to answer. */
int launch_raise_loopback(struct launch *launch)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	long fd = sys_3(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	long result = fd < 0 ? fd : sys_3(SYS_ioctl, fd, SIOCSIFFLAGS, &request);
	if (fd >= 0)
		sys_1(SYS_close, fd);
	return result < 0 ?
	               launch_unavailable(launch, result, "network", "lo", "cannot bring up the loopback interface") :
	               0;
}

/* The process that made this namespace brings it up, and may have done so already. */
static long wait_for_loopback(int maker_fd)
{
	struct ifreq request = { .ifr_name = "lo" };
	struct sockaddr_nl links = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK };
	long told = sys_3(SYS_socket, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	long fd = sys_3(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	long result = told < 0 ? told : fd < 0 ? fd : sys_3(SYS_bind, told, &links, sizeof(links));
	while (result >= 0) {
		char news[4096];
		struct pollfd changes[2] = { { .fd = (int)told, .events = POLLIN },
			                     { .fd = maker_fd, .events = POLLIN } };
		struct timespec most = { .tv_sec = LOOPBACK_SECONDS };
		result = sys_3(SYS_ioctl, fd, SIOCGIFFLAGS, &request);
		if (result < 0 || (request.ifr_flags & IFF_UP))
			break;
		result = sys_5(SYS_ppoll, changes, 2, &most, NULL, 0);
		result = result == 0            ? -ETIMEDOUT
		         : changes[1].revents ? -ESRCH
		                              : sys6(SYS_recvfrom, told, (long)news, sizeof(news), 0, 0, 0);
	}
	if (told >= 0)
		sys_1(SYS_close, told);
	if (fd >= 0)
		sys_1(SYS_close, fd);
	return result;
}

/* ---- addresses -------------------------------------------------------------------------------------------------- */

struct add_address {
	struct nlmsghdr header;
	struct ifaddrmsg message;
	struct rtattr local_header;
	uint8_t local[4];
};

struct add_route {
	struct nlmsghdr header;
	struct rtmsg message;
	struct rtattr to_header;
	uint8_t to[16];
	struct rtattr over_header;
	uint32_t over;
};

/* Sends one message and waits for the kernel's word on it: 0 or a negative errno. */
static long tell_kernel(long netlink, const struct nlmsghdr *message)
{
	union {
		struct nlmsghdr header;
		unsigned char bytes[1024];
	} answer;
	long result = sys6(SYS_sendto, netlink, (long)message, message->nlmsg_len, 0, 0, 0);
	if (result >= 0)
		result = sys6(SYS_recvfrom, netlink, (long)&answer, sizeof(answer), 0, 0, 0);
	if (result < 0)
		return result;
	const struct nlmsgerr *error = NLMSG_DATA(&answer.header);
	return (size_t)result < NLMSG_LENGTH(sizeof(error->error)) || answer.header.nlmsg_type != NLMSG_ERROR
	               ? -EPROTO : error->error;
}

/* An address on loopback makes all of its range local, in IPv4. */
static long add_v4(long netlink)
{
	const struct add_address add = {
		.header = { .nlmsg_len = sizeof(add), .nlmsg_type = RTM_NEWADDR,
		            .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL },
		.message = { .ifa_family = AF_INET, .ifa_prefixlen = EGRESS_BITS_V4, .ifa_scope = RT_SCOPE_HOST,
		             .ifa_index = LOOPBACK_INDEX },
		.local_header = { RTA_LENGTH(sizeof(add.local)), IFA_LOCAL },
		.local = { 198, 18, 0, 1 }, /* EGRESS_ADDRESS */
	};
	long result = tell_kernel(netlink, &add.header);
	/* In a network that has had listeners before. */
	return result == -EEXIST ? 0 : result;
}

/* In IPv6 that takes a route, and no address: with one, programs would prefer it to IPv4 for no gain. */
static long add_v6(long netlink)
{
	const struct add_route add = {
		.header = { .nlmsg_len = sizeof(add), .nlmsg_type = RTM_NEWROUTE,
		            .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL },
		.message = { .rtm_family = AF_INET6, .rtm_dst_len = EGRESS_BITS_V6, .rtm_table = RT_TABLE_LOCAL,
		             .rtm_protocol = RTPROT_BOOT, .rtm_scope = RT_SCOPE_UNIVERSE, .rtm_type = RTN_LOCAL },
		.to_header = { RTA_LENGTH(sizeof(add.to)), RTA_DST },
		.to = { 0x20, 0x01, 0x00, 0x02 }, /* EGRESS_ROUTE_V6 */
		.over_header = { RTA_LENGTH(sizeof(add.over)), RTA_OIF },
		.over = LOOPBACK_INDEX,
	};
	return tell_kernel(netlink, &add.header);
}

/* *ret_v6: whether there is IPv6 here. */
static int make_local(struct launch *launch, bool *ret_v6)
{
	long netlink = sys_3(SYS_socket, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	long result = netlink < 0 ? netlink : add_v4(netlink);
	if (result >= 0) {
		long added = add_v6(netlink);
		*ret_v6 = added >= 0 || added == -EEXIST;
	}
	if (netlink >= 0)
		sys_1(SYS_close, netlink);
	return result < 0 ? unavailable(launch, result, EGRESS_ADDRESS,
	                                "cannot give the sandbox the addresses of its proxy") :
	                    0;
}

/* ---- listeners -------------------------------------------------------------------------------------------------- */

static long bind_v4(long fd, const struct egress_listener *listener)
{
	struct sockaddr_in name = { .sin_family = AF_INET, .sin_port = __builtin_bswap16(listener->port) };
	for (size_t i = 0; i < sizeof(name.sin_addr); i++)
		((uint8_t *)&name.sin_addr)[i] = listener->address.bytes[i];
	return sys_3(SYS_bind, fd, &name, sizeof(name));
}

/* An address that is local by a route alone can be bound to, but must be asked for so. */
static long bind_v6(long fd, const struct egress_listener *listener)
{
	static const int yes = 1;
	struct sockaddr_in6 name = { .sin6_family = AF_INET6, .sin6_port = __builtin_bswap16(listener->port) };
	for (size_t i = 0; i < sizeof(name.sin6_addr); i++)
		((uint8_t *)&name.sin6_addr)[i] = listener->address.bytes[i];
	long result = sys_5(SYS_setsockopt, fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes));
	if (result >= 0)
		result = sys_5(SYS_setsockopt, fd, IPPROTO_IPV6, IPV6_FREEBIND, &yes, sizeof(yes));
	return result < 0 ? result : sys_3(SYS_bind, fd, &name, sizeof(name));
}

static long make_listener(const struct egress_listener *listener)
{
	bool v6 = listener->address.length == 16, datagrams = listener->use == EGRESS_DNS_UDP;
	long fd = sys_3(SYS_socket, v6 ? AF_INET6 : AF_INET,
	                (datagrams ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return fd;
	/* The command is at the other end of loopback, where there is no congestion and no loss: the host's algorithm
	 * may delay segments nevertheless (bbr does, by timers). Accepted sockets inherit it. Every kernel has reno,
	 * and no privilege is needed. */
	if (!datagrams)
		sys_5(SYS_setsockopt, fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
	long result = -EADDRINUSE;
	/* A proxy that had it before may be on its way out. */
	for (int tries = 0; tries < IN_USE_TRIES && result == -EADDRINUSE; tries++) {
		struct timespec pause = { .tv_nsec = 2000000 };
		if (tries)
			sys_2(SYS_nanosleep, &pause, NULL);
		result = v6 ? bind_v6(fd, listener) : bind_v4(fd, listener);
	}
	if (result >= 0 && !datagrams)
		result = sys_2(SYS_listen, fd, BACKLOG);
	if (result >= 0)
		return fd;
	sys_1(SYS_close, fd);
	return result;
}

/* The caller waits for the start and reads later: what does not fit must fail, not wait. */
static long hand_out(const struct launch *launch, const int *fds, size_t count, size_t covered, uint64_t made)
{
	struct control_message message = { .kind = CONTROL_LISTENERS, .value = (int32_t)covered, .made = made };
	struct iovec part = { &message, sizeof(message) };
	union {
		struct cmsghdr header;
		unsigned char space[CMSG_SPACE(CONTROL_LISTENERS_MAX * sizeof(int))];
	} control;
	control.header = (struct cmsghdr){ .cmsg_len = CMSG_LEN(count * sizeof(int)), .cmsg_level = SOL_SOCKET,
	                                   .cmsg_type = SCM_RIGHTS };
	for (size_t i = 0; i < count; i++)
		((int *)(void *)CMSG_DATA(&control.header))[i] = fds[i];
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = count ? &control : NULL,
	                         .msg_controllen = count ? CMSG_SPACE(count * sizeof(int)) : 0 };
	return launch_hand_out(launch->control_fd, &header);
}

/* As many as fit into one message, beginning with this one. Where IPv6 is missing, its listeners are. */
static int listen_from(struct launch *launch, size_t first, bool v6)
{
	int fds[CONTROL_LISTENERS_MAX];
	size_t count = 0, covered = 0;
	uint64_t made = 0;
	long result = 0;
	for (; covered < CONTROL_LISTENERS_MAX && first + covered < launch->listener_count && result >= 0; covered++) {
		const struct egress_listener *listener = &launch->listeners[first + covered];
		bool is_v6 = listener->address.length == 16;
		long fd = is_v6 && !v6 ? -EAFNOSUPPORT : make_listener(listener);
		if (fd < 0) {
			result = is_v6 && fd == -EAFNOSUPPORT ? 0 : fd;
			continue;
		}
		made |= UINT64_C(1) << covered;
		fds[count++] = (int)fd;
	}
	/* The caller waits for a message about all of them. */
	bool none = result < 0 && launch->listeners_optional;
	if (result >= 0 || none)
		result = hand_out(launch, fds, none ? 0 : count, none ? launch->listener_count - first : covered,
		                  none ? 0 : made);
	/* They are out, or of no use; the command must not even begin with them. */
	for (size_t i = 0; i < count; i++)
		sys_1(SYS_close, fds[i]);
	if (result == -EADDRINUSE && !launch->listeners_optional)
		return launch_fail(launch, CORDON_E_SESSION_BUSY, result, "network", EGRESS_ADDRESS,
		                   "something that runs in the session's sandbox listens at the port of a listed host",
		                   "end it, or let it listen at another port: cordon session show says what runs");
	return result < 0 ? unavailable(launch, result, EGRESS_ADDRESS,
	                                "cannot listen for the command's connections") : 0;
}

int launch_listen(struct launch *launch)
{
	bool v6 = false;
	if (!launch->listener_count)
		return 0;
	if (make_local(launch, &v6) < 0 && !launch->listeners_optional)
		return -1;
	for (size_t first = 0; first < launch->listener_count; first += CONTROL_LISTENERS_MAX)
		if (listen_from(launch, first, v6) < 0)
			return -1;
	return 0;
}

void launch_visitor(void *argument)
{
	struct launch *launch = argument;
	long result = sys_2(SYS_setns, launch->user_fd, CLONE_NEWUSER);
	if (result >= 0)
		result = sys_2(SYS_setns, launch->network_fd, CLONE_NEWNET);
	if (result < 0)
		unavailable(launch, result, "setns", "cannot enter the network that was made for the command");
	else if ((result = wait_for_loopback(launch->maker_fd)) < 0)
		unavailable(launch, result, "lo", "the loopback interface of the command's network does not come up");
	else
		launch_listen(launch);
	sys_exit(0);
}

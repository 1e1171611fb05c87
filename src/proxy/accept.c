/* Listeners: see accept.h. */
#include "proxy/accept.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy/client.h"
#include "proxy/connection.h"
#include "proxy/dial.h"
#include "proxy/loop.h"
#include "proxy/name-service.h"
#include "proxy/supervisor.h"

#define TURN 32                         /* so many at a time, then others have theirs */
#define AGAIN_US 100000
#define NAME_SERVICE_MAX 32             /* connections to it */

/* The address that the client dialled. */
static bool local_address(int fd, struct address *ret_address, uint16_t *ret_port)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} local = { 0 };
	socklen_t length = sizeof(local);
	struct address address = { 0 };
	if (getsockname(fd, &local.any, &length) < 0)
		return false;
	if (local.any.sa_family == AF_INET) {
		address.length = 4;
		memcpy(address.bytes, &local.v4.sin_addr, 4);
		*ret_port = ntohs(local.v4.sin_port);
	} else if (local.any.sa_family == AF_INET6) {
		address.length = 16;
		memcpy(address.bytes, &local.v6.sin6_addr, 16);
		*ret_port = ntohs(local.v6.sin6_port);
	} else {
		return false;
	}
	*ret_address = address;
	return true;
}

static void take_client(struct proxy *proxy, int fd)
{
	struct address inside = { 0 };
	uint16_t port;
	bool is_known = local_address(fd, &inside, &port);
	struct connection *connection = connection_open(proxy, fd, PHASE_CLIENT);
	if (!connection)
		return;
	if (is_known)
		connection->inside = inside;
	client_begin(connection);
}

/* What a client means that dialled this address: a name, or a service of the host. */
static bool host_at(const struct proxy *proxy, const struct address *address, uint16_t port, struct host *ret_host)
{
	struct host host = { .form = HOST_ADDRESS, .address = *address, .port = port };
	address_text(address, host.name);
	if (!host_is_loopback(&host) || !rules_allow(&proxy->rules, &host)) {
		const char *name = rules_name_at(&proxy->rules, address);
		if (!name || host_parse(name, strlen(name), &host))
			return false;
		host.port = port;
	}
	*ret_host = host;
	return true;
}

static void take_forward(struct proxy *proxy, int fd)
{
	struct address address;
	uint16_t port = 0;
	struct host host;
	bool is_known = local_address(fd, &address, &port) && host_at(proxy, &address, port, &host);
	struct connection *connection = connection_open(proxy, fd, PHASE_CLIENT);
	if (!connection)
		return;
	connection->way = PROXY_BY_ADDRESS;
	if (!is_known) {
		connection_drop(connection, PROXY_DENIED, "the address that was dialled belongs to no allowed name");
		return;
	}
	connection->host = host;
	dial_begin(connection);
	connection_step(connection);
}

/* From a port of this machine's to one inside: nothing is judged, for who published it allowed it. */
static void take_published(struct proxy *proxy, int fd, uint16_t port)
{
	static const struct address loopback = { { 127, 0, 0, 1 }, 4 };
	struct connection *connection = connection_open(proxy, fd, PHASE_CLIENT);
	if (!connection)
		return;
	connection->way = PROXY_PUBLISHED;
	connection->host =
		(struct host){ .form = HOST_ADDRESS, .name = EGRESS_LOOPBACK_V4, .address = loopback, .port = port };
	dial_published(connection);
	connection_step(connection);
}

static void take_names(struct proxy *proxy, int fd)
{
	struct connection *connection =
		proxy->name_service_live < NAME_SERVICE_MAX ? connection_open(proxy, fd, PHASE_NAMES) : NULL;
	if (connection)
		name_service_begin(connection);
	else if (proxy->name_service_live >= NAME_SERVICE_MAX)
		close(fd);
}

static void accept_fn(struct watch *watch, uint32_t events)
{
	static void (*const take[EGRESS_USE_MAX])(struct proxy *proxy, int fd) = {
		[EGRESS_PROXY] = take_client,
		[EGRESS_DNS_TCP] = take_names,
		[EGRESS_FORWARD] = take_forward,
	};
	struct listener *listener = (struct listener *)((char *)watch - offsetof(struct listener, watch));
	struct proxy *proxy = listener->proxy;
	(void)events;
	for (int i = 0; i < TURN && proxy->live < proxy->settings.connections && !proxy->supervisor_is_full; i++) {
		int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			if (listener->use == EGRESS_PUBLISHED)
				take_published(proxy, fd, listener->port);
			else
				take[listener->use](proxy, fd);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
			proxy->accept_again_us = proxy->now_us + AGAIN_US;
			loop_expect(proxy, proxy->accept_again_us);
		}
		if (errno != EINTR && errno != ECONNABORTED)
			return;
	}
}

static void name_fn(struct watch *watch, uint32_t events)
{
	struct listener *listener = (struct listener *)((char *)watch - offsetof(struct listener, watch));
	(void)events;
	name_service_receive(listener->proxy, listener->fd);
}

static int watch_listener(struct listener *listener, int operation, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = &listener->watch };
	return epoll_ctl(listener->proxy->epoll_fd, operation, listener->fd, &event);
}

int accept_open(struct proxy *proxy)
{
	proxy->is_accepting = true;
	for (size_t i = 0; i < proxy->listener_count; i++) {
		struct listener *listener = &proxy->listeners[i];
		listener->proxy = proxy;
		listener->watch.fn = listener->use == EGRESS_DNS_UDP ? name_fn : accept_fn;
		if (watch_listener(listener, EPOLL_CTL_ADD, EPOLLIN) < 0)
			return -1;
	}
	return 0;
}

void accept_update(struct proxy *proxy)
{
	bool may = proxy->live < proxy->settings.connections && !proxy->supervisor_is_full &&
	           proxy->now_us >= proxy->accept_again_us;
	if (may == proxy->is_accepting)
		return;
	proxy->is_accepting = may;
	for (size_t i = 0; i < proxy->listener_count; i++)
		if (proxy->listeners[i].use != EGRESS_DNS_UDP &&
		    watch_listener(&proxy->listeners[i], EPOLL_CTL_MOD, may ? EPOLLIN : 0) < 0)
			proxy_give_up();
}

/* Others have these sockets, too, so that epoll would go on telling of them. */
void accept_close(struct proxy *proxy)
{
	for (size_t i = 0; i < proxy->listener_count; i++) {
		(void)!watch_listener(&proxy->listeners[i], EPOLL_CTL_DEL, 0);
		close(proxy->listeners[i].fd);
	}
	proxy->listener_count = 0;
}

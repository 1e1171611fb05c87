/* Connections: see connection.h. */
#include "proxy/connection.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/http.h"
#include "net/resolve.h"
#include "net/socks.h"
#include "proxy/client.h"
#include "proxy/dial.h"
#include "proxy/exchange.h"
#include "proxy/loop.h"
#include "proxy/name-service.h"
#include "proxy/relay.h"
#include "proxy/supervisor.h"

#define FAREWELL_MS 2000
#define OPEN_US 1000000
#define FAREWELL_BYTES ((size_t)1 << 20)

struct phase_row {
	void (*step)(struct connection *connection);
	void (*expire)(struct connection *connection);
};
static const struct phase_row phases[PHASE_MAX];

/* ---- sockets ---------------------------------------------------------------------------------------------------- */

static void on_side(struct watch *watch, uint32_t events)
{
	struct side *side = (struct side *)((char *)watch - offsetof(struct side, watch));
	struct connection *connection = side->connection;
	/* What epoll told before this socket was there is of another, in whose place it is now. */
	if (connection->phase == PHASE_DEAD || side->fd < 0 || side->round == connection->proxy->round)
		return;
	side->broken |= events & EPOLLERR;
	side->readable |= events & (EPOLLIN | EPOLLRDHUP | EPOLLERR | EPOLLHUP);
	side->writable |= events & (EPOLLOUT | EPOLLERR | EPOLLHUP);
	connection_step(connection);
}

static int watch_side(struct connection *connection, struct side *side, int fd)
{
	static const int on = 1;
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = &side->watch };
	*side = (struct side){
		.watch = { on_side }, .connection = connection, .fd = fd, .round = connection->proxy->round
	};
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (epoll_ctl(connection->proxy->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0)
		return 0;
	close(fd);
	side->fd = -1;
	return -1;
}

static void close_side(struct side *side, bool reset)
{
	static const struct linger at_once = { .l_onoff = 1 };
	if (side->fd < 0)
		return;
	if (reset)
		setsockopt(side->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	close(side->fd);
	side->fd = -1;
	side->readable = side->writable = false;
}

int connection_watch_server(struct connection *connection, int fd)
{
	return watch_side(connection, &connection->server, fd);
}

void connection_close_server(struct connection *connection, bool reset)
{
	close_side(&connection->server, reset);
}

/* ---- life ------------------------------------------------------------------------------------------------------- */

struct connection *connection_open(struct proxy *proxy, int fd, enum phase phase)
{
	struct connection *connection = calloc(1, sizeof(*connection));
	if (!connection) {
		close(fd);
		return NULL;
	}
	*connection = (struct connection){ .proxy = proxy, .phase = phase, .server.fd = -1, .started_us = proxy->now_us,
	                                   .deadline_us = NEVER, .open_us = NEVER, .server.connection = connection };
	if (watch_side(connection, &connection->client, fd) < 0) {
		free(connection);
		return NULL;
	}
	connection->next = proxy->connections;
	connection->link = &proxy->connections;
	if (connection->next)
		connection->next->link = &connection->next;
	proxy->connections = connection;
	proxy->live++;
	proxy->name_service_live += phase == PHASE_NAMES;
	return connection;
}

static void release(struct connection *connection)
{
	if (connection->lookup)
		lookup_cancel(connection->lookup);
	connection->lookup = NULL;
	dial_free(connection);
	exchange_free(connection);
	relay_free(connection);
	buffer_free(&connection->out.head);
	buffer_free(&connection->out.bytes);
	buffer_free(&connection->in.head);
	buffer_free(&connection->in.bytes);
	connection->out.cleared = connection->in.cleared = 0;
}

static void bury(struct connection *connection, bool reset)
{
	struct proxy *proxy = connection->proxy;
	proxy->name_service_live -= connection->phase == PHASE_NAMES;
	connection->phase = PHASE_DEAD;
	release(connection);
	close_side(&connection->client, reset);
	close_side(&connection->server, reset);
	*connection->link = connection->next;
	if (connection->next)
		connection->next->link = connection->link;
	connection->next = proxy->dead;
	proxy->dead = connection;
	proxy->live--;
}

void connection_free_dead(struct proxy *proxy)
{
	for (struct connection **at = &proxy->dead, *connection; (connection = *at);) {
		if (connection->is_busy) {
			at = &connection->next;
			continue;
		}
		*at = connection->next;
		free(connection);
	}
}

void connection_step(struct connection *connection)
{
	enum phase before;
	do {
		before = connection->phase;
		phases[before].step(connection);
	} while (connection->phase != before);
}

void connection_expire(struct connection *connection)
{
	connection->deadline_us = NEVER;
	phases[connection->phase].expire(connection);
	connection_step(connection);
}

void connection_expect(struct connection *connection, uint64_t ms)
{
	connection->deadline_us = ms ? connection->proxy->now_us + ms * 1000 : NEVER;
	loop_expect(connection->proxy, connection->deadline_us);
}

/* ---- what became of it ------------------------------------------------------------------------------------------ */

static struct proxy_message row_of(const struct connection *connection, enum proxy_decision decision)
{
	struct proxy_message message = { .kind = PROXY_CONNECTION };
	message.connection.way = connection->way;
	message.connection.decision = (uint8_t)decision;
	message.connection.count = 1;
	message.connection.command = connection->command;
	if (!connection->host.port)
		return message;
	message.connection.port = connection->host.port;
	message.connection.outside = connection->is_outside;
	message.connection.unresolved = connection->unresolved && decision == PROXY_FAILED;
	message.connection.address = connection->address;
	message.connection.inside = connection->inside;
	bool is_published = connection->way == PROXY_PUBLISHED;
	message.connection.bytes_in = is_published ? connection->out.moved : connection->in.moved;
	message.connection.bytes_out = is_published ? connection->in.moved : connection->out.moved;
	message.connection.duration_us = connection->proxy->now_us - connection->started_us;
	host_text(&connection->host, message.host);
	return message;
}

void connection_expect_open(struct connection *connection)
{
	connection->open_us = connection->proxy->now_us + OPEN_US;
	loop_expect(connection->proxy, connection->open_us);
}

void connection_tell_open(struct connection *connection)
{
	struct proxy_message message = row_of(connection, PROXY_ALLOWED);
	message.connection.open = 1;
	connection->open_us = NEVER;
	supervisor_tell(connection->proxy, &message);
}

void connection_tell(struct connection *connection, enum proxy_decision decision, unsigned status, const char *why)
{
	struct proxy *proxy = connection->proxy;
	struct proxy_message message = row_of(connection, decision);
	connection->has_row = false;
	connection->open_us = NEVER;
	message.connection.status = (uint16_t)status;
	snprintf(message.text, sizeof(message.text), "%s", why);
	proxy->totals.totals.connections += decision == PROXY_ALLOWED;
	proxy->totals.totals.denied += decision == PROXY_DENIED;
	proxy->totals.totals.failed += decision == PROXY_FAILED;
	proxy->totals.totals.bytes_in += connection->in.moved;
	proxy->totals.totals.bytes_out += connection->out.moved;
	connection->in.moved = connection->out.moved = 0;
	if (connection->host.port || !supervisor_count(proxy, &message))
		supervisor_tell(proxy, &message);
}

void connection_end(struct connection *connection, enum proxy_decision decision, const char *why, bool reset)
{
	if (connection->has_row)
		connection_tell(connection, decision, 0, why);
	bury(connection, reset);
}

void connection_end_all(struct proxy *proxy, const char *why)
{
	while (proxy->connections)
		connection_end(proxy->connections,
		               proxy->connections->server.fd >= 0 ? PROXY_ALLOWED : PROXY_FAILED, why, true);
}

void connection_end_command(struct proxy *proxy, uint32_t command, const char *why)
{
	for (struct connection *each = proxy->connections, *next; each; each = next) {
		next = each->next;
		if (each->command == command)
			connection_end(each, each->server.fd >= 0 ? PROXY_ALLOWED : PROXY_FAILED, why, true);
	}
}

/* One that waits for its client to say which host is judged by the rules of then. */
static bool is_uncovered(const struct connection *connection)
{
	bool has_host = connection->phase == PHASE_RESOLVE || connection->phase == PHASE_CONNECT ||
	                connection->phase == PHASE_TUNNEL || connection->phase == PHASE_EXCHANGE ||
	                connection->server.fd >= 0;
	return has_host && !rules_allow(&connection->proxy->rules, &connection->host);
}

void connection_end_uncovered(struct proxy *proxy, const char *why)
{
	for (struct connection *connection = proxy->connections, *next; connection; connection = next) {
		next = connection->next;
		if (is_uncovered(connection))
			connection_end(connection,
			               connection->server.fd >= 0 ? PROXY_ALLOWED : PROXY_DENIED, why, true);
	}
}

void connection_drop(struct connection *connection, enum proxy_decision decision, const char *why)
{
	connection->host = (struct host){ 0 };
	connection_tell(connection, decision, 0, why);
	bury(connection, true);
}

static enum socks_reply socks_reply_of(unsigned status)
{
	static const struct {
		unsigned status;
		enum socks_reply reply;
	} rows[] = {
		{ 403, SOCKS_DENIED }, { 502, SOCKS_HOST_UNREACHABLE }, { 504, SOCKS_EXPIRED },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].status == status)
			return rows[i].reply;
	return SOCKS_FAILED;
}

/* False: there is no answer but a reset. */
static bool write_refusal(struct connection *connection, unsigned status, const char *said)
{
	char text[HTTP_REFUSAL_SIZE], host[HOST_TEXT_SIZE] = "", line[2 * HOST_TEXT_SIZE + RESOLVE_WHY_SIZE + 32];
	uint8_t reply[SOCKS_REPLY_SIZE];
	struct buffer *head = &connection->in.head;
	if (connection->host.port)
		host_text(&connection->host, host);
	switch (connection->way) {
	case PROXY_BY_CONNECT:
	case PROXY_BY_HTTP:
		snprintf(line, sizeof(line), "%s%s%s%s%s%s%s", host, *host ? ": " : "", said,
		         connection->option ? "; to allow it: " : "", connection->option ? connection->option : "",
		         connection->option ? " " : "", connection->option ? host : "");
		return buffer_append(head, text, http_refusal_write(status, line, connection->is_head, text)) == 0;
	case PROXY_BY_SOCKS:
		socks_reply_write(socks_reply_of(status), reply);
		return buffer_append(head, (const char *)reply, sizeof(reply)) == 0;
	default:
		return false;
	}
}

void connection_refuse(struct connection *connection, enum proxy_decision decision, unsigned status, const char *why)
{
	connection_refuse_saying(connection, decision, status, why, why);
}

void connection_refuse_saying(struct connection *connection, enum proxy_decision decision, unsigned status,
                              const char *why, const char *said)
{
	bool is_http = connection->way == PROXY_BY_CONNECT || connection->way == PROXY_BY_HTTP;
	connection_tell(connection, decision, is_http ? status : 0, why);
	release(connection);
	close_side(&connection->server, true);
	if (write_refusal(connection, status, said))
		connection_farewell(connection);
	else
		bury(connection, true);
}

/* ---- farewell --------------------------------------------------------------------------------------------------- */

void connection_farewell(struct connection *connection)
{
	connection->phase = PHASE_FAREWELL;
	connection->scanned = 0;
	connection_expect(connection, FAREWELL_MS);
}

/* A socket that is closed with unread input is reset, and the client may lose the last bytes it was sent: so its
 * further input is read and discarded. */
void connection_farewell_step(struct connection *connection)
{
	struct side *client = &connection->client;
	struct flow *in = &connection->in;
	while (buffer_length(&in->head)) {
		ssize_t sent =
			client->writable ? buffer_send(&in->head, client->fd, buffer_length(&in->head)) : -EAGAIN;
		if (sent == -EAGAIN) {
			client->writable = false;
			return;
		}
		if (sent < 0) {
			bury(connection, true);
			return;
		}
	}
	if (!in->was_passed_on)
		shutdown(client->fd, SHUT_WR);
	in->was_passed_on = true;
	for (; client->readable && connection->scanned < FAREWELL_BYTES;) {
		ssize_t got = buffer_receive(&connection->out.bytes, client->fd, 16384, 16384);
		buffer_free(&connection->out.bytes);
		if (got == -EAGAIN) {
			client->readable = false;
			return;
		}
		if (got <= 0)
			break;
		connection->scanned += (size_t)got;
	}
	if (client->readable)
		bury(connection, false);
}

static void expire_farewell(struct connection *connection)
{
	bury(connection, false);
}

static void nothing(struct connection *connection)
{
	(void)connection;
}

static const struct phase_row phases[PHASE_MAX] = {
	[PHASE_CLIENT] = { client_step, client_expire },
	[PHASE_ASK] = { dial_wait_step, nothing },
	[PHASE_RESOLVE] = { dial_wait_step, nothing },
	[PHASE_CONNECT] = { dial_step, dial_expire },
	[PHASE_TUNNEL] = { relay_step, relay_expire },
	[PHASE_EXCHANGE] = { exchange_step, exchange_expire },
	[PHASE_FAREWELL] = { connection_farewell_step, expire_farewell },
	[PHASE_NAMES] = { name_service_step, name_service_expire },
	[PHASE_DEAD] = { nothing, nothing },
};

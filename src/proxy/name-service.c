/* The name service: see name-service.h. */
#include "proxy/name-service.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "net/dns-answer.h"
#include "proxy/loop.h"
#include "proxy/relay.h"
#include "proxy/supervisor.h"

#define TURN 64                 /* questions, then others have theirs */
#define TTL_S 60
#define MESSAGE_MAX 4096        /* no question is that long */
#define WAIT_MS 10000

static bool count_denied(struct proxy *proxy, const char *name, const char *why)
{
	struct proxy_message message = { .kind = PROXY_NAME_DENIED };
	struct host host;
	message.connection.way = PROXY_BY_DNS;
	message.connection.decision = PROXY_DENIED;
	message.connection.count = 1;
	if (host_parse(name, strlen(name), &host) || host.form != HOST_NAME)
		message.kind = PROXY_CONNECTION; /* there is no name to tell */
	else
		snprintf(message.host, sizeof(message.host), "%s", host.name);
	snprintf(message.text, sizeof(message.text), "%s", why);
	bool is_counted = supervisor_count(proxy, &message);
	proxy->totals.totals.denied += is_counted;
	return is_counted;
}

/* The sandbox itself: what is asked for by it leads nowhere else. */
static bool is_own_name(const char *name)
{
	static const char localhost[] = ".localhost";
	size_t length = strlen(name), size = sizeof(localhost) - 1;
	return !strcmp(name, "cordon") || !strcmp(name, "localhost") ||
	       (length > size && !strcmp(name + length - size, localhost));
}

static const struct inside_name *find_name(struct proxy *proxy, const char *name, bool *ret_covered)
{
	static const struct inside_name own = { .v4 = { { 127, 0, 0, 1 }, 4 }, .v6 = { { [15] = 1 }, 16 } };
	const struct inside_name *found = rules_inside(&proxy->rules, name, ret_covered);
	return found || *ret_covered || !is_own_name(name) ? found : &own;
}

/* How long the answer is; 0: there is none. */
static size_t answer(struct proxy *proxy, const uint8_t *bytes, size_t length, bool is_udp,
                     uint8_t ret_answer[DNS_TCP_MAX])
{
	struct dns_query query;
	struct address addresses[2];
	size_t count = 0;
	bool is_covered = false;
	int rcode = dns_query_read(bytes, length, &query);
	if (rcode < 0)
		return 0;
	const struct inside_name *inside =
		rcode == DNS_NOERROR && *query.name ? find_name(proxy, query.name, &is_covered) : NULL;
	if (inside && inside->v4.length)
		addresses[count++] = inside->v4;
	if (inside && inside->v6.length && proxy->has_v6)
		addresses[count++] = inside->v6;
	if (rcode == DNS_NOERROR && !inside) {
		rcode = is_covered ? DNS_SERVFAIL : DNS_NXDOMAIN;
		if (!count_denied(proxy, query.name, is_covered ? "there are too many names" :
		                  proxy->settings.offline ? PROXY_NO_NETWORK : "no rule allows it"))
			rcode = DNS_SERVFAIL;
	}
	return dns_answer_write(&query, (enum dns_rcode)rcode, addresses, count, TTL_S, is_udp, ret_answer);
}

void name_service_receive(struct proxy *proxy, int fd)
{
	uint8_t question[MESSAGE_MAX];
	uncleared uint8_t reply[DNS_TCP_MAX];
	for (int i = 0; i < TURN; i++) {
		struct sockaddr_storage from;
		socklen_t from_length = sizeof(from);
		ssize_t got = recvfrom(fd, question, sizeof(question), MSG_DONTWAIT | MSG_TRUNC,
		                       (struct sockaddr *)&from, &from_length);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return;
		size_t length = (size_t)got > sizeof(question) ? 0 : answer(proxy, question, (size_t)got, true, reply);
		/* What is not taken is asked again. */
		if (length)
			(void)!sendto(fd, reply, length, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&from,
			              from_length);
	}
}

void name_service_begin(struct connection *connection)
{
	connection->way = PROXY_BY_DNS;
	connection_expect(connection, WAIT_MS);
}

/* True where a question was answered, or the connection is over. */
static bool answer_next(struct connection *connection)
{
	struct buffer *bytes = &connection->out.bytes;
	uncleared uint8_t reply[2 + DNS_TCP_MAX];
	const uint8_t *at = (const uint8_t *)buffer_at(bytes);
	long length = buffer_length(bytes) ? dns_tcp_message(at, buffer_length(bytes)) : -1;
	if (length < 0)
		return false;
	size_t replied = answer(connection->proxy, at + 2, (size_t)length, false, reply + 2);
	reply[0] = (uint8_t)(replied >> 8);
	reply[1] = (uint8_t)replied;
	buffer_drop(bytes, (size_t)length + 2);
	if (!replied || buffer_append(&connection->in.head, (const char *)reply, replied + 2) < 0)
		connection_end(connection, PROXY_FAILED, "", true);
	else
		connection_expect(connection, WAIT_MS);
	return true;
}

void name_service_step(struct connection *connection)
{
	struct side *client = &connection->client;
	for (int turn = 0; connection->phase == PHASE_NAMES; turn++) {
		if (turn == TURN) {
			loop_again(connection);
			return;
		}
		int rc = relay_flush(&connection->in, client);
		if (rc > 0)
			return;
		if (rc == 0 && answer_next(connection))
			continue;
		if (rc == 0 && !client->readable)
			return;
		ssize_t got = rc < 0 ? rc : buffer_receive(&connection->out.bytes, client->fd, 512, MESSAGE_MAX);
		if (got == -EAGAIN)
			client->readable = false;
		else if (got <= 0)
			connection_end(connection, PROXY_FAILED, "", got < 0);
	}
}

void name_service_expire(struct connection *connection)
{
	connection_end(connection, PROXY_FAILED, "", false);
}

/* Judging and dialling: see dial.h. */
#include "proxy/dial.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/http.h"
#include "net/resolve.h"
#include "net/socks.h"
#include "proxy/exchange.h"
#include "proxy/loop.h"
#include "proxy/relay.h"
#include "proxy/supervisor.h"

#define ATTEMPT_MS 250          /* the least that an address gets while others are left */

/* A service of the host may listen at either. */
static const struct address loopback[] = { { { 127, 0, 0, 1 }, 4 }, { { [15] = 1 }, 16 } };
static const char not_public[] = "its address is not of the public Internet";

/* The addresses to try, in turn. */
struct dial {
	size_t count, at;
	uint64_t deadline_us;
	struct address addresses[RESOLVE_ADDRESSES_MAX];
};

void dial_free(struct connection *connection)
{
	free(connection->dial);
	connection->dial = NULL;
}

/* ---- connecting ------------------------------------------------------------------------------------------------- */

static void connected(struct connection *connection)
{
	uint8_t reply[SOCKS_REPLY_SIZE];
	int rc = 0;
	dial_free(connection);
	connection_expect_open(connection);
	if (connection->way == PROXY_BY_HTTP) {
		exchange_begin(connection);
		return;
	}
	if (connection->way == PROXY_BY_CONNECT) {
		rc = buffer_append(&connection->in.head, HTTP_CONNECTED, sizeof(HTTP_CONNECTED) - 1);
	} else if (connection->way == PROXY_BY_SOCKS) {
		socks_reply_write(SOCKS_SUCCEEDED, reply);
		rc = buffer_append(&connection->in.head, (const char *)reply, sizeof(reply));
	}
	if (rc < 0)
		connection_end(connection, PROXY_FAILED, "out of memory", true);
	else
		relay_begin(connection);
}

static int dial_one(struct connection *connection, const struct address *address)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(connection->host.port) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(connection->host.port) };
	bool is_v4 = address->length == 4;
	memcpy(is_v4 ? (void *)&v4.sin_addr : (void *)&v6.sin6_addr, address->bytes, address->length);
	int fd = socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, is_v4 ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6, is_v4 ? sizeof(v4) : sizeof(v6)) < 0 &&
	    errno != EINPROGRESS) {
		int rc = -errno;
		close(fd);
		return rc;
	}
	return connection_watch_server(connection, fd) < 0 ? -ENOMEM : 0;
}

/* Not all the time that is left for the first, where others could still answer. */
static void expect_attempt(struct connection *connection)
{
	const struct dial *dial = connection->dial;
	uint64_t now = connection->proxy->now_us, left = dial->deadline_us > now ? dial->deadline_us - now : 0;
	uint64_t share = left / (dial->count - dial->at + 1);
	if (dial->at < dial->count && share < ATTEMPT_MS * 1000)
		share = ATTEMPT_MS * 1000;
	connection->deadline_us = now + (share < left ? share : left);
	loop_expect(connection->proxy, connection->deadline_us);
}

/* The next address, or the end. `error` is the result of the one before. */
static void dial_next(struct connection *connection, int error)
{
	struct dial *dial = connection->dial;
	char text[ADDRESS_TEXT_SIZE], why[RESOLVE_WHY_SIZE];
	connection_close_server(connection, true);
	while (dial->at < dial->count && connection->proxy->now_us < dial->deadline_us) {
		connection->address = dial->addresses[dial->at++];
		error = -dial_one(connection, &connection->address);
		if (error == 0) {
			connection->phase = PHASE_CONNECT;
			expect_attempt(connection);
			return;
		}
	}
	address_text(&connection->address, text);
	const char *description = strerrordesc_np(error);
	snprintf(why, sizeof(why), "%s cannot be reached: %s", connection->way == PROXY_PUBLISHED ? "the port inside" :
	         host_is_loopback(&connection->host) ? "the host's service" : text,
	         error == ETIMEDOUT ? "it did not answer in time" : description ? description : "unknown error");
	connection_refuse_saying(connection, PROXY_FAILED, error == ETIMEDOUT ? 504 : 502, why,
	                         error == ETIMEDOUT ? "it did not answer in time" : "it cannot be reached");
}

void dial_step(struct connection *connection)
{
	int error = 0;
	socklen_t length = sizeof(error);
	if (connection->client.broken) {
		connection_end(connection, PROXY_FAILED, "the command broke it off", true);
	} else if (connection->server.writable) {
		if (getsockopt(connection->server.fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0)
			error = errno;
		connection->server.broken = false;
		if (error)
			dial_next(connection, error);
		else
			connected(connection);
	}
}

void dial_expire(struct connection *connection)
{
	dial_next(connection, ETIMEDOUT);
}

static void dial_addresses(struct connection *connection, const struct address *addresses, size_t count)
{
	struct dial *dial = calloc(1, sizeof(*dial));
	if (!dial) {
		connection_refuse(connection, PROXY_FAILED, 502, "out of memory");
		return;
	}
	memcpy(dial->addresses, addresses, count * sizeof(*addresses));
	dial->count = count;
	dial->deadline_us = connection->proxy->now_us + connection->proxy->settings.connect_ms * 1000;
	connection->dial = dial;
	dial_next(connection, ETIMEDOUT);
}

/* ---- resolving -------------------------------------------------------------------------------------------------- */

static void resolved(struct connection *connection, const struct resolution *resolution)
{
	static const struct {
		enum proxy_decision decision;
		unsigned status;
	} rows[RESOLVE_STATUS_MAX] = {
		[RESOLVE_FOUND] = { PROXY_DENIED, 403 },
		[RESOLVE_NAME_REFUSED] = { PROXY_DENIED, 403 },
		[RESOLVE_TOO_MANY] = { PROXY_DENIED, 403 },
		[RESOLVE_NOT_FOUND] = { PROXY_FAILED, 502 },
		[RESOLVE_FAILED] = { PROXY_FAILED, 502 },
		[RESOLVE_TIMED_OUT] = { PROXY_FAILED, 504 },
	};
	struct address addresses[RESOLVE_ADDRESSES_MAX];
	char why[RESOLVE_WHY_SIZE];
	bool is_at_site = resolution_is_at_site(resolution);
	if (!resolution->allowed && !(is_at_site && rules_private(&connection->proxy->rules, &connection->host))) {
		connection->unresolved = rows[resolution->status].decision == PROXY_FAILED;
		connection->option = is_at_site ? "--net-private" : NULL;
		for (size_t i = resolution->count; i > 0; i--)
			if (!resolution->addresses[i - 1].verdict.allowed)
				connection->address = resolution->addresses[i - 1].address;
		resolution_why(&connection->host, resolution, why);
		connection_refuse_saying(connection, rows[resolution->status].decision, rows[resolution->status].status,
		                         why, resolution->status == RESOLVE_FOUND ? not_public : why);
		return;
	}
	for (size_t i = 0; i < resolution->count; i++)
		addresses[i] = resolution->addresses[i].address;
	dial_addresses(connection, addresses, resolution->count);
}

static void on_resolved(void *arg, const struct resolution *resolution)
{
	struct connection *connection = arg;
	connection->lookup = NULL;
	resolved(connection, resolution);
	connection_step(connection);
}

/* The rules allow it, or a human does. */
static void resolve(struct connection *connection)
{
	struct proxy *proxy = connection->proxy;
	struct resolution resolution;
	connection->is_outside = true;
	connection_expect(connection, 0);
	if (host_is_loopback(&connection->host))
		dial_addresses(connection, loopback, ARRAY_SIZE(loopback));
	/* An address that a rule lists is dialled whatever the table says about it. One that was approved was judged
	 * before it was asked about. */
	else if (connection->host.form == HOST_ADDRESS)
		dial_addresses(connection, &connection->host.address, 1);
	else if (rules_static(&proxy->rules, &connection->host, &resolution))
		resolved(connection, &resolution);
	else if (resolver_start(proxy->resolver, &connection->host, on_resolved, connection, &connection->lookup,
	                        NULL) < 0)
		connection_refuse(connection, PROXY_FAILED, 502, "too many names are being resolved");
	else
		connection->phase = PHASE_RESOLVE;
}

void dial_wait_step(struct connection *connection)
{
	if (connection->client.broken)
		connection_end(connection, PROXY_FAILED, "the command broke it off", true);
}

/* ---- judging ---------------------------------------------------------------------------------------------------- */

static void deny(struct connection *connection, const char *why)
{
	connection->option = "--net";
	connection_refuse(connection, PROXY_DENIED, 403, why);
}

/* An address that no rule lists, and that the table refuses. It is not asked about: it can only be listed. */
static bool is_closed(struct connection *connection)
{
	const struct rules *rules = &connection->proxy->rules;
	char why[ADDRESS_WHY_SIZE], text[RESOLVE_WHY_SIZE];
	if (connection->host.form != HOST_ADDRESS)
		return false;
	struct address_verdict verdict =
		address_judge(&connection->host.address, rules->exemptions, rules->exemption_count);
	if (verdict.allowed)
		return false;
	address_why(&verdict, why);
	snprintf(text, sizeof(text), "no rule lists it, and it is %s", why);
	connection->option = "--net";
	connection_refuse_saying(connection, PROXY_DENIED, 403, text, not_public);
	return true;
}

/* One question for all that wait for the same host. */
static void ask(struct connection *connection)
{
	struct proxy *proxy = connection->proxy;
	struct proxy_message message = { .kind = PROXY_QUESTION };
	message.connection.inside = connection->inside;
	message.connection.command = connection->command;
	host_text(&connection->host, message.host);
	connection->phase = PHASE_ASK;
	connection_expect(connection, 0);
	for (const struct connection *other = proxy->connections; other; other = other->next)
		if (other != connection && other->phase == PHASE_ASK && other->host.port == connection->host.port &&
		    !strcmp(other->host.name, connection->host.name)) {
			connection->question = other->question;
			return;
		}
	message.id = connection->question = ++proxy->next_question;
	supervisor_tell(proxy, &message);
}

void dial_answered(struct proxy *proxy, const struct proxy_message *answer)
{
	bool remember = answer->answer.remember == 1, allowed = answer->answer.allowed == 1;
	for (struct connection *connection = proxy->connections, *next; connection; connection = next) {
		char host[HOST_TEXT_SIZE];
		next = connection->next;
		if (connection->phase != PHASE_ASK || connection->question != answer->id)
			continue;
		host_text(&connection->host, host);
		if (remember)
			rules_remember(&proxy->rules, host, allowed);
		remember = false;
		if (allowed)
			resolve(connection);
		else
			deny(connection, *answer->text ? answer->text : "it was not approved");
		connection_step(connection);
	}
}

static void begin(struct connection *connection)
{
	connection->has_row = true;
	connection->started_us = connection->proxy->now_us;
	connection->address = (struct address){ 0 };
	connection->is_outside = connection->unresolved = false;
	connection->option = NULL;
}

void dial_published(struct connection *connection)
{
	begin(connection);
	connection_expect(connection, 0);
	dial_addresses(connection, loopback, ARRAY_SIZE(loopback));
}

void dial_begin(struct connection *connection)
{
	struct proxy *proxy = connection->proxy;
	begin(connection);
	if (proxy->judged >= proxy->settings.total_connections) {
		connection_refuse(connection, PROXY_FAILED, 403, "the command has made as many connections as it may");
	} else if (!relay_allowance(proxy, 1)) {
		connection_refuse(connection, PROXY_FAILED, 403, relay_no_allowance);
	} else if (proxy->settings.offline) {
		proxy->judged++;
		deny(connection, PROXY_NO_NETWORK);
	} else if (rules_deny(&proxy->rules, &connection->host)) {
		deny(connection, "it was not approved");
	} else if (rules_allow(&proxy->rules, &connection->host)) {
		proxy->judged++;
		resolve(connection);
	} else if (proxy->settings.asks) {
		proxy->judged++;
		if (!is_closed(connection))
			ask(connection);
	} else {
		proxy->judged++;
		deny(connection, "no rule allows it");
	}
}

/* Requests of clients: see client.h. */
#include "proxy/client.h"

#include <errno.h>
#include <string.h>

#include "net/http.h"
#include "net/socks.h"
#include "proxy/dial.h"
#include "proxy/exchange.h"
#include "proxy/relay.h"

#define HEAD_MS 30000           /* for a head, from its first byte; or from the accept */
#define STEP 2048

static const char no_token[] = "it shows no token of a command that runs (the password in HTTP_PROXY)";

static uint64_t head_ms(const struct connection *connection)
{
	uint64_t idle_ms = connection->proxy->settings.idle_ms;
	return idle_ms && idle_ms < HEAD_MS ? idle_ms : HEAD_MS;
}

void client_begin(struct connection *connection)
{
	connection->way = PROXY_BY_HTTP;
	connection_expect(connection, head_ms(connection));
}

void client_again(struct connection *connection)
{
	connection->phase = PHASE_CLIENT;
	connection->spoke = buffer_length(&connection->out.bytes);
	connection->scanned = 0;
	connection->is_head = false;
	connection->host = (struct host){ 0 };
	connection->was_served = true;
	connection->started_us = connection->proxy->now_us;
	connection_expect(connection, connection->spoke ? head_ms(connection) : connection->proxy->settings.idle_ms);
}

static void malformed(struct connection *connection, unsigned status, const char *why)
{
	connection->host = (struct host){ 0 };
	connection_refuse(connection, PROXY_FAILED, status, why);
}

/* Some clients resolve the name first, by the name service inside, and then ask for the address they got. */
static void name_from_address(const struct proxy *proxy, struct host *host)
{
	uint16_t port = host->port;
	const char *name = host->form != HOST_ADDRESS ? NULL : rules_name_at(&proxy->rules, &host->address);
	if (name && !host_parse(name, strlen(name), host))
		host->port = port;
}

/* ---- HTTP ------------------------------------------------------------------------------------------------------- */

/* May this client use the proxy? Every request shows whose it is. */
static bool may_use(struct connection *connection, uint32_t command)
{
	connection->command = command;
	return command || !connection->proxy->settings.asks_token;
}

static void refuse_http(struct connection *connection, const struct http_request *request)
{
	connection->host = (struct host){ 0 };
	connection->is_head = request->method == HTTP_HEAD;
	connection_refuse(connection, PROXY_DENIED, 407, no_token);
}

/* Each: true when the phase has changed, false where more bytes are needed. */
static bool parse_http(struct connection *connection)
{
	struct buffer *bytes = &connection->out.bytes;
	size_t length = buffer_length(bytes);
	struct http_request request;
	const char *why = "";
	unsigned char first = (unsigned char)*buffer_at(bytes);
	if ((first < ' ' && first != '\r' && first != '\n') || first >= 0x7f) {
		malformed(connection, 400, "neither HTTP nor SOCKS 5");
		return true;
	}
	bool has_line = memchr(buffer_at(bytes) + connection->scanned, '\n', length - connection->scanned);
	connection->scanned = length;
	if (!has_line)
		return false;
	long head = http_request_parse(buffer_at(bytes), length, &request, &why);
	if (head == 0)
		return false;
	if (head < 0) {
		malformed(connection, (unsigned)-head, why);
		return true;
	}
	if (!may_use(connection, tokens_find_basic(&connection->proxy->tokens, request.authorization))) {
		refuse_http(connection, &request);
		return true;
	}
	/* Before the head is rewritten: the server is sent the name. */
	name_from_address(connection->proxy, &request.host);
	connection->host = request.host;
	connection->way = request.method == HTTP_CONNECT ? PROXY_BY_CONNECT : PROXY_BY_HTTP;
	connection->is_head = request.method == HTTP_HEAD;
	if (request.method != HTTP_CONNECT && exchange_prepare(connection, &request, (size_t)head) < 0) {
		connection_refuse(connection, PROXY_FAILED, 502, "out of memory");
		return true;
	}
	buffer_drop(bytes, (size_t)head);
	dial_begin(connection);
	return true;
}

/* ---- SOCKS ------------------------------------------------------------------------------------------------------ */

static bool refuse_socks(struct connection *connection, enum proxy_decision decision, const char *reply, size_t length,
                         const char *why)
{
	connection->host = (struct host){ 0 };
	connection_tell(connection, decision, 0, why);
	if (buffer_append(&connection->in.head, reply, length) < 0)
		connection_end(connection, PROXY_FAILED, "out of memory", true);
	else
		connection_farewell(connection);
	return true;
}

static bool parse_socks_request(struct connection *connection)
{
	struct buffer *bytes = &connection->out.bytes;
	const char *why = "";
	uint8_t reply[SOCKS_REPLY_SIZE];
	if (!buffer_length(bytes))
		return false;
	long used =
		socks_request_parse((const uint8_t *)buffer_at(bytes), buffer_length(bytes), &connection->host, &why);
	if (used == 0)
		return false;
	if (used < 0) {
		socks_reply_write((enum socks_reply)-used, reply);
		return refuse_socks(connection, PROXY_FAILED, (const char *)reply, sizeof(reply), why);
	}
	name_from_address(connection->proxy, &connection->host);
	buffer_drop(bytes, (size_t)used);
	dial_begin(connection);
	return true;
}

/* False where the connection is over by that. */
static bool answer_socks(struct connection *connection, const char *reply, size_t length)
{
	if (buffer_append(&connection->in.head, reply, length) == 0 &&
	    relay_flush(&connection->in, &connection->client) >= 0)
		return true;
	connection_end(connection, PROXY_FAILED, "", true);
	return false;
}

static bool parse_socks_login(struct connection *connection)
{
	struct buffer *bytes = &connection->out.bytes;
	struct socks_login login;
	const char *why = "";
	if (!buffer_length(bytes))
		return false;
	long used = socks_login_parse((const uint8_t *)buffer_at(bytes), buffer_length(bytes), &login, &why);
	if (used == 0)
		return false;
	if (used < 0)
		return refuse_socks(connection, PROXY_FAILED, SOCKS_NOT_LOGGED_IN, SOCKS_LOGIN_SIZE, why);
	if (!may_use(connection, tokens_find_login(&connection->proxy->tokens, &login)))
		return refuse_socks(connection, PROXY_DENIED, SOCKS_NOT_LOGGED_IN, SOCKS_LOGIN_SIZE, no_token);
	connection->socks = SOCKS_REQUEST;
	buffer_drop(bytes, (size_t)used);
	return !answer_socks(connection, SOCKS_LOGGED_IN, SOCKS_LOGIN_SIZE) || parse_socks_request(connection);
}

static bool parse_socks(struct connection *connection)
{
	struct buffer *bytes = &connection->out.bytes;
	bool asks_token = connection->proxy->settings.asks_token;
	const char *why = "";
	connection->way = PROXY_BY_SOCKS;
	if (connection->socks == SOCKS_REQUEST)
		return parse_socks_request(connection);
	if (connection->socks == SOCKS_LOGIN)
		return parse_socks_login(connection);
	long used = socks_greeting_parse((const uint8_t *)buffer_at(bytes), buffer_length(bytes),
	                                 asks_token ? SOCKS_METHOD_PASSWORD : SOCKS_METHOD_NONE, &why);
	if (used < 0)
		return refuse_socks(connection, PROXY_FAILED, SOCKS_NOT_GREETED, SOCKS_GREETED_SIZE, why);
	if (used == 0)
		return false;
	connection->socks = asks_token ? SOCKS_LOGIN : SOCKS_REQUEST;
	buffer_drop(bytes, (size_t)used);
	if (!answer_socks(connection, asks_token ? SOCKS_GREETED_PASSWORD : SOCKS_GREETED, SOCKS_GREETED_SIZE))
		return true;
	return asks_token ? parse_socks_login(connection) : parse_socks_request(connection);
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static bool parse(struct connection *connection)
{
	/* No method of HTTP begins with one of these. */
	unsigned char first = (unsigned char)*buffer_at(&connection->out.bytes);
	return connection->socks != SOCKS_GREETING || first == SOCKS_VERSION || first == 4 ? parse_socks(connection) :
	                                                                      parse_http(connection);
}

/* `silent` and `cut`: why, where it had not begun a request, and where it had. */
static void gone(struct connection *connection, const char *silent, const char *cut)
{
	if (!connection->spoke && connection->was_served)
		connection_end(connection, PROXY_ALLOWED, "", false);
	else
		connection_drop(connection, PROXY_FAILED, connection->spoke ? cut : silent);
}

static void gone_by_itself(struct connection *connection)
{
	gone(connection, "it ended without a request", "it ended in the middle of a request");
}

void client_step(struct connection *connection)
{
	struct side *client = &connection->client;
	while (!connection->proxy->supervisor_is_full) {
		if (relay_flush(&connection->in, client) < 0) {
			gone_by_itself(connection);
			return;
		}
		if (buffer_length(&connection->out.bytes) && parse(connection))
			return;
		if (!client->readable)
			return;
		ssize_t got = buffer_receive(&connection->out.bytes, client->fd, STEP,
		                             connection->proxy->settings.header_bytes);
		if (got == -EAGAIN) {
			client->readable = false;
			return;
		}
		if (got == -ENOBUFS) {
			malformed(connection, 431, "the head of the request is too long");
			return;
		}
		if (got <= 0) {
			gone_by_itself(connection);
			return;
		}
		if (!connection->spoke)
			connection_expect(connection, head_ms(connection));
		connection->spoke = true;
	}
}

void client_expire(struct connection *connection)
{
	if (connection->spoke && connection->way != PROXY_BY_SOCKS)
		malformed(connection, 400, "the head of the request did not come in time");
	else
		gone(connection, "no request came in time", "the request did not come whole in time");
}

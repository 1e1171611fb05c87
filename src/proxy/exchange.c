/* HTTP in the clear: see exchange.h. */
#include "proxy/exchange.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/http.h"
#include "proxy/client.h"
#include "proxy/loop.h"
#include "proxy/relay.h"

#define TURN 16
#define BODY_SIZE 65536         /* at a time */

/* Where a body ends. */
struct body {
	enum http_body kind;
	bool is_done;
	uint64_t left;
	struct http_chunk chunk;
};

struct exchange {
	struct http_request request;    /* without what pointed into its head */
	struct body sent, received;
	bool server_is_deaf;            /* it takes no more of the request; perhaps it has answered already */
	bool has_head;                  /* the response's */
	bool keeps_client;
	struct secret_filter *filter;   /* that the request's body goes through; or NULL */
	bool is_short_of_memory;        /* what came out of it could not be kept */
	char found[RESOLVE_WHY_SIZE];   /* the first secret in it, for people; or "" */
};

void exchange_free(struct connection *connection)
{
	if (connection->exchange)
		secret_filter_free(connection->exchange->filter);
	free(connection->exchange);
	connection->exchange = NULL;
}

static void body_begin(struct body *body, enum http_body kind, uint64_t length)
{
	*body = (struct body){ .kind = kind, .left = length };
	body->is_done = kind == HTTP_BODY_NONE || (kind == HTTP_BODY_LENGTH && !length);
}

/* How many of the first bytes belong to it; -1 and why where they are no body. */
static ssize_t body_take(struct body *body, const char *bytes, size_t length, const char **ret_why)
{
	size_t used = length;
	if (body->kind == HTTP_BODY_CHUNKED)
		return http_chunk_step(&body->chunk, bytes, length, &used, &body->is_done, ret_why) < 0 ? -1 :
		                                                                                          (ssize_t)used;
	if (body->kind == HTTP_BODY_LENGTH) {
		used = length < body->left ? length : (size_t)body->left;
		body->left -= used;
		body->is_done = !body->left;
	}
	return (ssize_t)used;
}

/* ---- secrets in the request ------------------------------------------------------------------------------------- */

static void append(struct connection *connection, const void *bytes, size_t length)
{
	if (buffer_append(&connection->out.head, bytes, length) < 0)
		connection->exchange->is_short_of_memory = true;
	connection->out.moved += length;
}

/* What was judged goes behind the head, as a chunk where chunks came. */
static void pass_on(void *context, const void *bytes, size_t length)
{
	struct connection *connection = context;
	bool is_chunk = connection->exchange->sent.kind == HTTP_BODY_CHUNKED;
	char size[24];
	if (is_chunk)
		append(connection, size, (size_t)snprintf(size, sizeof(size), "%zx\r\n", length));
	append(connection, bytes, length);
	if (is_chunk)
		append(connection, "\r\n", 2);
}

static int begin_search(struct connection *connection, struct exchange *exchange)
{
	const struct secret_terms *terms = &connection->proxy->terms;
	if (!terms->set || exchange->sent.kind == HTTP_BODY_NONE)
		return 0;
	exchange->filter = secret_filter_new(terms->set, &terms->policy, terms->key, pass_on, connection);
	return exchange->filter ? 0 : -1;
}

/* The first one; where one is the reason to refuse the request, that. */
static void note_found(struct exchange *exchange)
{
	const struct secret_finding *finding;
	size_t count = secret_filter_findings(exchange->filter, &finding), i = 0;
	while (i < count && finding[i].action != SECRET_BLOCK)
		i++;
	if (!count || (*exchange->found && i == count))
		return;
	finding += i < count ? i : 0;
	snprintf(exchange->found, sizeof(exchange->found),
	         "a secret in the request: %s (%s, at byte %llu of the body, fingerprint %s)", finding->name,
	         finding->layer, (unsigned long long)finding->offset, finding->fingerprint);
}

/* As body_take(), into the filter. Of chunks that is their content, so that a secret across two is one; trailers are
 * not sent on. */
static ssize_t search_bytes(struct exchange *exchange, const char *bytes, size_t length, const char **ret_why)
{
	struct body *body = &exchange->sent;
	size_t at = 0, used = 0, content = 0;
	if (body->kind != HTTP_BODY_CHUNKED) {
		ssize_t taken = body_take(body, bytes, length, ret_why);
		if (taken > 0)
			secret_filter_add(exchange->filter, bytes, (size_t)taken, 1);
		return taken;
	}
	for (; at < length && !body->is_done; at += used) {
		if (http_chunk_content(&body->chunk, bytes + at, length - at, &used, &content, &body->is_done,
		                       ret_why) < 0)
			return -1;
		if (content)
			secret_filter_add(exchange->filter, bytes + at + used - content, content, 1);
	}
	return (ssize_t)at;
}

/* The first `length` bytes of what was read are the body's, and in the filter. False where the request ends with
 * them. */
static bool judge(struct connection *connection, size_t length)
{
	struct exchange *exchange = connection->exchange;
	if (length)
		buffer_drop(&connection->out.bytes, length);
	if (exchange->sent.is_done) {
		secret_filter_finish(exchange->filter);
		if (exchange->sent.kind == HTTP_BODY_CHUNKED)
			append(connection, "0\r\n\r\n", 5);
	}
	note_found(exchange);
	if (!secret_filter_is_blocked(exchange->filter) && !exchange->is_short_of_memory)
		return true;
	/* The exchange is released before the client is told. */
	char why[RESOLVE_WHY_SIZE];
	snprintf(why, sizeof(why), "%s", exchange->is_short_of_memory ? "out of memory" : exchange->found);
	enum proxy_decision decision = exchange->is_short_of_memory ? PROXY_FAILED : PROXY_DENIED;
	unsigned status = exchange->is_short_of_memory ? 502 : 403;
	buffer_free(&connection->out.head);
	if (exchange->has_head)
		connection_end(connection, decision, why, true);
	else
		connection_refuse(connection, decision, status, why);
	return false;
}

int exchange_prepare(struct connection *connection, const struct http_request *request, size_t length)
{
	struct buffer *head = &connection->out.head;
	struct exchange *exchange = calloc(1, sizeof(*exchange));
	if (!exchange || buffer_reserve(head, length + HTTP_HEAD_EXTRA) < 0) {
		free(exchange);
		return -1;
	}
	head->end += http_request_write(request, false, head->bytes + head->end);
	exchange->request.method = request->method;
	exchange->request.minor = request->minor;
	exchange->keeps_client = request->keep_alive;
	body_begin(&exchange->sent, request->body, request->length);
	if (begin_search(connection, exchange) < 0) {
		free(exchange);
		return -1;
	}
	connection->exchange = exchange;
	return 0;
}

void exchange_begin(struct connection *connection)
{
	size_t length = buffer_length(&connection->out.head);
	if (!relay_account(connection->proxy, length)) {
		connection_refuse(connection, PROXY_FAILED, 403, relay_no_allowance);
		return;
	}
	connection->phase = PHASE_EXCHANGE;
	connection->scanned = 0;
	connection->out.moved += length;
	connection_expect(connection, connection->proxy->settings.idle_ms);
}

/* ---- reading for either direction ------------------------------------------------------------------------------- */

enum got { GOT_SOME, GOT_NOTHING, GOT_END, GOT_ERROR, GOT_TOO_MUCH };

/* No more than may still be moved. What comes of the client is accounted for when it is known to be of this request:
 * what is behind it may be the next. */
static enum got receive(struct connection *connection, struct flow *flow, struct side *from, size_t step, size_t max)
{
	if (!from->readable)
		return GOT_NOTHING;
	size_t held = buffer_length(&flow->bytes), room = relay_allowance(connection->proxy, max - held);
	if (!room)
		return GOT_TOO_MUCH;
	ssize_t got = buffer_receive(&flow->bytes, from->fd, step, held + room);
	if (got == -EAGAIN)
		from->readable = false;
	if (got > 0 && flow == &connection->in)
		connection->proxy->moved += (uint64_t)got;
	return got > 0 ? GOT_SOME : got == 0 ? GOT_END : got == -EAGAIN ? GOT_NOTHING : GOT_ERROR;
}

/* ---- the request ------------------------------------------------------------------------------------------------ */

/* Something is wrong. Where the response has begun, breaking off is all that can still be said. */
static void give_up(struct connection *connection, unsigned status, const char *why)
{
	if (connection->exchange->has_head)
		connection_end(connection, PROXY_FAILED, why, true);
	else
		connection_refuse(connection, PROXY_FAILED, status, why);
}

static void stop_sending(struct connection *connection)
{
	struct flow *out = &connection->out;
	connection->exchange->server_is_deaf = true;
	buffer_free(&out->head);
	buffer_drop(&out->bytes, out->cleared);
	out->cleared = 0;
}

/* Each of these: true if there was progress, and there may be more. At the end it has changed the phase. */
static bool send_request(struct connection *connection)
{
	struct exchange *exchange = connection->exchange;
	struct flow *out = &connection->out;
	const char *why = "";
	int rc = relay_flush(out, &connection->server);
	if (rc < 0)
		stop_sending(connection);
	if (rc || exchange->sent.is_done || exchange->server_is_deaf)
		return false;
	if (!buffer_length(&out->bytes)) {
		enum got got = receive(connection, out, &connection->client, BODY_SIZE, BODY_SIZE);
		if (got == GOT_NOTHING)
			return false;
		if (got != GOT_SOME) {
			connection_end(connection, PROXY_FAILED, got == GOT_TOO_MUCH ? relay_no_allowance :
			               "it ended in the middle of a request", true);
			return false;
		}
	}
	ssize_t used = exchange->filter ?
	                       search_bytes(exchange, buffer_at(&out->bytes), buffer_length(&out->bytes), &why) :
	                       body_take(&exchange->sent, buffer_at(&out->bytes), buffer_length(&out->bytes), &why);
	if (used < 0) {
		buffer_free(&out->head);
		give_up(connection, 400, why);
		return false;
	}
	/* More than that can have come with the head. */
	if (!relay_account(connection->proxy, (size_t)used)) {
		connection_end(connection, PROXY_FAILED, relay_no_allowance, true);
		return false;
	}
	if (exchange->filter)
		return judge(connection, (size_t)used);
	out->cleared = (size_t)used;
	return true;
}

/* ---- the response ----------------------------------------------------------------------------------------------- */

static bool write_head(struct connection *connection, const struct http_response *response, size_t length)
{
	struct exchange *exchange = connection->exchange;
	struct flow *in = &connection->in;
	/* HTTP/1.0 knows no interim responses. */
	if (!response->is_interim || exchange->request.minor) {
		if (buffer_reserve(&in->head, length + HTTP_HEAD_EXTRA) < 0) {
			give_up(connection, 502, "out of memory");
			return false;
		}
		size_t written = http_response_write(response, exchange->keeps_client, in->head.bytes + in->head.end);
		in->head.end += written;
		in->moved += written;
		/* So that an empty one holds nothing. */
		buffer_drop(&in->head, 0);
	}
	buffer_drop(&in->bytes, length);
	connection->scanned = 0;
	return true;
}

/* The bytes that are there, as far as they are a head. */
static bool read_head(struct connection *connection)
{
	struct exchange *exchange = connection->exchange;
	struct buffer *bytes = &connection->in.bytes;
	size_t length = buffer_length(bytes);
	struct http_response response;
	const char *why = "";
	if (!length || !memchr(buffer_at(bytes) + connection->scanned, '\n', length - connection->scanned)) {
		connection->scanned = length;
		return false;
	}
	connection->scanned = length;
	long head = http_response_parse(buffer_at(bytes), length, &exchange->request, &response, &why);
	if (head < 0)
		connection_refuse(connection, PROXY_FAILED, (unsigned)-head, why);
	if (head <= 0)
		return false;
	exchange->has_head = !response.is_interim;
	if (exchange->has_head) {
		body_begin(&exchange->received, response.body, response.length);
		/* What is left of a request that was not taken whole cannot be told from the next one. */
		exchange->keeps_client &= response.body != HTTP_BODY_UNTIL_CLOSE && exchange->sent.is_done;
	}
	return write_head(connection, &response, (size_t)head);
}

static bool read_body(struct connection *connection)
{
	struct exchange *exchange = connection->exchange;
	struct flow *in = &connection->in;
	const char *why = "";
	if (!buffer_length(&in->bytes))
		return false;
	ssize_t used = body_take(&exchange->received, buffer_at(&in->bytes), buffer_length(&in->bytes), &why);
	if (used < 0) {
		connection_end(connection, PROXY_FAILED, why, true);
		return false;
	}
	in->cleared = (size_t)used;
	return true;
}

static bool receive_more(struct connection *connection)
{
	struct exchange *exchange = connection->exchange;
	struct flow *in = &connection->in;
	size_t max = exchange->has_head ? BODY_SIZE : connection->proxy->settings.header_bytes;
	if (buffer_length(&in->bytes) >= max) {
		give_up(connection, 502, "the head of the response is too long");
		return false;
	}
	switch (receive(connection, in, &connection->server, exchange->has_head ? BODY_SIZE : 4096, max)) {
	case GOT_SOME:
		return true;
	case GOT_NOTHING:
		return false;
	case GOT_TOO_MUCH:
		give_up(connection, 403, relay_no_allowance);
		return false;
	case GOT_END:
		if (exchange->has_head && exchange->received.kind == HTTP_BODY_UNTIL_CLOSE) {
			exchange->received.is_done = true;
			return true;
		}
		break;
	case GOT_ERROR:
		break;
	}
	give_up(connection, 502, "the server broke off before its response was whole");
	return false;
}

static void finish(struct connection *connection)
{
	bool keeps_client = connection->exchange->keeps_client;
	/* Bytes after the response are discarded. */
	buffer_free(&connection->in.bytes);
	stop_sending(connection);
	connection_tell(connection, PROXY_ALLOWED, 0, connection->exchange->found);
	connection_close_server(connection, false);
	exchange_free(connection);
	if (keeps_client)
		client_again(connection);
	else
		connection_farewell(connection);
}

static bool read_response(struct connection *connection)
{
	struct exchange *exchange = connection->exchange;
	int rc = connection->client.broken ? -ECONNRESET : relay_flush(&connection->in, &connection->client);
	if (rc < 0)
		connection_end(connection, PROXY_ALLOWED, "the command broke it off", true);
	if (rc)
		return false;
	if (exchange->has_head && exchange->received.is_done) {
		finish(connection);
		return false;
	}
	bool went_on = exchange->has_head ? read_body(connection) : read_head(connection);
	return went_on || (connection->phase == PHASE_EXCHANGE && receive_more(connection));
}

void exchange_step(struct connection *connection)
{
	struct flow *in = &connection->in, *out = &connection->out;
	uint64_t before = in->moved + out->moved;
	bool more = true;
	for (int turn = 0; more && turn < TURN; turn++) {
		more = send_request(connection);
		if (connection->phase == PHASE_EXCHANGE)
			more |= read_response(connection);
		if (connection->phase != PHASE_EXCHANGE)
			return;
	}
	if (in->moved + out->moved != before)
		connection_expect(connection, connection->proxy->settings.idle_ms);
	if (more)
		loop_again(connection);
}

void exchange_expire(struct connection *connection)
{
	give_up(connection, 504, "nothing moved for too long");
}

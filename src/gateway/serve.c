/* One connection of a command: see gateway.h. It waits for one thing at a time, and for the end of all. */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "gateway/gateway.h"
#include "gateway/response.h"
#include "net/http.h"
#include "net/resolve.h"
#include "proxy/seal.h"

#define PIECE 16384
#define DESCRIPTORS 16
#define HEAD_MS 30000           /* for a request's head to come */
#define INSERTED_MAX 64

struct serving {
	const struct gateway_child *child;
	struct resolver *resolver;
	struct tls *tls;
	int server_fd;
	uint64_t started_us;
	char *head;                     /* as it came, and what came behind it */
	size_t head_length, head_end;
	struct http_request request;
	struct http_chunk chunk;
	uint64_t body_left;
	bool body_done, has_answer;
	struct response *response;
	struct proxy_message row;
};

static uint64_t now_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* ---- the end ---------------------------------------------------------------------------------------------------- */

__attribute__((noreturn)) static void finish(struct serving *serving, enum proxy_decision decision, unsigned status,
                                             const char *why)
{
	struct proxy_message *row = &serving->row;
	row->kind = PROXY_CONNECTION;
	row->connection.way = PROXY_BY_GATEWAY;
	row->connection.decision = (uint8_t)decision;
	row->connection.status = (uint16_t)status;
	row->connection.duration_us = now_us() - serving->started_us;
	row->connection.count = 1;
	host_text(&serving->child->route->host, row->host);
	snprintf(row->text, sizeof(row->text), "%s", why);
	/* Before the client sees the end: its command may end with that. */
	(void)!send(PROXY_FD, row, sizeof(*row), MSG_NOSIGNAL);
	shutdown(serving->child->client_fd, SHUT_RDWR);
	_exit(0);
}

/* What was given back so far is none of it. */
__attribute__((noreturn)) static void refuse(struct serving *serving, enum proxy_decision decision, unsigned status,
                                             const char *why)
{
	char text[HTTP_REFUSAL_SIZE];
	if (!serving->has_answer) {
		size_t length = http_refusal_write(status, why, false, text);
		(void)!send(serving->child->client_fd, text, length, MSG_NOSIGNAL | MSG_DONTWAIT);
	}
	finish(serving, decision, status, why);
}

/* ---- waiting ---------------------------------------------------------------------------------------------------- */

/* Which of the two is ready: a bit each. Ends where nothing happens for too long. */
static unsigned await(struct serving *serving, int first, short first_events, int second, short second_events,
                      uint64_t ms, const char *late)
{
	struct pollfd fds[] = { { .fd = first, .events = first_events }, { .fd = second, .events = second_events },
	                        { .fd = serving->child->end_fd, .events = POLLIN } };
	int found;
	do
		found = poll(fds, ARRAY_SIZE(fds), ms && ms < INT32_MAX ? (int)ms : -1);
	while (found < 0 && errno == EINTR);
	if (fds[2].revents)
		finish(serving, PROXY_ALLOWED, 0, "the command ended before it did");
	if (!found)
		refuse(serving, PROXY_FAILED, 504, late);
	return (fds[0].revents ? 1u : 0) | (fds[1].revents ? 2u : 0);
}

static void account(struct serving *serving, size_t length)
{
	uint64_t limit = serving->child->settings->total_bytes;
	if (atomic_fetch_add(&serving->child->shared->moved, length) + length > limit && limit)
		refuse(serving, PROXY_FAILED, 403, "the command has moved as many bytes as it may");
}

static void send_all(struct serving *serving, int fd, const char *bytes, size_t length, const char *broken)
{
	while (length) {
		ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent < 0 && errno == EAGAIN)
			await(serving, fd, POLLOUT, -1, 0, serving->child->settings->idle_ms,
			      "nothing moved for too long");
		else if (sent < 0 && errno != EINTR)
			finish(serving, PROXY_ALLOWED, 0, broken);
		bytes += sent > 0 ? sent : 0;
		length -= sent > 0 ? (size_t)sent : 0;
	}
}

static void send_tls(struct serving *serving)
{
	char bytes[PIECE];
	for (size_t length; (length = tls_take_to_send(serving->tls, bytes, sizeof(bytes)));)
		send_all(serving, serving->server_fd, bytes, length, "the service broke it off");
}

/* False at the end. */
static bool receive_tls(struct serving *serving)
{
	char bytes[PIECE];
	ssize_t got = recv(serving->server_fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	if (got > 0)
		tls_put_received(serving->tls, bytes, (size_t)got);
	return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

/* ---- the request's head ----------------------------------------------------------------------------------------- */

static void read_head(struct serving *serving)
{
	size_t max = serving->child->settings->header_bytes;
	serving->head = malloc(max + INSERTED_MAX + 1);
	if (!serving->head)
		refuse(serving, PROXY_FAILED, 502, "out of memory");
	for (;;) {
		const char *end = memmem(serving->head, serving->head_length, "\r\n\r\n", 4);
		if (end) {
			serving->head_end = (size_t)(end - serving->head) + 4;
			return;
		}
		if (serving->head_length == max)
			refuse(serving, PROXY_FAILED, 431, "the head is too long");
		await(serving, serving->child->client_fd, POLLIN, -1, 0, HEAD_MS, "no request came");
		ssize_t got = recv(serving->child->client_fd, serving->head + serving->head_length,
		                   max - serving->head_length, MSG_DONTWAIT);
		if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
			finish(serving, PROXY_FAILED, 0, "it ended in the middle of a request");
		serving->head_length += got > 0 ? (size_t)got : 0;
	}
}

/* Programs speak to the gateway as to a server: the target becomes a whole URL, which is what the parser reads. */
static void parse_head(struct serving *serving)
{
	char inserted[INSERTED_MAX];
	const char *space = memchr(serving->head, ' ', serving->head_end), *why = "the first line is none";
	size_t length =
		(size_t)snprintf(inserted, sizeof(inserted), "http://127.0.0.1:%u", serving->child->route->port);
	if (!space || space[1] != '/')
		refuse(serving, PROXY_FAILED, 400, "this is a server: a path belongs behind the method");
	size_t at = (size_t)(space - serving->head) + 1;
	memmove(serving->head + at + length, serving->head + at, serving->head_length - at);
	memcpy(serving->head + at, inserted, length);
	serving->head_length += length;
	serving->head_end += length;
	long end = http_request_parse(serving->head, serving->head_end, &serving->request, &why);
	if (end <= 0)
		refuse(serving, PROXY_FAILED, end < 0 ? (unsigned)-end : 400, why);
	serving->body_left = serving->request.length;
	serving->body_done = serving->request.body == HTTP_BODY_NONE ||
	                     (serving->request.body == HTTP_BODY_LENGTH && !serving->body_left);
}

static int hex_digit(char byte)
{
	return byte >= '0' && byte <= '9' ? byte - '0' :
	       (byte | 32) >= 'a' && (byte | 32) <= 'f' ? (byte | 32) - 'a' + 10 : -1;
}

/* In place, once. False where there was nothing to decode. */
static bool decode(char *path, size_t *length)
{
	size_t used = 0;
	for (size_t at = 0; at < *length; at++, used++) {
		int high = path[at] == '%' && *length - at > 2 ? hex_digit(path[at + 1]) : -1;
		int low = high >= 0 ? hex_digit(path[at + 2]) : -1;
		path[used] = low >= 0 ? (char)(high << 4 | low) : path[at];
		at += low >= 0 ? 2 : 0;
	}
	bool has_changed = used != *length;
	*length = used;
	return has_changed;
}

/* A server may decode it before it looks for segments, or something before the server has. */
static bool leads_elsewhere(struct http_span path)
{
	char text[HTTP_TARGET_MAX];
	const char *query = memchr(path.at, '?', path.length);
	size_t length = query ? (size_t)(query - path.at) : path.length;
	if (length > sizeof(text))
		return true;
	memcpy(text, path.at, length);
	do {
		if (memmem(text, length, "/.", 2) || memchr(text, '\\', length))
			return true;
	} while (decode(text, &length));
	return false;
}

static void check_path(struct serving *serving)
{
	const char *allowed = serving->child->route->path;
	const struct http_span path = serving->request.path;
	size_t length = strlen(allowed);
	bool is_beneath = path.length >= length && !memcmp(path.at, allowed, length) &&
	                  (path.length == length || path.at[length] == '/' || path.at[length] == '?');
	if (length && (!is_beneath || leads_elsewhere(path)))
		refuse(serving, PROXY_DENIED, 403, "the path is not beneath the gateway's");
}

/* Headers that could say who asks, and what would hide the key in a response, or cut it in two. */
static bool is_left_out(const struct gateway_route *route, const char *line, size_t length)
{
	static const char *const names[] = { "authorization",  "proxy-authorization", "x-api-key",
		                             "api-key",        "x-goog-api-key",      "cookie",
		                             "accept-encoding", "range" };
	size_t name = strcspn(line, ":");
	if (name > length)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strlen(names[i]) == name && !strncasecmp(line, names[i], name))
			return true;
	return strlen(route->header) == name && !strncasecmp(line, route->header, name);
}

static void write_tls(struct serving *serving, const void *bytes, size_t length)
{
	if (tls_write(serving->tls, bytes, length) < 0)
		refuse(serving, PROXY_FAILED, 502, "the service broke it off");
	serving->row.connection.bytes_out += length;
	send_tls(serving);
}

static void send_head(struct serving *serving)
{
	const struct gateway_route *route = serving->child->route;
	struct http_request request = serving->request;
	size_t size = serving->head_end + HTTP_HEAD_EXTRA, used = 0;
	char *head = malloc(size + 1), *sent = malloc(size + 2 * GATEWAY_HEADER_MAX + route->key_length + 64);
	request.host = route->host;
	/* Written as the port that need not be. */
	if (request.host.port == 443)
		request.host.port = 80;
	if (!head || !sent)
		refuse(serving, PROXY_FAILED, 502, "out of memory");
	head[http_request_write(&request, false, head)] = '\0';
	const char *line = head;
	for (bool is_first = true; *line && *line != '\r'; is_first = false) {
		const char *end = strstr(line, "\r\n") + 2;
		if (is_first || !is_left_out(route, line, (size_t)(end - line))) {
			memcpy(sent + used, line, (size_t)(end - line));
			used += (size_t)(end - line);
		}
		line = end;
	}
	used += (size_t)sprintf(sent + used, "Accept-Encoding: identity\r\n%s: %s", route->header, route->prefix);
	memcpy(sent + used, route->key, route->key_length);
	used += route->key_length;
	used += (size_t)sprintf(sent + used, "\r\n\r\n");
	account(serving, used);
	write_tls(serving, sent, used);
	explicit_bzero(sent, used);
	free(sent);
	free(head);
}

/* ---- the service ------------------------------------------------------------------------------------------------ */

struct found {
	struct resolution resolution;
	bool is_there;
};

static void take_found(void *arg, const struct resolution *resolution)
{
	struct found *found = arg;
	found->resolution = *resolution;
	found->is_there = true;
}

static bool is_private_host(const struct serving *serving)
{
	const struct gateway_settings *settings = serving->child->settings;
	const struct host *host = &serving->child->route->host;
	for (size_t i = 0; i < settings->private_count; i++)
		if (settings->private_hosts[i].port == host->port &&
		    !strcmp(settings->private_hosts[i].name, host->name))
			return true;
	return false;
}

static void resolve(struct serving *serving, struct found *found)
{
	struct lookup *lookup;
	struct cordon_error err;
	char why[RESOLVE_WHY_SIZE];
	serving->row.connection.outside = 1;
	if (resolver_start(serving->resolver, &serving->child->route->host, take_found, found, &lookup, &err) < 0)
		refuse(serving, PROXY_FAILED, 502, err.reason);
	while (!found->is_there) {
		await(serving, resolver_fd(serving->resolver), POLLIN, -1, 0, serving->child->settings->connect_ms,
		      "its name was not found in time");
		resolver_step(serving->resolver);
	}
	if (found->resolution.allowed || (is_private_host(serving) && resolution_is_at_site(&found->resolution)))
		return;
	resolution_why(&serving->child->route->host, &found->resolution, why);
	bool is_found = found->resolution.status == RESOLVE_FOUND || found->resolution.status == RESOLVE_NAME_REFUSED;
	refuse(serving, is_found ? PROXY_DENIED : PROXY_FAILED, is_found ? 403 : 502, why);
}

static int dial(struct serving *serving, const struct address *address, uint16_t port)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	bool is_v4 = address->length == 4;
	memcpy(is_v4 ? (void *)&v4.sin_addr : (void *)&v6.sin6_addr, address->bytes, address->length);
	int error = 0, fd = socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	socklen_t length = sizeof(error);
	if (fd < 0)
		return -1;
	serving->row.connection.address = *address;
	if (connect(fd, is_v4 ? (void *)&v4 : (void *)&v6, is_v4 ? sizeof(v4) : sizeof(v6)) < 0) {
		struct pollfd ready[] = { { .fd = fd, .events = POLLOUT },
			                  { .fd = serving->child->end_fd, .events = POLLIN } };
		if (errno != EINPROGRESS || poll(ready, 2, (int)serving->child->settings->connect_ms) <= 0 ||
		    !ready[0].revents || getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0 || error) {
			close(fd);
			return -1;
		}
	}
	return fd;
}

static void connect_service(struct serving *serving)
{
	struct found found = { .is_there = false };
	const char *why = "";
	int shaken = 0;
	resolve(serving, &found);
	serving->server_fd = -1;
	for (size_t i = 0; i < found.resolution.count && i < 4 && serving->server_fd < 0; i++)
		serving->server_fd =
			dial(serving, &found.resolution.addresses[i].address, serving->child->route->host.port);
	if (serving->server_fd < 0)
		refuse(serving, PROXY_FAILED, 502, "the service cannot be reached");
	serving->tls = tls_new(serving->child->route);
	if (!serving->tls)
		refuse(serving, PROXY_FAILED, 502, "out of memory");
	while ((shaken = tls_handshake(serving->tls, &why)) == 0) {
		send_tls(serving);
		await(serving, serving->server_fd, POLLIN, -1, 0, serving->child->settings->connect_ms,
		      "the service did not answer in time");
		if (!receive_tls(serving))
			refuse(serving, PROXY_FAILED, 502, "the service broke it off");
	}
	send_tls(serving);
	if (shaken < 0) {
		char text[RESOLVE_WHY_SIZE];
		snprintf(text, sizeof(text), "the service's certificate or TLS: %s", why);
		refuse(serving, PROXY_FAILED, 502, text);
	}
}

/* ---- both ways -------------------------------------------------------------------------------------------------- */

/* Of the bytes that are the body's, and no more: what is behind it is no request that was judged. */
static void send_body(struct serving *serving, const char *bytes, size_t length)
{
	const char *why = "";
	size_t used = length;
	if (serving->body_done || !length)
		return;
	if (serving->request.body == HTTP_BODY_CHUNKED) {
		if (http_chunk_step(&serving->chunk, bytes, length, &used, &serving->body_done, &why) < 0)
			refuse(serving, PROXY_FAILED, 400, why);
	} else {
		used = length < serving->body_left ? length : (size_t)serving->body_left;
		serving->body_left -= used;
		serving->body_done = !serving->body_left;
	}
	account(serving, used);
	write_tls(serving, bytes, used);
}

static void read_client(struct serving *serving)
{
	char bytes[PIECE];
	ssize_t got = recv(serving->child->client_fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0)
		finish(serving, PROXY_ALLOWED, 0, "the command broke it off");
	send_body(serving, bytes, (size_t)got);
}

static void give(void *context, const char *bytes, size_t length)
{
	struct serving *serving = context;
	serving->has_answer = true;
	serving->row.connection.bytes_in += length;
	send_all(serving, serving->child->client_fd, bytes, length, "the command broke it off");
}

/* True at the end of the response. */
static bool read_service(struct serving *serving)
{
	bool has_ended = !receive_tls(serving);
	char bytes[PIECE];
	const char *why = "";
	for (long got; !response_is_done(serving->response);) {
		got = tls_read(serving->tls, bytes, sizeof(bytes));
		if (got > 0)
			account(serving, (size_t)got);
		send_tls(serving);
		if (got == 0 && !has_ended)
			return false;
		int rc = got > 0 ? response_add(serving->response, bytes, (size_t)got, &why) :
		                   response_end(serving->response, &why);
		serving->row.connection.status = (uint16_t)response_status(serving->response);
		if (rc < 0)
			refuse(serving, PROXY_FAILED, 502, why);
	}
	return true;
}

static void relay(struct serving *serving)
{
	uint64_t idle_ms = serving->child->settings->idle_ms;
	const struct gateway_route *route = serving->child->route;
	serving->response = response_new(&serving->request, route->key, route->key_length,
	                                 serving->child->settings->header_bytes, give, serving);
	if (!serving->response)
		refuse(serving, PROXY_FAILED, 502, "out of memory");
	send_body(serving, serving->head + serving->head_end, serving->head_length - serving->head_end);
	do {
		/* Behind the body only the end of the client is of interest. */
		unsigned ready = await(serving, serving->child->client_fd, serving->body_done ? POLLRDHUP : POLLIN,
		                       serving->server_fd, POLLIN, idle_ms, "nothing moved for too long");
		if (ready & 1 && !serving->body_done)
			read_client(serving);
		else if (ready & 1 && !(ready & 2))
			finish(serving, PROXY_ALLOWED, serving->row.connection.status, "the command broke it off");
		if (ready & 2 && read_service(serving))
			return;
	} while (true);
}

void gateway_serve(const struct gateway_child *child)
{
	struct serving serving = { .child = child, .started_us = now_us(), .server_fd = -1 };
	const struct resolver_options options = { .timeout_ms = (unsigned)child->settings->connect_ms,
	                                          .exemptions = child->settings->exemptions,
	                                          .exemption_count = child->settings->exemption_count };
	struct cordon_error err;
	uint64_t descriptors = DESCRIPTORS;
	bool has_key = child->route->key_length > 0 && !*child->route->why;
	if (has_key && !child->is_beyond && resolver_open(&options, &serving.resolver, &err) < 0)
		refuse(&serving, PROXY_FAILED, 502, err.reason);
	const char *why = seal_raise_for_tls(&descriptors);
	if (why)
		refuse(&serving, PROXY_FAILED, 502, why);
	read_head(&serving);
	if (child->is_beyond)
		refuse(&serving, PROXY_FAILED, 503, "the command has made as many connections as it may");
	parse_head(&serving);
	check_path(&serving);
	if (!has_key)
		refuse(&serving, PROXY_FAILED, 502,
		       *child->route->why ? child->route->why : "the key could not be had");
	connect_service(&serving);
	static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
	if (serving.request.expects_continue)
		send_all(&serving, child->client_fd, go_on, sizeof(go_on) - 1, "the command broke it off");
	send_head(&serving);
	relay(&serving);
	finish(&serving, PROXY_ALLOWED, serving.row.connection.status, "");
}

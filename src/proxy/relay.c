/* Tunnels: see relay.h. */
#include "proxy/relay.h"

#include <errno.h>
#include <sys/socket.h>

#include "proxy/loop.h"

#define TURN 16                 /* pipes full, then others have theirs */
#define COPY_SIZE 16384         /* at a time where there is no pipe */

const char relay_no_allowance[] = "the command has moved as many bytes as it may";

size_t relay_allowance(const struct proxy *proxy, size_t wanted)
{
	uint64_t limit = proxy->settings.total_bytes, left = limit > proxy->moved ? limit - proxy->moved : 0;
	return limit && left < wanted ? (size_t)left : wanted;
}

bool relay_account(struct proxy *proxy, size_t length)
{
	if (relay_allowance(proxy, length) < length)
		return false;
	proxy->moved += length;
	return true;
}

int relay_flush(struct flow *flow, struct side *to)
{
	while (buffer_length(&flow->head) || flow->cleared) {
		bool is_head = buffer_length(&flow->head);
		struct buffer *buffer = is_head ? &flow->head : &flow->bytes;
		ssize_t sent = to->writable ?
			buffer_send(buffer, to->fd, is_head ? buffer_length(buffer) : flow->cleared) : -EAGAIN;
		if (sent == -EAGAIN) {
			to->writable = false;
			return 1;
		}
		if (sent < 0) {
			to->broken = true;
			return (int)sent;
		}
		if (!is_head) {
			flow->cleared -= (size_t)sent;
			flow->moved += (uint64_t)sent;
		}
	}
	return 0;
}

/* 0 when the pipe is empty and given back, 1 where the other side does not take it yet, or -errno. */
static int drain(struct proxy *proxy, struct flow *flow, struct side *to)
{
	struct pipe *pipe = flow->pipe;
	while (pipe && pipe->fill) {
		ssize_t moved = to->writable ? pipes_splice(pipe->read_fd, to->fd, pipe->fill) : -EAGAIN;
		if (moved == -EAGAIN) {
			to->writable = false;
			return 1;
		}
		if (moved <= 0) {
			to->broken = true;
			return moved < 0 ? (int)moved : -EPIPE;
		}
		pipe->fill -= (size_t)moved;
		flow->moved += (uint64_t)moved;
	}
	pipes_give(&proxy->pipes, pipe);
	flow->pipe = NULL;
	return 0;
}

/* As much as there is, at most `length`, or as the pipe takes: how much, 0 at the end, or -errno. */
static ssize_t fill(struct proxy *proxy, struct flow *flow, struct side *from, size_t length)
{
	struct pipe *pipe = pipes_take(&proxy->pipes, length);
	size_t room = relay_allowance(proxy, pipe ? length : COPY_SIZE);
	ssize_t got = -EDQUOT;
	if (pipe) {
		if (room)
			got = pipes_splice(from->fd, pipe->write_fd, room);
		if (got > 0) {
			pipe->fill = (size_t)got;
			flow->pipe = pipe;
		} else {
			pipes_give(&proxy->pipes, pipe);
		}
	} else if (room) {
		got = buffer_receive(&flow->bytes, from->fd, room, room);
		if (got > 0)
			flow->cleared += (size_t)got;
	}
	if (got > 0)
		proxy->moved += (uint64_t)got;
	return got;
}

/* One direction, as far as possible. `ret_more`: its share is used up, but there is more. 0, or -errno. */
static int pump(struct proxy *proxy, struct flow *flow, struct side *from, struct side *to, bool *ret_more)
{
	size_t room = 0;
	for (int turn = 0;; turn++) {
		int rc = relay_flush(flow, to);
		if (rc == 0)
			rc = drain(proxy, flow, to);
		if (rc)
			return rc < 0 ? rc : 0;
		if (flow->has_ended || !from->readable || !to->writable)
			return 0;
		if (turn == TURN) {
			*ret_more = true;
			return 0;
		}
		if (room < PIPE_SMALL_SIZE)
			room = pipes_room(to->fd);
		ssize_t got = fill(proxy, flow, from, room < PIPE_LARGE_SIZE ? room : PIPE_LARGE_SIZE);
		if (got == -EAGAIN) {
			from->readable = false;
			return 0;
		}
		if (got < 0) {
			from->broken = got != -EDQUOT;
			return (int)got;
		}
		flow->has_ended = got == 0;
		room -= (size_t)got;
	}
}

static int step_flow(struct connection *connection, struct flow *flow, struct side *from, struct side *to,
                     bool *ret_more)
{
	int rc = pump(connection->proxy, flow, from, to, ret_more);
	bool is_empty = !buffer_length(&flow->head) && !flow->cleared && !flow->pipe;
	if (rc == 0 && flow->has_ended && is_empty && !flow->was_passed_on) {
		shutdown(to->fd, SHUT_WR);
		flow->was_passed_on = true;
	}
	return rc;
}

void relay_begin(struct connection *connection)
{
	size_t length = buffer_length(&connection->out.bytes);
	if (!relay_account(connection->proxy, length)) {
		connection_refuse(connection, PROXY_FAILED, 403, relay_no_allowance);
		return;
	}
	connection->phase = PHASE_TUNNEL;
	connection->out.cleared = length;
	connection_expect(connection, connection->proxy->settings.idle_ms);
}

void relay_step(struct connection *connection)
{
	struct side *client = &connection->client, *server = &connection->server;
	uint64_t before = connection->in.moved + connection->out.moved;
	bool more = false;
	/* What a server said before it broke off is still delivered; to a client that did, nothing can be. */
	int rc = client->broken ? -ECONNRESET : step_flow(connection, &connection->in, server, client, &more);
	if (rc == 0 && !(server->broken && more))
		rc = step_flow(connection, &connection->out, client, server, &more);
	if (rc < 0) {
		connection_end(connection, PROXY_ALLOWED, rc == -EDQUOT ? relay_no_allowance :
		               client->broken ? "the command broke it off" : "it was broken off", true);
	} else if (connection->in.was_passed_on && connection->out.was_passed_on) {
		connection_end(connection, PROXY_ALLOWED, "", false);
	} else {
		if (connection->in.moved + connection->out.moved != before)
			connection_expect(connection, connection->proxy->settings.idle_ms);
		if (more)
			loop_again(connection);
	}
}

void relay_expire(struct connection *connection)
{
	connection_end(connection, PROXY_ALLOWED, "nothing moved for too long", true);
}

void relay_free(struct connection *connection)
{
	pipes_give(&connection->proxy->pipes, connection->out.pipe);
	pipes_give(&connection->proxy->pipes, connection->in.pipe);
	connection->out.pipe = connection->in.pipe = NULL;
}

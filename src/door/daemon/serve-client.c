/* Connections: input is bounded, output never blocks. A client of another user is disconnected without a message. A
 * client of the same user is compared with the daemon (peer.h) before anything is done for it: one that has less, as
 * every process inside a sandbox, which is in another mount namespace, gets the answer to run its command by itself. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cordon-internal.h"
#include "door/daemon/serve.h"
#include "door/wire/wire.h"

#define READ_SIZE (64u << 10)
#define HALF_CLOSED_MS 50

/* ---- out: from any thread ---------------------------------------------------------------------------------------- */

/* With the lock held. The client learns of it; the loop, too, by the end of what it reads. */
static void give_up(struct client *client)
{
	client->is_broken = true;
	shutdown(client->fd, SHUT_RDWR);
	evbuffer_drain(client->out, evbuffer_get_length(client->out));
}

static void release(struct client *client);

static void arm(struct post *post)
{
	struct client *client = (struct client *)((char *)post - offsetof(struct client, arm));
	pthread_mutex_lock(&client->lock);
	client->is_posted = false;
	pthread_mutex_unlock(&client->lock);
	if (!client->is_gone)
		event_add(&client->writable, NULL);
	release(client);
}

/* What could not be sent at once waits for the loop to send it. One answer may be as long as it is: what counts is what
 * lies before it. */
static void keep_for_later(struct client *client, const struct iovec *parts, int count, size_t sent)
{
	if (evbuffer_get_length(client->out) > UNREAD_GONE)
		return give_up(client);
	for (int i = 0; i < count; i++) {
		size_t skipped = sent < parts[i].iov_len ? sent : parts[i].iov_len;
		sent -= skipped;
		if (evbuffer_add(client->out, (const char *)parts[i].iov_base + skipped, parts[i].iov_len - skipped) <
		    0)
			return give_up(client);
	}
	size_t waiting = evbuffer_get_length(client->out);
	if (waiting && !client->is_armed) {
		client->is_armed = client->is_posted = true;
		client->arm.act = arm;
		server_post(client->server, &client->arm);
	}
}

void client_send(struct client *client, const struct iovec *parts, int count)
{
	ssize_t sent = 0;
	pthread_mutex_lock(&client->lock);
	if (!client->is_broken) {
		struct msghdr message = { .msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = (size_t)count };
		if (!evbuffer_get_length(client->out))
			sent = sendmsg(client->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent < 0 && errno != EAGAIN && errno != EINTR)
			give_up(client);
		else
			keep_for_later(client, parts, count, sent > 0 ? (size_t)sent : 0);
	}
	pthread_mutex_unlock(&client->lock);
}

size_t client_unread(struct client *client)
{
	pthread_mutex_lock(&client->lock);
	size_t unread = evbuffer_get_length(client->out);
	pthread_mutex_unlock(&client->lock);
	return unread;
}

bool client_has_left(struct client *client)
{
	pthread_mutex_lock(&client->lock);
	bool broken = client->is_broken || client->is_half_closed;
	pthread_mutex_unlock(&client->lock);
	return broken;
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct client *client = arg;
	(void)what;
	pthread_mutex_lock(&client->lock);
	bool failed = evbuffer_get_length(client->out) && evbuffer_write(client->out, fd) < 0 && errno != EAGAIN &&
	              errno != EINTR;
	if (failed)
		give_up(client);
	size_t unread = evbuffer_get_length(client->out);
	client->is_armed = unread > 0;
	if (!unread)
		event_del(&client->writable);
	pthread_mutex_unlock(&client->lock);
	for (struct served *run = client->runs; run && unread < UNREAD_MAX / 2; run = run->next)
		run_go_on(run);
	if (unread < UNREAD_MAX / 2)
		watches_go_on(client);
	server_settle(client->server);
}

/* ---- in ---------------------------------------------------------------------------------------------------------- */

/* Every client has one READ_SIZE for itself; what it has beyond that is of CLIENT_INPUT_MAX, which all clients
 * share. */
static size_t shared_part(size_t size)
{
	return size > READ_SIZE ? size - READ_SIZE : 0;
}

/* What a client says has its environment in it. Behind `in_to` there is nothing of it. */
static void wipe_input(struct client *client)
{
	if (client->in_to)
		sodium_memzero(client->in, client->in_to);
	free(client->in);
	client->in = NULL;
}

static void free_input(struct client *client)
{
	client->server->input_bytes -= shared_part(client->in_size);
	wipe_input(client);
	client->in_from = client->in_to = client->in_size = client->in_looked = 0;
}

static bool make_room(struct client *client)
{
	size_t used = client->in_to - client->in_from, most = client->kind ? client->kind->in_max : READ_SIZE;
	if (client->in_from) {
		memmove(client->in, client->in + client->in_from, used);
		sodium_memzero(client->in + used, client->in_from);
	}
	client->in_from = 0;
	client->in_to = used;
	if (client->in_size - used >= READ_SIZE / 4)
		return true;
	size_t size = client->in_size ? client->in_size * 2 : READ_SIZE;
	if (size > most + READ_SIZE)
		size = most + READ_SIZE;
	size_t shared = client->server->input_bytes - shared_part(client->in_size) + shared_part(size);
	/* Not realloc(): the old bytes are wiped. */
	char *grown = size > client->in_size && shared <= CLIENT_INPUT_MAX ? malloc(size) : NULL;
	if (!grown)
		return false;
	if (used)
		memcpy(grown, client->in, used);
	wipe_input(client);
	client->server->input_bytes = shared;
	client->in = grown;
	client->in_size = size;
	return true;
}

/* There is no room for this client. `cordon run` then runs the command by itself. */
static void turn_away(int fd, bool is_rpc)
{
	static const char error[] = "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32001,"
	                            "\"message\":\"the daemon has no room: too many clients, or too much input\"}}\n";
	const struct wire_head head = { .kind = WIRE_DECLINE };
	send(fd, is_rpc ? (const void *)error : &head, is_rpc ? strlen(error) : sizeof(head),
	     MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* libevent does not report a hang-up without data to read. */
static void look_after(evutil_socket_t fd, short what, void *arg)
{
	struct client *client = arg;
	struct pollfd ready = { .fd = client->fd };
	(void)fd, (void)what;
	poll(&ready, 1, 0);
	if (ready.revents & (POLLHUP | POLLERR) ||
	    (client->pending == 1 && !watches_are_wanted(client) && !client_unread(client)))
		client_drop(client);
}

/* It says no more: either it is gone, or it waits for what it has asked. */
static void end_reading(struct client *client)
{
	if (!client->kind || !client->kind->may_half_close)
		return client_drop(client);
	/* The end of the input ends a short line. A long one was cut off. */
	if (client->in_to - client->in_from > READ_SIZE) {
		client->in_to = client->in_from;
		client->in_looked = 0;
	}
	/* There is room: it was made before it was found that nothing comes. */
	client->in[client->in_to++] = '\n';
	if (!client->kind->take(client))
		return client_drop(client);
	free_input(client);
	pthread_mutex_lock(&client->lock);
	client->is_half_closed = true;
	pthread_mutex_unlock(&client->lock);
	event_del(&client->readable);
	event_assign(&client->readable, client->server->base, -1, EV_PERSIST, look_after, client);
	event_add(&client->readable, &(struct timeval){ .tv_usec = HALF_CLOSED_MS * 1000 });
	look_after(-1, 0, client);
}

/* Its other calls, and the processes that end with it, are not lost with a line that there is no room for. */
static bool skip(struct client *client)
{
	if (!client->kind || !client->kind->skip)
		return false;
	client->kind->skip(client);
	free_input(client);
	return make_room(client);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct client *client = arg;
	(void)what;
	if (!make_room(client) && !skip(client)) {
		turn_away(fd, client->kind == &client_rpc);
		return client_drop(client);
	}
	ssize_t length = recv(fd, client->in + client->in_to, client->in_size - client->in_to, MSG_DONTWAIT);
	if (length < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (length <= 0)
		return end_reading(client);
	client->in_to += (size_t)length;
	if (!client->kind)
		client->kind = (unsigned char)client->in[0] >= WIRE_HELLO ? &client_frames : &client_rpc;
	if (!client->kind->take(client))
		return client_drop(client);
	if (client->in_from == client->in_to)
		free_input(client);
}

/* ---- its life ---------------------------------------------------------------------------------------------------- */

/* Commands need descriptors, too; and one more client must not take the last, or this could not be reported. */
static bool has_room(const struct server *server)
{
	struct rlimit files;
	return server->client_count < CLIENTS_MAX &&
	       getrlimit(RLIMIT_NOFILE, &files) == 0 && server->client_count < files.rlim_cur / 4;
}

/* The first byte tells the protocol. A client that has not sent it yet is taken for `cordon run`. */
static void decline(int fd)
{
	unsigned char first;
	turn_away(fd, recv(fd, &first, 1, MSG_PEEK | MSG_DONTWAIT) == 1 && first < WIRE_HELLO);
}

void client_accept(struct server *server, int fd)
{
	pid_t pid;
	bool is_own_user = peer_is_own_user(fd, &pid);
	struct client *client = is_own_user && has_room(server) ? calloc(1, sizeof(*client)) : NULL;
	if (client)
		client->out = evbuffer_new();
	if (!client || !client->out) {
		if (is_own_user)
			decline(fd);
		free(client);
		close(fd);
		return;
	}
	client->server = server;
	client->fd = fd;
	client->pid = pid;
	pthread_mutex_init(&client->lock, NULL);
	client->pending = 1; /* the connection itself */
	client->next = server->clients;
	client->previous = &server->clients;
	if (client->next)
		client->next->previous = &client->next;
	server->clients = client;
	server->client_count++;
	event_assign(&client->readable, server->base, fd, EV_READ | EV_PERSIST, on_readable, client);
	event_assign(&client->writable, server->base, fd, EV_WRITE | EV_PERSIST, on_writable, client);
	event_add(&client->readable, NULL);
	/* It has mostly said already what it wants. */
	on_readable(fd, EV_READ, client);
}

void client_drop(struct client *client)
{
	if (client->is_gone)
		return;
	client->is_gone = true;
	event_del(&client->readable);
	event_del(&client->writable);
	pthread_mutex_lock(&client->lock);
	give_up(client);
	pthread_mutex_unlock(&client->lock);
	for (struct served *run = client->runs; run; run = run->next)
		run_end(run, SIGHUP);
	watches_end(client);
	client_settle(client);
}

/* Once nothing points to it. */
static void release(struct client *client)
{
	struct server *server = client->server;
	pthread_mutex_lock(&client->lock);
	bool is_held = client->pending || client->is_posted;
	pthread_mutex_unlock(&client->lock);
	if (is_held)
		return;
	*client->previous = client->next;
	if (client->next)
		client->next->previous = client->previous;
	server->client_count--;
	close(client->fd);
	evbuffer_free(client->out);
	pthread_mutex_destroy(&client->lock);
	free_input(client);
	free(client);
	server_trim(server);
	server_settle(server);
}

void client_settle(struct client *client)
{
	struct server *server = client->server;
	client->pending--;
	release(client);
	/* It may have been what an end waits for, also where the client stays. */
	server_settle(server);
}

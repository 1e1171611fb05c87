/* cordon-gateway: see gateway.h. Started by the supervisor with nothing but a socket, which is also its lifeline. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gateway/gateway.h"
#include "proxy/seal.h"

#define FAREWELL_MS 500         /* for the children to tell how far they came */

static struct gateway_settings settings;
static struct gateway_route routes[GATEWAYS_MAX];
static size_t route_count;
static struct {
	int fd;
	uint16_t port;
} listeners[GATEWAYS_MAX];
static size_t listener_count;

__attribute__((noreturn)) static void stop(const char *why)
{
	struct proxy_message message = { .kind = PROXY_TOTALS };
	snprintf(message.text, sizeof(message.text), "%s", why);
	send(PROXY_FD, &message, sizeof(message), MSG_DONTWAIT | MSG_NOSIGNAL);
	_exit(2);
}

static void tell(const struct proxy_message *message)
{
	(void)!send(PROXY_FD, message, sizeof(*message), MSG_NOSIGNAL);
}

/* ---- what the supervisor says ----------------------------------------------------------------------------------- */

static bool receive(struct proxy_message *ret_message, int *ret_fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec part = { ret_message, sizeof(*ret_message) };
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	ssize_t got;
	do
		got = recvmsg(PROXY_FD, &message, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	*ret_fd = -1;
	if (got != sizeof(*ret_message))
		return false;
	const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
	    header->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(ret_fd, CMSG_DATA(header), sizeof(int));
	return !(message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) &&
	       memchr(ret_message->host, '\0', sizeof(ret_message->host)) &&
	       memchr(ret_message->text, '\0', sizeof(ret_message->text));
}

static struct gateway_route *find_route(uint16_t port)
{
	for (size_t i = 0; i < route_count; i++)
		if (routes[i].port == port)
			return &routes[i];
	return NULL;
}

static bool append(char **text, size_t *length, size_t max, const struct proxy_message *message)
{
	size_t more = message->secret.length;
	if (more > sizeof(message->secret.bytes) || more > max - *length || (!*text && !(*text = calloc(1, max + 1))))
		return false;
	memcpy(*text + *length, message->secret.bytes, more);
	*length += more;
	return true;
}

static bool take_text(char *text, size_t size, const struct proxy_message *message)
{
	size_t length = message->secret.length;
	if (length >= size || length > sizeof(message->secret.bytes))
		return false;
	memcpy(text, message->secret.bytes, length);
	text[length] = '\0';
	return true;
}

/* The first one says where it leads. */
static bool take_route(const struct proxy_message *message)
{
	struct gateway_route *route = find_route(message->secret.port);
	if (!route) {
		if (route_count == GATEWAYS_MAX || message->secret.field != PROXY_GATEWAY_PATH ||
		    host_parse_port(message->host, strlen(message->host), &routes[route_count].host))
			return false;
		route = &routes[route_count++];
		route->port = message->secret.port;
	}
	switch (message->secret.field) {
	case PROXY_GATEWAY_PATH:
		return take_text(route->path, sizeof(route->path), message);
	case PROXY_GATEWAY_HEADER:
		return take_text(route->header, sizeof(route->header), message) && gateway_is_header(route->header);
	case PROXY_GATEWAY_PREFIX:
		return take_text(route->prefix, sizeof(route->prefix), message);
	case PROXY_GATEWAY_KEY:
		return append(&route->key, &route->key_length, GATEWAY_KEY_MAX, message);
	case PROXY_GATEWAY_CA:
		return append(&route->ca, &route->ca_length, GATEWAY_CA_MAX, message);
	case PROXY_GATEWAY_WHY:
		memcpy(route->why, message->text, sizeof(route->why));
		return true;
	default:
		return false;
	}
}

static bool take(const struct proxy_message *message)
{
	switch (message->kind) {
	case PROXY_SETTINGS:
		settings.connections = message->settings.connections;
		settings.total_connections = message->settings.total_connections;
		settings.connect_ms = message->settings.connect_ms;
		settings.idle_ms = message->settings.idle_ms;
		settings.header_bytes = message->settings.header_bytes;
		settings.total_bytes = message->settings.total_bytes;
		return true;
	case PROXY_EXEMPTION:
		return settings.exemption_count == ARRAY_SIZE(settings.exemptions) ||
		       address_exemption_parse(message->host, &settings.exemptions[settings.exemption_count++], NULL) ==
		               0;
	case PROXY_PRIVATE:
		return settings.private_count == ARRAY_SIZE(settings.private_hosts) ||
		       !host_parse_port(message->host, strlen(message->host),
		                        &settings.private_hosts[settings.private_count++]);
	case PROXY_NAME:
		return true;
	case PROXY_GATEWAY:
		return take_route(message);
	default:
		return false;
	}
}

static const char *read_settings(void)
{
	for (;;) {
		struct proxy_message message;
		int fd;
		if (!receive(&message, &fd))
			return "a message is none";
		if (message.kind == PROXY_BEGIN)
			return settings.connections ? NULL : "there are no settings";
		if (message.kind == PROXY_LISTENER && fd >= 0 && listener_count < GATEWAYS_MAX) {
			listeners[listener_count].fd = fd;
			listeners[listener_count++].port = message.listener.port;
			(void)!fcntl(fd, F_SETFL, O_NONBLOCK);
			continue;
		}
		if (fd >= 0 || !take(&message))
			return "a message has no place here";
		explicit_bzero(&message, sizeof(message));
	}
}

/* What is wrong with one gateway is told to those who use it. */
static void prepare_routes(void)
{
	for (size_t i = 0; i < route_count; i++) {
		const char *why = routes[i].key ? tls_prepare(&routes[i]) : NULL;
		if (why)
			snprintf(routes[i].why, sizeof(routes[i].why), "%s", why);
	}
}

/* ---- connections ------------------------------------------------------------------------------------------------ */

static size_t live;
static uint64_t total;
static bool leaves;

static void reap(void)
{
	while (live && waitpid(-1, NULL, WNOHANG) > 0)
		live--;
}

static void accept_one(size_t index, struct gateway_shared *shared, const int *end_pipe)
{
	int client = accept4(listeners[index].fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	const struct gateway_route *route = find_route(listeners[index].port);
	if (client < 0)
		return;
	total++;
	pid_t parent = getpid(), pid = route ? fork() : -1;
	if (pid == 0) {
		const struct gateway_child child = {
			&settings, route, shared, client, end_pipe[0], total > settings.total_connections
		};
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		close(end_pipe[1]);
		for (size_t i = 0; i < listener_count; i++)
			close(listeners[i].fd);
		gateway_serve(&child);
	}
	live += pid > 0;
	close(client);
}

/* Those that run see the pipe closed, tell of themselves and end. */
__attribute__((noreturn)) static void end(int *end_pipe)
{
	const struct proxy_message totals = { .kind = PROXY_TOTALS };
	close(end_pipe[1]);
	for (int waited = 0; live && waited < FAREWELL_MS; waited += 5) {
		reap();
		poll(NULL, 0, live ? 5 : 0);
	}
	tell(&totals);
	_exit(0);
}

static void take_message(int *end_pipe)
{
	struct proxy_message message;
	ssize_t got = recv(PROXY_FD, &message, sizeof(message), MSG_DONTWAIT);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got != sizeof(message))
		_exit(0);
	if (message.kind == PROXY_END)
		end(end_pipe);
	/* The gateways are the same in the next one, which listens from now on: the rules are none of ours. */
	if (message.kind == PROXY_LEAVE) {
		for (size_t i = 0; i < listener_count; i++)
			close(listeners[i].fd);
		listener_count = 0;
		leaves = true;
	}
	if (message.kind == PROXY_TELL)
		tell(&(struct proxy_message){ .kind = PROXY_TOLD, .id = message.id });
}

static void on_child(int number)
{
	(void)number;
}

int main(void)
{
	static const struct proxy_message ready = { .kind = PROXY_READY };
	int end_pipe[2];
	close_range(PROXY_FD + 1, ~0U, 0);
	prctl(PR_SET_NAME, "cordon-gateway");
	signal(SIGPIPE, SIG_IGN);
	/* What compares dates reads a file the first time. */
	tzset();
	/* Without SA_RESTART: poll() returns when a child has ended. */
	sigaction(SIGCHLD, &(struct sigaction){ .sa_handler = on_child }, NULL);
	const char *why = seal_drop_root();
	if (!why)
		why = read_settings();
	prepare_routes();
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	struct gateway_shared *shared =
		mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!why && (shared == MAP_FAILED || pipe2(end_pipe, O_CLOEXEC) < 0))
		why = "out of memory";
	if (why)
		stop(why);
	tell(&ready);
	for (;;) {
		struct pollfd ready_fds[1 + GATEWAYS_MAX] = { { .fd = PROXY_FD, .events = POLLIN } };
		bool is_full = live >= settings.connections;
		for (size_t i = 0; i < listener_count; i++)
			ready_fds[1 + i] = (struct pollfd){ .fd = is_full ? -1 : listeners[i].fd, .events = POLLIN };
		/* A child can end between the look and the wait. */
		int found = poll(ready_fds, 1 + listener_count, live ? 200 : -1);
		reap();
		if (found <= 0 && !leaves)
			continue;
		if (found > 0 && ready_fds[0].revents)
			take_message(end_pipe);
		if (leaves && !live)
			end(end_pipe);
		for (size_t i = 0; i < listener_count; i++)
			if (ready_fds[1 + i].revents)
				accept_one(i, shared, end_pipe);
	}
}

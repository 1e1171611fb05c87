/* The network of listed hosts: see egress.h. */
#include "egress/egress.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>

#define LAST_WORDS_MS 2000      /* for the proxy to tell what it has not told yet */
#define LAST_WORDS_MAX 4096     /* messages, besides two for each connection: more than there can be on their way */
#define HINT_HOSTS_MAX 4        /* that one line names */
#define HELD_MAX 32             /* listeners, until one is used: descriptors of the caller's process */
#define PATIENCE_S 10           /* for the proxy to read what it is told */
#define CROWDED_PAUSE_NS 2000000
#define CROWDED_ROUNDS 1000

/* Without a network the proxy only says so: nothing is lost where there is none. */
static bool is_offline(const struct egress *egress)
{
	return egress->facts.plan->is_offline;
}

/* ---- what is said to the proxy ------------------------------------------------------------------------------------ */

int egress_send(const struct egress *egress, const struct proxy_message *message, int fd)
{
	struct iovec part = { (void *)(uintptr_t)message, sizeof(*message) };
	union {
		struct cmsghdr header;
		unsigned char space[CMSG_SPACE(sizeof(int))];
	} control = { .header = { .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1 };
	ssize_t sent;
	if (fd >= 0) {
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
		header.msg_control = &control;
		header.msg_controllen = sizeof(control);
	}
	/* The descriptors that a user may have under way are bounded; those of others will arrive. */
	for (int rounds = 0; (sent = sendmsg(egress->process.fd, &header, MSG_NOSIGNAL)) < 0; rounds++) {
		if (errno == ETOOMANYREFS && rounds < CROWDED_ROUNDS)
			nanosleep(&(struct timespec){ .tv_nsec = CROWDED_PAUSE_NS }, NULL);
		else if (errno != EINTR)
			return -1;
	}
	return 0;
}

static int send_settings(const struct egress *egress)
{
	const struct config *config = egress->facts.config;
	struct proxy_message message = { .kind = PROXY_SETTINGS };
	message.settings.connections = config->network.connections;
	message.settings.total_connections = config->network.total_connections;
	message.settings.connect_ms = config->network.connect_ms;
	message.settings.idle_ms = config->network.idle_ms;
	message.settings.header_bytes = config->network.header_bytes;
	message.settings.total_bytes = config->network.bytes;
	message.settings.offline = is_offline(egress);
	message.settings.asks = egress->facts.question != NULL;
	return egress_send(egress, &message, -1);
}

static int send_names(const struct egress *egress)
{
	const struct config *config = egress->facts.config;
	int result = 0;
	for (size_t i = 0; i < config->network.name_count && result == 0; i++) {
		struct proxy_message message = { .kind = PROXY_NAME };
		message.name.address = config->network.names[i].address;
		snprintf(message.host, sizeof(message.host), "%s", config->network.names[i].name);
		result = egress_send(egress, &message, -1);
	}
	const struct strings *const private_hosts[] = { &config->network.private_hosts,
		                                        egress->facts.private_hosts };
	for (size_t list = 0; list < ARRAY_SIZE(private_hosts); list++)
		for (size_t i = 0; i < private_hosts[list]->count && result == 0; i++) {
			struct proxy_message message = { .kind = PROXY_PRIVATE };
			snprintf(message.host, sizeof(message.host), "%s", private_hosts[list]->items[i]);
			result = egress_send(egress, &message, -1);
		}
	for (size_t i = 0; i < config->network.exempt_count && result == 0; i++) {
		const struct address_range *range = &config->network.exempt[i];
		struct proxy_message message = { .kind = PROXY_EXEMPTION };
		char address[ADDRESS_TEXT_SIZE];
		address_text(&range->first, address);
		snprintf(message.host, sizeof(message.host), "%s/%u", address, range->bits);
		result = egress_send(egress, &message, -1);
	}
	return result;
}

/* Where the kernel has no IPv6, no name has an address of it. */
static int send_rules(const struct egress *egress, bool has_v6)
{
	const struct egress_plan *plan = egress->facts.plan;
	int result = 0;
	for (size_t i = 0; i < plan->rule_count && result == 0; i++) {
		struct proxy_message message = { .kind = PROXY_RULE };
		message.rule.v4 = plan->rules[i].v4;
		if (has_v6)
			message.rule.v6 = plan->rules[i].v6;
		snprintf(message.host, sizeof(message.host), "%s", plan->rules[i].text);
		result = egress_send(egress, &message, -1);
	}
	return result;
}

static int send_listeners(struct egress *egress, bool *ret_has_v6)
{
	const struct egress_plan *plan = egress->facts.plan;
	int result = 0;
	*ret_has_v6 = false;
	for (size_t i = 0; i < plan->count; i++) {
		struct proxy_message message = { .kind = PROXY_LISTENER };
		int fd = egress->listeners[i];
		if (fd < 0)
			continue;
		message.listener.use = plan->listeners[i].use;
		message.listener.port = plan->listeners[i].port;
		message.listener.address = plan->listeners[i].address;
		*ret_has_v6 |= message.listener.address.length == 16;
		if (result == 0)
			result = egress_send(egress, &message, fd);
		close(take_fd(&egress->listeners[i]));
	}
	return result;
}

static void close_listeners(struct egress *egress)
{
	const struct egress_plan *plan = egress->facts.plan;
	for (size_t i = 0; egress->listeners && i < plan->count; i++)
		if (egress->listeners[i] >= 0)
			close(take_fd(&egress->listeners[i]));
}

/* One that does not listen is ended, and found out about by reading like one that is gone. */
static void brief(struct egress *egress)
{
	bool has_v6;
	if (send_listeners(egress, &has_v6) < 0 || send_settings(egress) < 0 || send_names(egress) < 0 ||
	    send_rules(egress, has_v6) < 0 || egress_send(egress, &(struct proxy_message){ .kind = PROXY_BEGIN }, -1) < 0)
		proxy_kill(&egress->process);
}

/* ---- the reader --------------------------------------------------------------------------------------------------- */

static int start(struct egress *egress, struct cordon_error *err)
{
	const struct timeval patience = { .tv_sec = PATIENCE_S };
	int program = proxy_program_fd(err);
	if (program < 0 || proxy_open(&egress->process, err) < 0)
		return -1;
	setsockopt(egress->process.fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	return proxy_start(&egress->process, program, err);
}

/* For it to have its listeners, or to have ended before it came so far. */
static enum egress_command await_command(struct egress *egress)
{
	pthread_mutex_lock(&egress->lock);
	while (egress->command == EGRESS_NO_COMMAND && !egress->ended)
		pthread_cond_wait(&egress->changed, &egress->lock);
	enum egress_command command = egress->command;
	pthread_mutex_unlock(&egress->lock);
	return command;
}

/* For a connection or a question about a name to wait at a listener, or for the end of the command; whether one does.
 * Nothing is read from them here. That it has ended is looked at first: what it left there is seen after that. What a probe
 * is to find out is whether there can be a proxy; and many listeners are not for the caller to hold. */
static bool await_use(const struct egress *egress)
{
	size_t count = egress->facts.plan->count;
	struct pollfd ready[1 + HELD_MAX] = { { .fd = egress->ended_fd, .events = POLLIN } };
	int found;
	if ((egress->facts.probe && !is_offline(egress)) || count > HELD_MAX)
		return true;
	for (size_t i = 0; i < count; i++)
		ready[1 + i] = (struct pollfd){ .fd = egress->listeners[i], .events = POLLIN };
	do
		found = poll(ready, 1 + count, -1);
	while (found < 0 && errno == EINTR);
	/* Where it cannot be known, the proxy finds out. */
	return found != 1 || !ready[0].revents;
}

/* -1: no more. */
static int handle(struct egress *egress, const struct proxy_message *message, struct cordon_error *err)
{
	switch (message->kind) {
	case PROXY_READY:
		egress->ready = true;
		return 0;
	case PROXY_QUESTION:
		egress_ask(egress, message);
		return 0;
	case PROXY_TOTALS:
		egress->told = egress->ready;
		if (!egress->told)
			memcpy(egress->why, message->text, sizeof(egress->why));
		return -1;
	default:
		if (egress_tell(egress, message, err) == 0)
			return 0;
		egress->unrecorded = true;
		return -1;
	}
}

/* One message; -1: no more. */
static int hear(struct egress *egress, struct cordon_error *err)
{
	struct proxy_message message;
	ssize_t length = recv(egress->process.fd, &message, sizeof(message), MSG_DONTWAIT | MSG_TRUNC);
	/* ECONNRESET is said once, where it ended with something unread, and before what it has said itself. */
	if (length < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNRESET))
		return 0;
	if (length != (ssize_t)sizeof(message) || !egress_message_is_sound(&message))
		return -1;
	return handle(egress, &message, err);
}

static uint64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Not if it has left unread so much that this does not fit: then it is not waited for either. */
static int send_end(struct egress *egress)
{
	const struct proxy_message message = { .kind = PROXY_END };
	ssize_t sent = send(egress->process.fd, &message, sizeof(message), MSG_NOSIGNAL | MSG_DONTWAIT);
	egress->gave_up = sent < 0 && errno == EAGAIN;
	return sent == (ssize_t)sizeof(message) ? 0 : -1;
}

/* While the command runs. -1: no more. */
static int listen_to(struct egress *egress, struct cordon_error *err)
{
	for (;;) {
		struct pollfd ready[] = { { .fd = egress->process.fd, .events = POLLIN },
			                  { .fd = egress->ended_fd, .events = POLLIN } };
		if (poll(ready, ARRAY_SIZE(ready), -1) < 0 && errno != EINTR)
			return -1;
		if (ready[0].revents && hear(egress, err) < 0)
			return -1;
		if (ready[1].revents)
			return 0;
	}
}

/* The command has ended. Until the proxy has said its last, or is gone, or has been waited for long enough. What its words take
 * us, with a ledger that is slow, is no time of its own; so that it cannot go on for ever, they are counted. It is asked to end
 * when it is ready: until then it has not read what it was told before. */
static void hear_last(struct egress *egress, struct cordon_error *err)
{
	uint64_t left = LAST_WORDS_MAX + 2 * egress->facts.config->network.connections, waited_ms = 0;
	bool asked = false;
	int result = 0;
	while (result == 0 && left && waited_ms < LAST_WORDS_MS) {
		struct pollfd ready = { .fd = egress->process.fd, .events = POLLIN };
		uint64_t before_ms = now_ms();
		if (egress->ready && !asked && send_end(egress) < 0)
			return;
		asked = egress->ready;
		if (poll(&ready, 1, (int)(LAST_WORDS_MS - waited_ms)) < 0 && errno != EINTR)
			return;
		waited_ms += now_ms() - before_ms;
		if (ready.revents) {
			left--;
			result = hear(egress, err);
		}
	}
	egress->gave_up = result == 0;
}

/* It is being killed: what it said until then. */
static void hear_out(struct egress *egress, struct cordon_error *err)
{
	struct pollfd ready = { .fd = egress->process.fd, .events = POLLIN };
	while (poll(&ready, 1, LAST_WORDS_MS) != 0 && hear(egress, err) == 0)
		;
}

static void carry(struct egress *egress)
{
	struct cordon_error err;
	brief(egress);
	if (listen_to(egress, &err) == 0)
		hear_last(egress, &err);
	proxy_kill(&egress->process);
	if (!egress->told && !egress->unrecorded)
		hear_out(egress, &err);
}

static void *read_all(void *argument)
{
	static const char gone[] = "the proxy ended before the command did, and its connections with it";
	static const char killed[] = "the proxy did not end with the command and was killed; connections may be without a row";
	static const char unready[] = "the proxy did not get ready, and nothing came of its connections";
	struct egress *egress = argument;
	struct cordon_error err;
	enum egress_command command = await_command(egress);
	if (command == EGRESS_NO_COMMAND)
		return NULL;
	if (command == EGRESS_LISTENS && !await_use(egress))
		return NULL;
	if (command == EGRESS_LISTENS && start(egress, &err) == 0) {
		carry(egress);
	} else {
		/* The command runs; it has no network then, and that is told. */
		close_listeners(egress);
		snprintf(egress->why, sizeof(egress->why), "%.*s", (int)sizeof(egress->why) - 1,
		         command == EGRESS_LISTENS ? err.reason : "its listeners were not handed out");
	}
	bool lost = !egress->told && !egress->unrecorded && !is_offline(egress);
	if (lost) {
		egress->counts.failed++;
		if (!*egress->why)
			snprintf(egress->why, sizeof(egress->why), "%s", !egress->ready ? unready : egress->gave_up ? killed : gone);
	}
	if (!egress->unrecorded && ((lost && egress_tell_failed(egress, egress->why, &err) < 0) ||
	                            egress_tell_rest(egress, &err) < 0))
		egress->unrecorded = true;
	return NULL;
}

/* ---- the walk ------------------------------------------------------------------------------------------------------ */

static void destroy(struct egress *egress)
{
	close_listeners(egress);
	proxy_end(&egress->process);
	cleanup_close(&egress->ended_fd);
	pthread_cond_destroy(&egress->changed);
	pthread_mutex_destroy(&egress->lock);
	free(egress->listeners);
	free(egress->denied);
	free(egress);
}

static int start_reader(struct egress *egress, struct cordon_error *err)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int result = pthread_create(&egress->reader, NULL, read_all, egress);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	egress->has_reader = result == 0;
	return result == 0 ? 0 : fail(err, CORDON_E_INTERNAL, result, "pthread_create", "cannot start a thread");
}

int egress_begin(const struct egress_facts *facts, struct egress **ret_egress, struct cordon_error *err)
{
	size_t count = facts->plan->count;
	struct egress *egress = calloc(1, sizeof(*egress));
	if (!egress)
		return fail_oom(err);
	*egress = (struct egress){ .facts = *facts, .process = { -1, -1, -1 }, .last = &egress->first };
	pthread_mutex_init(&egress->lock, NULL);
	pthread_cond_init(&egress->changed, NULL);
	egress->ended_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	egress->listeners = malloc(count * sizeof(*egress->listeners));
	for (size_t i = 0; egress->listeners && i < count; i++)
		egress->listeners[i] = -1;
	if (!egress->listeners || egress->ended_fd < 0)
		fail(err, CORDON_E_INTERNAL, errno, NULL, "cannot make what the proxy needs");
	/* Without a network nobody needs an answer to be refused. */
	else if (start_reader(egress, err) == 0 || is_offline(egress)) {
		*ret_egress = egress;
		return 0;
	}
	destroy(egress);
	return -1;
}

int *egress_listeners(struct egress *egress)
{
	return egress->listeners;
}

void egress_started(struct egress *egress, bool listens)
{
	pthread_mutex_lock(&egress->lock);
	egress->command = listens ? EGRESS_LISTENS : EGRESS_DEAF;
	pthread_cond_broadcast(&egress->changed);
	pthread_mutex_unlock(&egress->lock);
}

static void join(struct egress *egress)
{
	uint64_t one = 1;
	pthread_mutex_lock(&egress->lock);
	egress->ended = true;
	pthread_cond_broadcast(&egress->changed);
	pthread_mutex_unlock(&egress->lock);
	(void)!write(egress->ended_fd, &one, sizeof(one));
	if (egress->has_reader)
		pthread_join(egress->reader, NULL);
	egress->has_reader = false;
	egress_ask_end(egress);
}

void egress_free(struct egress *egress)
{
	if (!egress)
		return;
	join(egress);
	destroy(egress);
}

/* ---- what became of it --------------------------------------------------------------------------------------------- */

/* The smallest grant that would have helped: the host, unless it was among them and its address was not; then that. */
static int add_denied(const struct egress_report *report, const struct egress_denied *denied, bool offline)
{
	char note[512], grant[HOST_TEXT_SIZE + 64] = "";
	bool has_port = strchr(denied->host, ':') != NULL;
	snprintf(note, sizeof(note), "%s%s%" PRIu64 " time%s", denied->why, *denied->why ? "; " : "", denied->count,
	         denied->count == 1 ? "" : "s");
	if (offline)
		snprintf(grant, sizeof(grant), "--net %s%s", denied->host, has_port ? "" : ":443");
	else if (denied->is_at_site)
		snprintf(grant, sizeof(grant), "--net-private %s", denied->host);
	else if (*denied->address)
		snprintf(grant, sizeof(grant), "network.allow_private = [\"%s\"]", denied->address);
	else if (!denied->covered)
		snprintf(grant, sizeof(grant), "--net %s%s", denied->host, has_port ? "" : ":PORT");
	return denials_add(report->denials, report->arena, CORDON_WALL_NETWORK, denied->host, note, grant);
}

/* "no network access (tried: a.test, b.test). To allow it: --net a.test:443 --net b.test:443" */
static int make_offline_hint(const struct egress *egress, struct egress_report *report)
{
	struct arena *arena = report->arena;
	const char *tried = "", *options = "";
	for (size_t i = 0; i < egress->denied_count && i < HINT_HOSTS_MAX && tried && options; i++) {
		const char *host = egress->denied[i].host, *colon = strrchr(host, ':');
		int length = (int)(colon ? (size_t)(colon - host) : strlen(host));
		tried = arena_printf(arena, "%s%s%.*s", tried, i ? ", " : "", length, host);
		options = arena_printf(arena, "%s --net %s%s", options, host, colon ? "" : ":443");
	}
	if (!egress->denied_count)
		return 0;
	report->offline_hint = !tried || !options ? NULL :
		arena_printf(arena, PROXY_NO_NETWORK " (tried: %s%s). To allow it:%s", tried,
		             egress->denied_count > HINT_HOSTS_MAX ? ", ..." : "", options);
	return report->offline_hint ? 0 : -1;
}

static int take_over(const struct egress *egress, struct egress_report *report)
{
	char more[64];
	if (is_offline(egress) && make_offline_hint(egress, report) < 0)
		return -1;
	report->counts = egress->counts;
	for (size_t i = 0; i < egress->denied_count; i++)
		if (add_denied(report, &egress->denied[i], is_offline(egress)) < 0)
			return -1;
	snprintf(more, sizeof(more), "%" PRIu64 " more connections were denied", egress->denied_more);
	if (egress->denied_more && denials_add(report->denials, report->arena, CORDON_WALL_NETWORK, "other hosts", more, "") < 0)
		return -1;
	if (*egress->why && !is_offline(egress) &&
	    denials_add(report->denials, report->arena, CORDON_WALL_NETWORK, "all hosts", egress->why, "") < 0)
		return -1;
	if (egress->unrecorded &&
	    denials_add(report->denials, report->arena, CORDON_WALL_NETWORK, "all hosts",
	                "the ledger could not be written: its connections were closed, and no more were made", "") < 0)
		return -1;
	return 0;
}

int egress_end(struct egress *egress, struct egress_report *report, struct cordon_error *err)
{
	join(egress);
	if (take_over(egress, report) < 0)
		return fail_oom(err);
	if (!egress->facts.probe || egress->told || is_offline(egress))
		return 0;
	fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, "cordon-proxy", "%s",
	     *egress->why ? egress->why : "the proxy cannot seal itself here");
	return fail_boundary(err, "network");
}

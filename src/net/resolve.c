/* The resolver: see resolve.h. c-ares asks the servers; its sockets are watched by one epoll descriptor, together with
 * a timer for what must happen without an answer. A lookup is two questions, for IPv4 and for IPv6:
 *
 *     pending    questions that c-ares will still call back for, whatever happens
 *     settled    the resolution stands; the next step hands it over
 *     fn NULL    nobody waits any more: only the questions keep it
 *
 * c-ares cannot take back a single question, so a lookup that is cancelled or late stays until its questions are done.
 */
#include "net/resolve.h"

#include <ares.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "net/dns.h"
#include "net/hosts.h"

#define TIMEOUT_MS 10000
#define TRY_MS 2000             /* until a server is asked again, or the next one */
#define TRIES 3
#define OTHER_FAMILY_MS 2000    /* how long addresses of one family wait for those of the other */
#define CLASS_IN 1

struct question {
	struct lookup *lookup;
	unsigned type;
};

struct lookup {
	struct lookup *next;
	struct resolver *resolver;
	resolved_fn fn;
	void *arg;
	uint64_t deadline_ms;
	unsigned pending;
	bool settled, absent;                   /* absent: a server said that there is none */
	struct question questions[2];
	struct host host;
	struct resolution resolution;
};

struct resolver {
	ares_channel channel;
	struct hosts hosts;
	struct lookup *lookups;
	size_t count;
	unsigned timeout_ms;
	const struct address_range *exemptions;
	size_t exemption_count;
	int epoll_fd, timer_fd;
};

static uint64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- sockets, as c-ares asks for them ---------------------------------------------------------------------------- */

/* Its own way makes them close-on-exec one call too late, and lets a closed connection send SIGPIPE to the caller. */
static ares_socket_t on_socket(int domain, int type, int protocol, void *arg)
{
	(void)arg;
	return socket(domain, type | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);
}

static int on_close(ares_socket_t fd, void *arg)
{
	(void)arg;
	return close(fd);
}

static int on_connect(ares_socket_t fd, const struct sockaddr *address, ares_socklen_t length, void *arg)
{
	(void)arg;
	return connect(fd, address, length);
}

static ares_ssize_t on_receive(ares_socket_t fd, void *bytes, size_t size, int flags, struct sockaddr *from,
                               ares_socklen_t *from_length, void *arg)
{
	(void)arg;
	return recvfrom(fd, bytes, size, flags, from, from_length);
}

static ares_ssize_t on_send(ares_socket_t fd, const struct iovec *parts, int count, void *arg)
{
	(void)arg;
	struct msghdr message = { .msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = (size_t)count };
	return sendmsg(fd, &message, MSG_NOSIGNAL);
}

static const struct ares_socket_functions socket_functions = { on_socket, on_close, on_connect, on_receive, on_send };

static void on_watch(void *arg, ares_socket_t fd, int readable, int writable)
{
	const struct resolver *resolver = arg;
	struct epoll_event event = { .events = (readable ? EPOLLIN : 0u) | (writable ? EPOLLOUT : 0u), .data.fd = fd };
	if (!event.events)
		epoll_ctl(resolver->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	else if (epoll_ctl(resolver->epoll_fd, EPOLL_CTL_MOD, fd, &event) < 0)
		epoll_ctl(resolver->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

/* ---- opening ---------------------------------------------------------------------------------------------------- */

static int open_channel(struct resolver *resolver, const struct resolver_options *options, struct cordon_error *err)
{
	char lookups[] = "b", *resolv_conf = (char *)(uintptr_t)options->resolv_conf;
	struct ares_options wanted = {
		.timeout = TRY_MS, .tries = TRIES, .lookups = lookups, .resolvconf_path = resolv_conf,
		.sock_state_cb = on_watch, .sock_state_cb_data = resolver,
	};
	/* No domains: neither resolv.conf's nor that of this machine's name. */
	int mask = ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB | ARES_OPT_DOMAINS |
	           (resolv_conf ? ARES_OPT_RESOLVCONF : 0);
	int rc = ares_init_options(&resolver->channel, &wanted, mask);
	if (rc == ARES_ENOMEM)
		return fail_oom(err);
	if (rc != ARES_SUCCESS)
		return fail(err, CORDON_E_NETWORK_UNREACHABLE, 0, "", "the resolver cannot start: %s",
		            ares_strerror(rc));
	ares_set_socket_functions(resolver->channel, &socket_functions, resolver);
	if (options->servers && ares_set_servers_ports_csv(resolver->channel, options->servers) != ARES_SUCCESS)
		return fail(err, CORDON_E_INVALID_REQUEST, 0, options->servers, "no list of name servers");
	return 0;
}

static int open_descriptors(struct resolver *resolver, struct cordon_error *err)
{
	resolver->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	resolver->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	struct epoll_event event = { .events = EPOLLIN, .data.fd = resolver->timer_fd };
	if (resolver->epoll_fd < 0 || resolver->timer_fd < 0 ||
	    epoll_ctl(resolver->epoll_fd, EPOLL_CTL_ADD, resolver->timer_fd, &event) < 0)
		return fail(err, CORDON_E_INTERNAL, errno, "", "the resolver cannot start");
	return 0;
}

int resolver_open(const struct resolver_options *options, struct resolver **ret_resolver, struct cordon_error *err)
{
	struct resolver *resolver = calloc(1, sizeof(*resolver));
	if (!resolver)
		return fail_oom(err);
	resolver->epoll_fd = resolver->timer_fd = -1;
	resolver->timeout_ms = options->timeout_ms ? options->timeout_ms : TIMEOUT_MS;
	resolver->exemptions = options->exemptions;
	resolver->exemption_count = options->exemption_count;
	if (open_descriptors(resolver, err) < 0 ||
	    hosts_read(options->hosts ? options->hosts : HOSTS_PATH, &resolver->hosts, err) < 0 ||
	    open_channel(resolver, options, err) < 0) {
		resolver_unref(resolver);
		return -1;
	}
	*ret_resolver = resolver;
	return 0;
}

void resolver_unref(struct resolver *resolver)
{
	if (!resolver)
		return;
	/* Calls back for every question. */
	if (resolver->channel)
		ares_destroy(resolver->channel);
	for (struct lookup *lookup; (lookup = resolver->lookups);) {
		resolver->lookups = lookup->next;
		free(lookup);
	}
	hosts_free(&resolver->hosts);
	cleanup_close(&resolver->timer_fd);
	cleanup_close(&resolver->epoll_fd);
	free(resolver);
}

int resolver_fd(const struct resolver *resolver)
{
	return resolver->epoll_fd;
}

/* ---- what a lookup finds ---------------------------------------------------------------------------------------- */

static void add_addresses(struct lookup *lookup, const struct address *addresses, size_t count)
{
	lookup->resolution.more |= count > RESOLVE_ADDRESSES_MAX;
	for (size_t i = 0; i < count && i < RESOLVE_ADDRESSES_MAX; i++)
		resolution_add(&lookup->resolution, &addresses[i]);
}

static void settle(struct lookup *lookup, enum resolve_status status)
{
	lookup->settled = true;
	resolution_judge(&lookup->resolution, status, lookup->resolver->exemptions, lookup->resolver->exemption_count);
}

static void on_answer(void *arg, int status, int timeouts, unsigned char *message, int length)
{
	(void)timeouts;
	const struct question *question = arg;
	struct lookup *lookup = question->lookup;
	struct address addresses[RESOLVE_ADDRESSES_MAX];
	lookup->pending--;
	if (lookup->settled)
		return;
	if (status == ARES_SUCCESS && message && length >= 0) {
		long count = dns_reply_addresses(message, (size_t)length, lookup->host.name, question->type, addresses,
		                                 RESOLVE_ADDRESSES_MAX);
		if (count > 0)
			add_addresses(lookup, addresses, (size_t)count);
		lookup->absent |= count == 0;
	}
	lookup->absent |= status == ARES_ENODATA || status == ARES_ENOTFOUND;
	if (!lookup->pending)
		settle(lookup, lookup->absent ? RESOLVE_NOT_FOUND :
		               status == ARES_ETIMEOUT ? RESOLVE_TIMED_OUT : RESOLVE_FAILED);
	else if (lookup->resolution.count && now_ms() + OTHER_FAMILY_MS < lookup->deadline_ms)
		lookup->deadline_ms = now_ms() + OTHER_FAMILY_MS;
}

/* ---- starting and stepping -------------------------------------------------------------------------------------- */

/* The next moment at which something is to be done; a settled lookup is done at once. */
static void set_timer(const struct resolver *resolver)
{
	struct timeval space, *next = ares_timeout(resolver->channel, NULL, &space);
	uint64_t now = now_ms(), at = UINT64_MAX;
	if (next)
		at = now + (uint64_t)next->tv_sec * 1000 + (uint64_t)next->tv_usec / 1000 + 1;
	for (const struct lookup *lookup = resolver->lookups; lookup; lookup = lookup->next)
		if (lookup->fn && (lookup->settled || lookup->deadline_ms < at))
			at = lookup->settled ? now : lookup->deadline_ms;
	uint64_t wait = at > now ? at - now : 0;
	struct itimerspec timer = { 0 };
	if (at != UINT64_MAX)
		timer.it_value = (struct timespec){ (time_t)(wait / 1000), wait ? (long)(wait % 1000) * 1000000 : 1 };
	timerfd_settime(resolver->timer_fd, 0, &timer, NULL);
}

/* Without asking anyone: true where that is an answer. */
static bool settle_alone(struct lookup *lookup)
{
	static const struct address this_machine[] = { { { 127, 0, 0, 1 }, 4 }, { { [15] = 1 }, 16 } };
	struct address addresses[RESOLVE_ADDRESSES_MAX];
	const struct host *host = &lookup->host;
	if (host->form == HOST_ADDRESS) {
		resolution_add(&lookup->resolution, &host->address);
	} else if (address_name_refused(host->name)) {
		settle(lookup, RESOLVE_NAME_REFUSED);
		return true;
	} else {
		add_addresses(lookup, addresses,
		              hosts_find(&lookup->resolver->hosts, host->name, addresses, RESOLVE_ADDRESSES_MAX));
		if (!lookup->resolution.count && hosts_is_localhost(host->name))
			add_addresses(lookup, this_machine, ARRAY_SIZE(this_machine));
	}
	if (lookup->resolution.count)
		settle(lookup, RESOLVE_FOUND);
	return lookup->settled;
}

static void ask(struct lookup *lookup)
{
	static const unsigned types[] = { DNS_TYPE_A, DNS_TYPE_AAAA };
	lookup->pending = ARRAY_SIZE(types);
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		lookup->questions[i] = (struct question){ lookup, types[i] };
		ares_query(lookup->resolver->channel, lookup->host.name, CLASS_IN, (int)types[i], on_answer,
		           &lookup->questions[i]);
	}
}

int resolver_start(struct resolver *resolver, const struct host *host, resolved_fn fn, void *arg,
                   struct lookup **ret_lookup, struct cordon_error *err)
{
	if (host->form == HOST_WILDCARD)
		return fail(err, CORDON_E_INVALID_REQUEST, 0, host->name, "not one host");
	if (resolver->count >= RESOLVE_LOOKUPS_MAX)
		return fail(err, CORDON_E_LIMIT_EXCEEDED, 0, host->name, "%d names are being resolved already",
		            RESOLVE_LOOKUPS_MAX);
	struct lookup *lookup = calloc(1, sizeof(*lookup));
	if (!lookup)
		return fail_oom(err);
	*lookup = (struct lookup){ .resolver = resolver, .fn = fn, .arg = arg, .host = *host,
	                           .deadline_ms = now_ms() + resolver->timeout_ms };
	struct lookup **last = &resolver->lookups;
	while (*last)
		last = &(*last)->next;
	*last = lookup;
	resolver->count++;
	if (!settle_alone(lookup))
		ask(lookup);
	set_timer(resolver);
	*ret_lookup = lookup;
	return 0;
}

void lookup_cancel(struct lookup *lookup)
{
	lookup->fn = NULL;      /* the next step lets it go, once its questions are done */
	lookup->settled = true;
}

/* Frees lookups that are no longer needed, and takes one that can be handed over; NULL if there is none. */
static struct lookup *next_settled(struct resolver *resolver, uint64_t now)
{
	for (struct lookup **at = &resolver->lookups, *lookup; (lookup = *at);) {
		if (lookup->fn && !lookup->settled && lookup->deadline_ms <= now)
			settle(lookup, RESOLVE_TIMED_OUT);
		if (lookup->fn && lookup->settled)
			return lookup;
		if (!lookup->fn && !lookup->pending) {
			*at = lookup->next;
			resolver->count--;
			free(lookup);
		} else {
			at = &lookup->next;
		}
	}
	return NULL;
}

void resolver_step(struct resolver *resolver)
{
	struct epoll_event events[16];
	uint64_t expirations;
	int count = epoll_wait(resolver->epoll_fd, events, ARRAY_SIZE(events), 0);
	if (read(resolver->timer_fd, &expirations, sizeof(expirations)) > 0)
		ares_process_fd(resolver->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	for (int i = 0; i < count; i++) {
		/* An error is reported by reading and by writing. */
		uint32_t happened = events[i].events;
		int fd = events[i].data.fd;
		if (fd != resolver->timer_fd)
			ares_process_fd(resolver->channel, happened & ~(uint32_t)EPOLLOUT ? fd : ARES_SOCKET_BAD,
			                happened & ~(uint32_t)EPOLLIN ? fd : ARES_SOCKET_BAD);
	}
	/* Not without end, where each function that is called starts the next lookup. */
	uint64_t now = now_ms();
	size_t left = resolver->count;
	for (struct lookup *lookup; left && (lookup = next_settled(resolver, now)); left--) {
		resolved_fn fn = lookup->fn;
		lookup->fn = NULL;
		fn(lookup->arg, &lookup->resolution);
	}
	set_timer(resolver);
}

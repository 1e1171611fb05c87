/* The resolver for systems whose own knows best whom to ask (see resolve.h): getaddrinfo(), which waits, in threads of
 * its own. A name is looked for in the hosts file first, and asked with a dot at its end, so that no search domain is
 * tried; every address that comes is judged, as anywhere.
 *
 *     WAITING    for a thread
 *     ASKED      a thread waits for the answer, and nothing takes that back
 *     SETTLED    the resolution stands; the next step hands it over
 *
 * The lookup is the caller's side; a thread has a job of its own, which outlives a lookup that is cancelled or late. A
 * further thread tells when time is over. The last thread frees the resolver. */
#include "net/resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "net/hosts.h"

#define TIMEOUT_MS 10000
#define THREADS_MAX 32          /* that ask at a time */

enum lookup_state { WAITING, ASKED, SETTLED };

struct lookup {
	struct lookup *next;
	struct resolver *resolver;
	resolved_fn fn;                         /* NULL: nobody waits any more */
	void *arg;
	uint64_t deadline_ms;
	struct host host;
	/* Under the lock. */
	enum lookup_state state;
	struct resolution resolution;
};

struct resolver {
	struct hosts hosts;
	unsigned timeout_ms;
	const struct address_range *exemptions;
	size_t exemption_count;
	int fds[2];                             /* readable while there is something to hand over */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Under the lock. */
	struct lookup *lookups;
	size_t count, threads, idle;
	bool has_clock, is_closing;
};

static uint64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);    /* as pthread_cond_timedwait() measures */
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* A byte for each is enough: they are all taken before anything is handed over. */
static void wake(const struct resolver *resolver)
{
	(void)!send(resolver->fds[1], "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void destroy(struct resolver *resolver)
{
	for (struct lookup *lookup; (lookup = resolver->lookups);) {
		resolver->lookups = lookup->next;
		free(lookup);
	}
	hosts_free(&resolver->hosts);
	cleanup_close(&resolver->fds[0]);
	cleanup_close(&resolver->fds[1]);
	pthread_cond_destroy(&resolver->changed);
	pthread_mutex_destroy(&resolver->lock);
	free(resolver);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

/* Under the lock, which the last one takes along. */
static void leave(struct resolver *resolver)
{
	bool is_last = --resolver->threads == 0 && resolver->is_closing;
	pthread_mutex_unlock(&resolver->lock);
	if (is_last)
		destroy(resolver);
}

static struct lookup *next_waiting(const struct resolver *resolver)
{
	struct lookup *lookup = resolver->lookups;
	while (lookup && (lookup->state != WAITING || !lookup->fn))
		lookup = lookup->next;
	return lookup;
}

/* It may be gone by now. */
static struct lookup *find(const struct resolver *resolver, const struct lookup *wanted)
{
	struct lookup *lookup = resolver->lookups;
	while (lookup && lookup != wanted)
		lookup = lookup->next;
	return lookup;
}

static void add(struct resolution *resolution, const struct addrinfo *found)
{
	struct address address = { 0 };
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)found->ai_addr;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)found->ai_addr;
	if (found->ai_family == AF_INET) {
		address.length = 4;
		memcpy(address.bytes, &v4->sin_addr, 4);
	} else if (found->ai_family == AF_INET6) {
		address.length = 16;
		memcpy(address.bytes, &v6->sin6_addr, 16);
	} else {
		return;
	}
	resolution_add(resolution, &address);
}

static enum resolve_status status_of(int error)
{
#ifdef EAI_NODATA
	if (error == EAI_NODATA)
		return RESOLVE_NOT_FOUND;
#endif
	return error == 0 || error == EAI_NONAME ? RESOLVE_NOT_FOUND : RESOLVE_FAILED;
}

static void ask(const char *host, struct resolution *ret_resolution, enum resolve_status *ret_status)
{
	const struct addrinfo wanted = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL;
	char name[HOST_TEXT_SIZE + 1];
	snprintf(name, sizeof(name), "%s.", host);
	int error = getaddrinfo(name, NULL, &wanted, &found);
	for (const struct addrinfo *at = error ? NULL : found; at; at = at->ai_next)
		add(ret_resolution, at);
	if (!error)
		freeaddrinfo(found);
	*ret_status = status_of(error);
}

static void settle(struct lookup *lookup, enum resolve_status status)
{
	lookup->state = SETTLED;
	resolution_judge(&lookup->resolution, status, lookup->resolver->exemptions, lookup->resolver->exemption_count);
}

static void *answer_all(void *argument)
{
	struct resolver *resolver = argument;
	pthread_mutex_lock(&resolver->lock);
	while (!resolver->is_closing) {
		struct lookup *lookup = next_waiting(resolver);
		if (!lookup) {
			resolver->idle++;
			pthread_cond_wait(&resolver->changed, &resolver->lock);
			resolver->idle--;
			continue;
		}
		char host[HOST_TEXT_SIZE];
		struct resolution resolution = { 0 };
		enum resolve_status status;
		snprintf(host, sizeof(host), "%s", lookup->host.name);
		lookup->state = ASKED;
		pthread_mutex_unlock(&resolver->lock);
		ask(host, &resolution, &status);
		pthread_mutex_lock(&resolver->lock);
		/* Another may lie there that was asked for the same name, and then it is answered as well. */
		lookup = resolver->is_closing ? NULL : find(resolver, lookup);
		if (lookup && lookup->state == ASKED && !strcmp(lookup->host.name, host)) {
			lookup->resolution = resolution;
			settle(lookup, status);
			wake(resolver);
		}
	}
	leave(resolver);
	return NULL;
}

static void *watch_time(void *argument)
{
	struct resolver *resolver = argument;
	pthread_mutex_lock(&resolver->lock);
	while (!resolver->is_closing) {
		uint64_t at = UINT64_MAX, now = now_ms();
		for (const struct lookup *lookup = resolver->lookups; lookup; lookup = lookup->next)
			if (lookup->fn && lookup->state != SETTLED && lookup->deadline_ms < at)
				at = lookup->deadline_ms;
		if (at <= now) {
			for (struct lookup *lookup = resolver->lookups; lookup; lookup = lookup->next)
				if (lookup->fn && lookup->state != SETTLED && lookup->deadline_ms <= now)
					settle(lookup, RESOLVE_TIMED_OUT);
			wake(resolver);
		} else if (at == UINT64_MAX) {
			pthread_cond_wait(&resolver->changed, &resolver->lock);
		} else {
			const struct timespec until = { (time_t)(at / 1000), (long)(at % 1000) * 1000000 };
			pthread_cond_timedwait(&resolver->changed, &resolver->lock, &until);
		}
	}
	leave(resolver);
	return NULL;
}

/* Detached, and deaf to the caller's signals. Under the lock. */
static int start_thread(struct resolver *resolver, void *(*fn)(void *argument))
{
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all, before;
	sigfillset(&all);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int result = pthread_create(&thread, &attributes, fn, resolver);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	resolver->threads += result == 0;
	return result;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

int resolver_open(const struct resolver_options *options, struct resolver **ret_resolver, struct cordon_error *err)
{
	struct resolver *resolver = calloc(1, sizeof(*resolver));
	if (!resolver)
		return fail_oom(err);
	resolver->timeout_ms = options->timeout_ms ? options->timeout_ms : TIMEOUT_MS;
	resolver->exemptions = options->exemptions;
	resolver->exemption_count = options->exemption_count;
	pthread_mutex_init(&resolver->lock, NULL);
	pthread_cond_init(&resolver->changed, NULL);
	bool has_pair = socketpair(AF_UNIX, SOCK_STREAM, 0, resolver->fds) == 0;
	for (int i = 0; i < 2; i++)
		if (!has_pair)
			resolver->fds[i] = -1;
		else
			fcntl(resolver->fds[i], F_SETFD, FD_CLOEXEC);
	if (!has_pair)
		fail(err, CORDON_E_INTERNAL, errno, "", "the resolver cannot start");
	if (!has_pair || hosts_read(options->hosts ? options->hosts : HOSTS_PATH, &resolver->hosts, err) < 0) {
		destroy(resolver);
		return -1;
	}
	*ret_resolver = resolver;
	return 0;
}

void resolver_unref(struct resolver *resolver)
{
	if (!resolver)
		return;
	pthread_mutex_lock(&resolver->lock);
	resolver->is_closing = true;
	pthread_cond_broadcast(&resolver->changed);
	/* As if it was a thread itself. */
	resolver->threads++;
	leave(resolver);
}

int resolver_fd(const struct resolver *resolver)
{
	return resolver->fds[0];
}

/* ---- starting and stepping --------------------------------------------------------------------------------------- */

/* Without asking anyone: true where that is an answer. */
static bool settle_alone(struct lookup *lookup)
{
	static const struct address this_machine[] = { { { 127, 0, 0, 1 }, 4 }, { { [15] = 1 }, 16 } };
	struct address addresses[RESOLVE_ADDRESSES_MAX];
	const struct host *host = &lookup->host;
	const struct address *known = addresses;
	size_t count = 0;
	if (host->form == HOST_ADDRESS) {
		known = &host->address;
		count = 1;
	} else if (address_name_refused(host->name)) {
		settle(lookup, RESOLVE_NAME_REFUSED);
		return true;
	} else {
		count = hosts_find(&lookup->resolver->hosts, host->name, addresses, RESOLVE_ADDRESSES_MAX);
		if (!count && hosts_is_localhost(host->name)) {
			known = this_machine;
			count = ARRAY_SIZE(this_machine);
		}
	}
	lookup->resolution.more = count > RESOLVE_ADDRESSES_MAX;
	for (size_t i = 0; i < count && i < RESOLVE_ADDRESSES_MAX; i++)
		resolution_add(&lookup->resolution, &known[i]);
	if (count)
		settle(lookup, RESOLVE_FOUND);
	return count > 0;
}

static size_t count_waiting(const struct resolver *resolver)
{
	size_t count = 0;
	for (const struct lookup *lookup = resolver->lookups; lookup; lookup = lookup->next)
		count += lookup->state == WAITING && lookup->fn;
	return count;
}

/* Somebody to ask for one lookup more, and somebody to tell when time is over: a thread that is idle takes one of those
 * that wait, and may be long about it. Under the lock. */
static int need_threads(struct resolver *resolver)
{
	int error = 0;
	if (!resolver->has_clock) {
		error = start_thread(resolver, watch_time);
		resolver->has_clock = error == 0;
	}
	size_t asking = resolver->threads - resolver->has_clock;
	if (!error && resolver->idle <= count_waiting(resolver) && asking < THREADS_MAX) {
		error = start_thread(resolver, answer_all);
		/* One that is there will come to it. */
		error = asking ? 0 : error;
	}
	return error;
}

int resolver_start(struct resolver *resolver, const struct host *host, resolved_fn fn, void *arg,
                   struct lookup **ret_lookup, struct cordon_error *err)
{
	if (host->form == HOST_WILDCARD)
		return fail(err, CORDON_E_INVALID_REQUEST, 0, host->name, "not one host");
	struct lookup *lookup = calloc(1, sizeof(*lookup));
	if (!lookup)
		return fail_oom(err);
	*lookup = (struct lookup){ .resolver = resolver, .fn = fn, .arg = arg, .host = *host,
	                           .deadline_ms = now_ms() + resolver->timeout_ms };
	bool is_settled = settle_alone(lookup);
	pthread_mutex_lock(&resolver->lock);
	int error = resolver->count >= RESOLVE_LOOKUPS_MAX ? EAGAIN : is_settled ? 0 : need_threads(resolver);
	if (!error) {
		struct lookup **last = &resolver->lookups;
		while (*last)
			last = &(*last)->next;
		*last = lookup;
		resolver->count++;
		pthread_cond_broadcast(&resolver->changed);
		if (is_settled)
			wake(resolver);
	}
	pthread_mutex_unlock(&resolver->lock);
	if (error) {
		free(lookup);
		return fail(err, CORDON_E_LIMIT_EXCEEDED, error, host->name,
		            "too many names are being resolved already");
	}
	*ret_lookup = lookup;
	return 0;
}

void lookup_cancel(struct lookup *lookup)
{
	struct resolver *resolver = lookup->resolver;
	pthread_mutex_lock(&resolver->lock);
	lookup->fn = NULL;      /* the next step lets it go */
	wake(resolver);
	pthread_mutex_unlock(&resolver->lock);
}

/* Takes the first that is settled out of the list, and what nobody waits for; NULL: there is none. */
static struct lookup *take_settled(struct resolver *resolver)
{
	struct lookup *taken = NULL;
	pthread_mutex_lock(&resolver->lock);
	for (struct lookup **at = &resolver->lookups, *lookup; !taken && (lookup = *at);) {
		if (lookup->fn && lookup->state != SETTLED) {
			at = &lookup->next;
			continue;
		}
		*at = lookup->next;
		resolver->count--;
		if (lookup->fn)
			taken = lookup;
		else
			free(lookup);
	}
	pthread_mutex_unlock(&resolver->lock);
	return taken;
}

void resolver_step(struct resolver *resolver)
{
	char woken[64];
	while (recv(resolver->fds[0], woken, sizeof(woken), MSG_DONTWAIT) > 0)
		;
	/* Not without end, where each function that is called starts the next lookup. */
	size_t left = RESOLVE_LOOKUPS_MAX;
	for (struct lookup *lookup; left && (lookup = take_settled(resolver)); left--) {
		lookup->fn(lookup->arg, &lookup->resolution);
		free(lookup);
	}
	if (!left)
		wake(resolver);
}

/* The loop: see loop.h. */
#include "proxy/loop.h"

#include <errno.h>
#include <sys/epoll.h>
#include <time.h>

#include "net/resolve.h"
#include "proxy/accept.h"
#include "proxy/connection.h"
#include "proxy/supervisor.h"

#define EVENTS_MAX 128
#define MOMENT_US 2000          /* after the command has ended */
#define LAST_ROUNDS 8 /* after that, if it was too short: accepted, understood, resolved, connected, carried */

static void read_clock(struct proxy *proxy)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	proxy->now_us = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void resolver_watch_fn(struct watch *watch, uint32_t events)
{
	(void)events;
	struct proxy *proxy = (struct proxy *)((char *)watch - offsetof(struct proxy, resolver_watch));
	resolver_step(proxy->resolver);
}

static int add(const struct proxy *proxy, int fd, struct watch *watch)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = watch };
	return epoll_ctl(proxy->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

int loop_open(struct proxy *proxy)
{
	proxy->supervisor_watch.fn = supervisor_watch_fn;
	proxy->resolver_watch.fn = resolver_watch_fn;
	proxy->next_deadline_us = NEVER;
	read_clock(proxy);
	proxy->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (proxy->epoll_fd < 0 || add(proxy, PROXY_FD, &proxy->supervisor_watch) < 0 ||
	    (proxy->resolver && add(proxy, resolver_fd(proxy->resolver), &proxy->resolver_watch) < 0))
		return -1;
	return accept_open(proxy);
}

void loop_expect(struct proxy *proxy, uint64_t deadline_us)
{
	if (deadline_us < proxy->next_deadline_us)
		proxy->next_deadline_us = deadline_us;
}

void loop_again(struct connection *connection)
{
	struct proxy *proxy = connection->proxy;
	if (connection->is_busy)
		return;
	connection->is_busy = true;
	connection->next_busy = proxy->busy;
	proxy->busy = connection;
}

void loop_wake_all(struct proxy *proxy)
{
	for (struct connection *connection = proxy->connections; connection; connection = connection->next)
		loop_again(connection);
}

/* Those that are busy again come in the next round. */
static void step_busy(struct proxy *proxy)
{
	struct connection *next = proxy->busy;
	proxy->busy = NULL;
	for (struct connection *connection; (connection = next);) {
		next = connection->next_busy;
		connection->is_busy = false;
		connection_step(connection);
	}
}

static void step_deadlines(struct proxy *proxy)
{
	if (proxy->now_us < proxy->next_deadline_us)
		return;
	proxy->next_deadline_us = NEVER;
	supervisor_tell_counted(proxy, false);
	if (proxy->tally_count)
		loop_expect(proxy, proxy->tally_deadline_us);
	for (struct connection *connection = proxy->connections, *next; connection; connection = next) {
		next = connection->next;
		if (connection->open_us <= proxy->now_us)
			connection_tell_open(connection);
		else
			loop_expect(proxy, connection->open_us);
		if (connection->deadline_us <= proxy->now_us)
			connection_expire(connection);
		else
			loop_expect(proxy, connection->deadline_us);
	}
}

/* Is there one that was begun just now? */
static bool has_young(const struct proxy *proxy)
{
	const struct connection *connection = proxy->connections;
	while (connection && proxy->now_us - connection->started_us >= MOMENT_US)
		connection = connection->next;
	return connection;
}

static int wait_ms(const struct proxy *proxy)
{
	if (proxy->busy)
		return 0;
	if (proxy->is_ending)
		return proxy->now_us < proxy->end_us && has_young(proxy) ? 1 : 0;
	if (proxy->next_deadline_us == NEVER)
		return -1;
	uint64_t left = proxy->next_deadline_us > proxy->now_us ? proxy->next_deadline_us - proxy->now_us : 0;
	return left > 60000000 ? 60000 : (int)((left + 999) / 1000);
}

void loop_end(struct proxy *proxy)
{
	proxy->is_ending = true;
	proxy->end_us = proxy->now_us + MOMENT_US;
}

/* Once the command has ended. *last counts the rounds. */
static bool is_over(const struct proxy *proxy, bool is_idle, unsigned *last)
{
	if (proxy->now_us < proxy->end_us)
		return is_idle && !has_young(proxy);
	return is_idle || ++*last == LAST_ROUNDS;
}

void loop_run(struct proxy *proxy)
{
	unsigned last = 0;
	for (;;) {
		struct epoll_event events[EVENTS_MAX];
		int count = epoll_wait(proxy->epoll_fd, events, EVENTS_MAX, wait_ms(proxy));
		if (count < 0 && errno != EINTR)
			proxy_give_up();
		proxy->round++;
		read_clock(proxy);
		for (int i = 0; i < count; i++) {
			struct watch *watch = events[i].data.ptr;
			watch->fn(watch, events[i].events);
		}
		step_busy(proxy);
		step_deadlines(proxy);
		connection_free_dead(proxy);
		accept_update(proxy);
		if (proxy->leaves == LEAVES_LAST && !proxy->connections)
			supervisor_end(proxy);
		if (proxy->is_ending && is_over(proxy, count <= 0 && !proxy->busy, &last))
			supervisor_end(proxy);
	}
}

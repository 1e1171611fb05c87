/* The resolver that asks the system's own, with a getaddrinfo() of this test's: it knows a few names, and one that
 * takes as long as the test likes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "net/resolve.h"

#define MANY 80

static const struct {
	const char *name, *addresses;
	int error;
} rows[] = {
	{ "good.test.", "2606:2800:220::1 93.184.216.34 93.184.216.34", 0 },
	{ "private.test.", "10.0.0.1", 0 },
	{ "mixed.test.", "93.184.216.34 127.0.0.1", 0 },
	{ "mapped.test.", "::ffff:169.254.169.254", 0 },
	{ "absent.test.", "", EAI_NONAME },
	{ "nodata.test.", "", EAI_NODATA },
	{ "broken.test.", "", EAI_AGAIN },
	{ "listed.test.", "93.184.216.34", 0 },
};

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;        /* held: "slow.test" is not answered */
static atomic_int asked, running, most;

static struct addrinfo *make(const char *text)
{
	struct {
		struct addrinfo info;
		struct sockaddr_in6 v6;
		struct sockaddr_in v4;
	} *made = calloc(1, sizeof(*made));
	if (inet_pton(AF_INET, text, &made->v4.sin_addr) == 1) {
		made->info.ai_family = made->v4.sin_family = AF_INET;
		made->info.ai_addr = (struct sockaddr *)&made->v4;
	} else {
		inet_pton(AF_INET6, text, &made->v6.sin6_addr);
		made->info.ai_family = made->v6.sin6_family = AF_INET6;
		made->info.ai_addr = (struct sockaddr *)&made->v6;
	}
	return &made->info;
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **ret_found)
{
	char list[256], *rest = list;
	int now = ++running;
	if (service || hints->ai_socktype != SOCK_STREAM || hints->ai_flags)
		abort();
	if (now > most)
		most = now;
	asked++;
	if (!strcmp(name, "slow.test.")) {
		pthread_mutex_lock(&gate);
		pthread_mutex_unlock(&gate);
		name = "good.test.";
	}
	if (!strncmp(name, "many", 4)) {
		usleep(1000);
		name = "good.test.";
	}
	running--;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (strcmp(rows[i].name, name))
			continue;
		struct addrinfo **last = ret_found;
		*ret_found = NULL;
		snprintf(list, sizeof(list), "%s", rows[i].addresses);
		for (char *word; (word = strsep(&rest, " "));)
			if (*word) {
				*last = make(word);
				last = &(*last)->ai_next;
			}
		return rows[i].error;
	}
	return EAI_NONAME;
}

void freeaddrinfo(struct addrinfo *found)
{
	for (struct addrinfo *next; found; found = next) {
		next = found->ai_next;
		free(found);
	}
}

static char hosts_path[] = "/tmp/cordon-test-resolve-system-XXXXXX";

static struct resolver_options options(unsigned timeout_ms)
{
	return (struct resolver_options){ .hosts = hosts_path, .timeout_ms = timeout_ms };
}

static struct host host_of(const char *text)
{
	struct host host;
	assert_null(host_parse(text, strlen(text), &host));
	return host;
}

static struct resolution resolve(const char *name, unsigned timeout_ms)
{
	const struct resolver_options how = options(timeout_ms);
	const struct host host = host_of(name);
	struct resolution resolution = { .status = 99 };
	struct cordon_error err;
	assert_int_equal(resolve_now(&how, &host, &resolution, &err), 0);
	return resolution;
}

static void what_names_are(void **state)
{
	static const struct {
		const char *name;
		enum resolve_status status;
		bool allowed;
		size_t count;
	} wanted[] = {
		{ "good.test", RESOLVE_FOUND, true, 2 },        { "private.test", RESOLVE_FOUND, false, 1 },
		{ "mixed.test", RESOLVE_FOUND, false, 2 },      { "mapped.test", RESOLVE_FOUND, false, 1 },
		{ "absent.test", RESOLVE_NOT_FOUND, false, 0 }, { "nodata.test", RESOLVE_NOT_FOUND, false, 0 },
		{ "broken.test", RESOLVE_FAILED, false, 0 },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		struct resolution found = resolve(wanted[i].name, 0);
		if (found.status != wanted[i].status || found.allowed != wanted[i].allowed ||
		    found.count != wanted[i].count)
			fail_msg("%s: %d, %d, %zu", wanted[i].name, found.status, found.allowed, found.count);
	}
	/* IPv4 first. */
	assert_int_equal(resolve("good.test", 0).addresses[0].address.length, 4);
}

static void without_asking(void **state)
{
	(void)state;
	asked = 0;
	assert_int_equal(resolve("127.0.0.1", 0).count, 1);
	assert_int_equal(resolve("localhost", 0).count, 2);
	assert_false(resolve("x.localhost", 0).allowed);
	assert_int_equal(resolve("metadata.google.internal", 0).status, RESOLVE_NAME_REFUSED);
	assert_int_equal(resolve("listed.test", 0).addresses[0].address.bytes[0], 10);
	assert_int_equal(asked, 0);
}

static void await_threads(void)
{
	for (int i = 0; running && i < 30000; i++)
		usleep(1000);
	assert_int_equal(running, 0);
}

static void one_that_takes_too_long(void **state)
{
	(void)state;
	pthread_mutex_lock(&gate);
	/* Its thread outlives the resolver. */
	assert_int_equal(resolve("slow.test", 50).status, RESOLVE_TIMED_OUT);
	pthread_mutex_unlock(&gate);
	await_threads();
}

static int done;

static void on_done(void *arg, const struct resolution *resolution)
{
	(void)arg;
	assert_int_equal(resolution->count, 2);
	done++;
}

static void not_called(void *arg, const struct resolution *resolution)
{
	(void)arg, (void)resolution;
	fail_msg("a lookup that was cancelled");
}

static void step_until(struct resolver *resolver, int count)
{
	while (done < count) {
		struct pollfd ready = { .fd = resolver_fd(resolver), .events = POLLIN };
		assert_int_equal(poll(&ready, 1, 30000), 1);
		resolver_step(resolver);
	}
}

static void many_at_a_time(void **state)
{
	const struct resolver_options how = options(30000);
	struct resolver *resolver;
	struct lookup *lookup, *slow;
	struct cordon_error err;
	struct host host = host_of("slow.test");
	(void)state;
	done = 0;
	most = 0;
	pthread_mutex_lock(&gate);
	assert_int_equal(resolver_open(&how, &resolver, &err), 0);
	assert_int_equal(resolver_start(resolver, &host, not_called, NULL, &slow, &err), 0);
	for (int i = 0; i < MANY; i++) {
		char name[32];
		snprintf(name, sizeof(name), "many%d.test", i);
		host = host_of(name);
		assert_int_equal(resolver_start(resolver, &host, on_done, NULL, &lookup, &err), 0);
	}
	step_until(resolver, MANY);
	assert_true(most > 1 && most <= 32);
	/* Nothing is handed over, and nothing is left, when it is answered at last. */
	lookup_cancel(slow);
	resolver_step(resolver);
	pthread_mutex_unlock(&gate);
	host = host_of("good.test");
	assert_int_equal(resolver_start(resolver, &host, on_done, NULL, &lookup, &err), 0);
	step_until(resolver, MANY + 1);
	host = host_of("many.test");
	assert_int_equal(resolver_start(resolver, &host, not_called, NULL, &lookup, &err), 0);
	resolver_unref(resolver);
}

/* A thread that is idle takes one of two that come at once, and not the other behind it. */
static void beside_one_that_takes_too_long(void **state)
{
	const struct resolver_options how = options(20000);
	struct resolver *resolver;
	struct lookup *lookup, *slow;
	struct cordon_error err;
	struct host host = host_of("good.test"), slow_host = host_of("slow.test");
	(void)state;
	done = 0;
	assert_int_equal(resolver_open(&how, &resolver, &err), 0);
	assert_int_equal(resolver_start(resolver, &host, on_done, NULL, &lookup, &err), 0);
	step_until(resolver, 1);
	await_threads();
	usleep(20000);
	pthread_mutex_lock(&gate);
	assert_int_equal(resolver_start(resolver, &slow_host, not_called, NULL, &slow, &err), 0);
	assert_int_equal(resolver_start(resolver, &host, on_done, NULL, &lookup, &err), 0);
	step_until(resolver, 2);
	lookup_cancel(slow);
	resolver_step(resolver);
	pthread_mutex_unlock(&gate);
	resolver_unref(resolver);
}

static int write_hosts(void **state)
{
	static const char text[] = "10.1.2.3 listed.test\n";
	(void)state;
	int fd = mkstemp(hosts_path);
	assert_true(fd >= 0 && write(fd, text, sizeof(text) - 1) == sizeof(text) - 1);
	return close(fd);
}

static int remove_hosts(void **state)
{
	(void)state;
	/* Threads that ask are the resolver's to end. */
	await_threads();
	return unlink(hosts_path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_names_are),
		cmocka_unit_test(without_asking),
		cmocka_unit_test(one_that_takes_too_long),
		cmocka_unit_test(many_at_a_time),
		cmocka_unit_test(beside_one_that_takes_too_long),
	};
	return cmocka_run_group_tests_name("resolve-system", tests, write_hosts, remove_hosts);
}

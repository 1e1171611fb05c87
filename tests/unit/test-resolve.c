/* The resolver against a name server on loopback that answers well and badly; nothing else is asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/compat.h"
#include "net/resolve.h"
#include "skip.h"
#include "support/name-server.h"

static const struct name_row rows[] = {
	{ "good.test", "93.184.216.34 2606:2800:220::1", ANSWERS },
	{ "v4.test", "93.184.216.34", ANSWERS },
	{ "v6.test", "2606:2800:220::1", ANSWERS },
	{ "twice.test", "93.184.216.34 93.184.216.34", ANSWERS },
	{ "private.test", "10.0.0.1", ANSWERS },
	{ "loopback.test", "127.0.0.1 ::1", ANSWERS },
	{ "meta.test", "169.254.169.254", ANSWERS },
	{ "mapped.test", "::ffff:10.0.0.1", ANSWERS },
	{ "mixed.test", "93.184.216.34 10.0.0.1", ANSWERS },
	{ "mixed6.test", "93.184.216.34 fd00::1", ANSWERS },
	{ "alias.test", ">b.test >c.test 93.184.216.34 2606:2800:220::1", ANSWERS },
	{ "private-alias.test", ">b.test 192.168.0.1", ANSWERS },
	{ "loop.test", ">loop.test", ANSWERS },
	{ "stranger.test", "other.test=93.184.216.34", ANSWERS },
	{ "beside.test", "93.184.216.34 other.test=10.0.0.1", ANSWERS },
	{ "empty.test", "", ANSWERS },
	{ "broken.test", "93.184.216.34", SERVFAIL },
	{ "refused.test", "93.184.216.34", REFUSES },
	{ "silent.test", "93.184.216.34", SILENT },
	{ "half.test", "93.184.216.34", SILENT_ON_AAAA },
	{ "half-broken.test", "93.184.216.34", SERVFAIL_ON_AAAA },
	{ "large.test", "#60", TRUNCATES },
	{ "many.test", "#65", TRUNCATES },
	{ "huge.test", "#4000", TRUNCATES },
	{ "garbled.test", "93.184.216.34 2606:2800:220::1", GARBLES },
	{ "circles.test", "93.184.216.34 2606:2800:220::1", CIRCLES },
	{ "lied.test", "93.184.216.34", LIES_FIRST },
	{ "rebind.test", "93.184.216.34|10.0.0.1", ANSWERS },
	{ "listed.test", "93.184.216.34", ANSWERS },
	{ "metadata.google.internal", "93.184.216.34", ANSWERS },
	{ "localhost", "93.184.216.34", ANSWERS },
};

static struct name_server *server;
static char hosts_path[] = "/tmp/cordon-test-resolve-XXXXXX";
static struct address_range exemptions[2];

static struct resolver_options options(unsigned timeout_ms)
{
	return (struct resolver_options){ .servers = name_server_text(server),
		                          .hosts = hosts_path,
		                          .timeout_ms = timeout_ms };
}

static struct host host_of(const char *text)
{
	struct host host;
	const char *why = host_parse(text, strlen(text), &host);
	if (why)
		fail_msg("%s: %s", text, why);
	return host;
}

static struct resolution resolve(const char *name, const struct resolver_options *how)
{
	struct resolution resolution = { .status = 99 };
	struct cordon_error err = { 0 };
	struct host host = host_of(name);
	if (resolve_now(how, &host, &resolution, &err) < 0)
		fail_msg("%s: %s", name, err.reason);
	return resolution;
}

/* "address address! …": one that is refused has an exclamation mark. */
static void describe(const struct resolution *resolution, char text[512])
{
	text[0] = '\0';
	for (size_t i = 0; i < resolution->count && i < 6; i++) {
		char address[ADDRESS_TEXT_SIZE];
		address_text(&resolution->addresses[i].address, address);
		sprintf(text + strlen(text), "%s%s%s", i ? " " : "", address,
		        resolution->addresses[i].verdict.allowed ? "" : "!");
	}
}

static const struct {
	const char *name;
	enum resolve_status status;
	bool allowed;
	const char *addresses;
	const char *why;
} cases[] = {
	{ "good.test", RESOLVE_FOUND, true, "93.184.216.34 2606:2800:220::1", "" },
	{ "GOOD.test.", RESOLVE_FOUND, true, "93.184.216.34 2606:2800:220::1", "" },
	{ "v4.test", RESOLVE_FOUND, true, "93.184.216.34", "" },
	{ "v6.test", RESOLVE_FOUND, true, "2606:2800:220::1", "" },
	{ "twice.test", RESOLVE_FOUND, true, "93.184.216.34", "" },
	{ "private.test", RESOLVE_FOUND, false, "10.0.0.1!", "10.0.0.1 is private" },
	{ "loopback.test", RESOLVE_FOUND, false, "127.0.0.1! ::1!", "127.0.0.1 is loopback" },
	{ "meta.test", RESOLVE_FOUND, false, "169.254.169.254!", "metadata" },
	{ "mapped.test", RESOLVE_FOUND, false, "::ffff:10.0.0.1!", "private" },
	{ "mixed.test", RESOLVE_FOUND, false, "93.184.216.34 10.0.0.1!", "10.0.0.1 is private" },
	{ "mixed6.test", RESOLVE_FOUND, false, "93.184.216.34 fd00::1!", "fd00::1 is private" },
	{ "alias.test", RESOLVE_FOUND, true, "93.184.216.34 2606:2800:220::1", "" },
	{ "private-alias.test", RESOLVE_FOUND, false, "192.168.0.1!", "192.168.0.1" },
	{ "loop.test", RESOLVE_FAILED, false, "", "proper answer" },
	{ "stranger.test", RESOLVE_NOT_FOUND, false, "", "no such name" },
	{ "beside.test", RESOLVE_FOUND, true, "93.184.216.34", "" },
	{ "empty.test", RESOLVE_NOT_FOUND, false, "", "no such name" },
	{ "nothing.test", RESOLVE_NOT_FOUND, false, "", "no such name" },
	{ "broken.test", RESOLVE_FAILED, false, "", "proper answer" },
	{ "refused.test", RESOLVE_FAILED, false, "", "proper answer" },
	{ "half-broken.test", RESOLVE_FOUND, true, "93.184.216.34", "" },
	{ "many.test", RESOLVE_TOO_MANY, false, NULL, "more addresses" },
	{ "huge.test", RESOLVE_TOO_MANY, false, NULL, "more addresses" },
	{ "garbled.test", RESOLVE_FAILED, false, "", "proper answer" },
	{ "circles.test", RESOLVE_FAILED, false, "", "proper answer" },
	{ "lied.test", RESOLVE_FOUND, true, "93.184.216.34", "" },
	/* addresses themselves */
	{ "8.8.8.8", RESOLVE_FOUND, true, "8.8.8.8", "" },
	{ "127.0.0.1", RESOLVE_FOUND, false, "127.0.0.1!", "loopback" },
	{ "[::ffff:127.0.0.1]", RESOLVE_FOUND, false, "::ffff:127.0.0.1!", "loopback" },
	/* of the hosts file, and of no one */
	{ "listed.test", RESOLVE_FOUND, false, "192.168.7.7! fd07::7!", "192.168.7.7" },
	{ "public-listed.test", RESOLVE_FOUND, true, "8.8.4.4", "" },
	{ "blocked.test", RESOLVE_FOUND, false, "0.0.0.0!", "unspecified" },
	{ "localhost", RESOLVE_FOUND, false, "127.0.0.1! ::1!", "loopback" },
	{ "x.localhost", RESOLVE_FOUND, false, "127.0.0.1! ::1!", "loopback" },
	{ "metadata.google.internal", RESOLVE_NAME_REFUSED, false, "", "metadata" },
};

static void every_kind_of_answer(void **state)
{
	(void)state;
	struct resolver_options how = options(20000);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct resolution found = resolve(cases[i].name, &how);
		struct host host = host_of(cases[i].name);
		char text[512], why[RESOLVE_WHY_SIZE];
		describe(&found, text);
		resolution_why(&host, &found, why);
		if (found.status != cases[i].status || found.allowed != cases[i].allowed ||
		    (cases[i].addresses && strcmp(text, cases[i].addresses)) || !strstr(why, cases[i].why) ||
		    !*why != found.allowed)
			fail_msg("%s: status %d, allowed %d, %s: %s", cases[i].name, found.status, found.allowed, text,
			         why);
	}
	/* Nobody was asked for these. */
	assert_int_equal(name_server_asked(server, "localhost"), 0);
	assert_int_equal(name_server_asked(server, "listed.test"), 0);
	assert_int_equal(name_server_asked(server, "metadata.google.internal"), 0);
	/* A name is asked for once, for both families. */
	assert_int_equal(name_server_asked(server, "v4.test"), 2);
}

static void a_long_answer_comes_over_tcp(void **state)
{
	(void)state;
	struct resolver_options how = options(20000);
	struct resolution found = resolve("large.test", &how);
	assert_int_equal(found.status, RESOLVE_FOUND);
	assert_int_equal(found.count, 60);
	assert_true(found.allowed && !found.more);
}

static uint64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void silence_ends(void **state)
{
	(void)state;
	struct resolver_options how = options(300);
	uint64_t before = now_ms();
	struct resolution found = resolve("silent.test", &how);
	assert_int_equal(found.status, RESOLVE_TIMED_OUT);
	assert_false(found.allowed);
	assert_true(now_ms() - before >= 300 && now_ms() - before < 20000);
	/* What one family answered stands. */
	for (unsigned ms = 300; ms < 20000; ms *= 8) { /* the server may be slow to answer on a busy machine */
		how = options(ms);
		found = resolve("half.test", &how);
		if (found.status == RESOLVE_FOUND)
			break;
	}
	assert_int_equal(found.status, RESOLVE_FOUND);
	assert_true(found.allowed && found.count == 1);
	how = options(300);
	/* No server there at all. */
	how.servers = "127.0.0.1:9";
	found = resolve("good.test", &how);
	assert_true(found.status == RESOLVE_FAILED || found.status == RESOLVE_TIMED_OUT);
	assert_false(found.allowed);
}

static void exemptions_hold(void **state)
{
	(void)state;
	struct cordon_error err = { 0 };
	struct resolver_options how = options(20000);
	assert_int_equal(address_exemption_parse("10.0.0.0/24", &exemptions[0], &err), 0);
	how.exemptions = exemptions;
	how.exemption_count = 1;
	assert_true(resolve("private.test", &how).allowed);
	assert_true(resolve("mixed.test", &how).allowed);
	assert_false(resolve("mapped.test", &how).allowed);
	assert_false(resolve("listed.test", &how).allowed);
	assert_false(resolve("mixed6.test", &how).allowed);
}

/* Whatever was answered before, the second answer is judged by itself. */
static void rebinding(void **state)
{
	(void)state;
	struct resolver_options how = options(20000);
	assert_true(resolve("rebind.test", &how).allowed);
	assert_false(resolve("rebind.test", &how).allowed);
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

struct seen {
	struct resolver *resolver;
	struct lookup *other;           /* to be cancelled */
	unsigned calls, chain;
	struct resolution last;
};

static void on_seen(void *arg, const struct resolution *resolution)
{
	struct seen *seen = arg;
	struct cordon_error err;
	struct lookup *lookup;
	struct host host = host_of(seen->chain % 2 ? "8.8.8.8" : "v4.test");
	seen->calls++;
	seen->last = *resolution;
	if (seen->other)
		lookup_cancel(seen->other);
	seen->other = NULL;
	if (seen->chain && seen->chain--)
		assert_int_equal(resolver_start(seen->resolver, &host, on_seen, seen, &lookup, &err), 0);
}

static void never(void *arg, const struct resolution *resolution)
{
	(void)arg, (void)resolution;
	fail_msg("a cancelled lookup was answered");
}

/* Steps until `calls`, or for at most so long. */
static void run_until(struct seen *seen, unsigned calls, int most_ms)
{
	uint64_t end = now_ms() + (uint64_t)most_ms;
	while (seen->calls < calls && now_ms() < end) {
		struct pollfd fd = { .fd = resolver_fd(seen->resolver), .events = POLLIN };
		poll(&fd, 1, 50);
		if (fd.revents)
			resolver_step(seen->resolver);
	}
}

static void many_at_once(void **state)
{
	(void)state;
	enum { COUNT = 90 };
	struct resolver_options how = options(20000);
	struct seen seen[COUNT] = { 0 };
	struct cordon_error err = { 0 };
	struct resolver *resolver;
	struct lookup *lookup;
	assert_int_equal(resolver_open(&how, &resolver, &err), 0);
	static const char *const names[] = { "good.test", "private.test", "nothing.test",
		                             "8.8.8.8",   "large.test",   "alias.test" };
	for (size_t i = 0; i < COUNT; i++) {
		struct host host = host_of(names[i % 6]);
		seen[i].resolver = resolver;
		assert_int_equal(resolver_start(resolver, &host, on_seen, &seen[i], &lookup, &err), 0);
		assert_int_equal(seen[i].calls, 0);     /* never from start */
	}
	for (size_t i = 0; i < COUNT; i++) {
		run_until(&seen[i], 1, 30000);
		assert_int_equal(seen[i].calls, 1);
		assert_int_equal(seen[i].last.allowed, strchr("gl8a", names[i % 6][0]) != NULL);
	}
	resolver_unref(resolver);
}

static void cancelled_and_chained(void **state)
{
	(void)state;
	struct resolver_options how = options(20000);
	struct seen seen = { .chain = 5 };
	struct cordon_error err = { 0 };
	struct lookup *lookup, *silent;
	struct host slow = host_of("silent.test"), quick = host_of("8.8.8.8");
	assert_int_equal(resolver_open(&how, &seen.resolver, &err), 0);
	assert_int_equal(resolver_start(seen.resolver, &slow, never, NULL, &silent, &err), 0);
	assert_int_equal(resolver_start(seen.resolver, &quick, never, NULL, &lookup, &err), 0);
	lookup_cancel(lookup);
	seen.other = silent;
	assert_int_equal(resolver_start(seen.resolver, &quick, on_seen, &seen, &lookup, &err), 0);
	run_until(&seen, 6, 30000);
	assert_int_equal(seen.calls, 6);
	/* One that nobody cancelled goes with its resolver. */
	assert_int_equal(resolver_start(seen.resolver, &slow, never, NULL, &lookup, &err), 0);
	resolver_unref(seen.resolver);
}

static void bounded(void **state)
{
	(void)state;
	struct resolver_options how = options(20000);
	struct cordon_error err = { 0 };
	struct resolver *resolver;
	struct lookup *lookup;
	struct host slow = host_of("silent.test"), wild = { .form = HOST_WILDCARD, .name = "*.test" };
	assert_int_equal(resolver_open(&how, &resolver, &err), 0);
	for (int i = 0; i < RESOLVE_LOOKUPS_MAX; i++)
		assert_int_equal(resolver_start(resolver, &slow, never, NULL, &lookup, &err), 0);
	assert_int_equal(resolver_start(resolver, &slow, never, NULL, &lookup, &err), -1);
	assert_int_equal(err.class, CORDON_E_LIMIT_EXCEEDED);
	resolver_unref(resolver);
	assert_int_equal(resolver_open(&how, &resolver, &err), 0);
	assert_int_equal(resolver_start(resolver, &wild, never, NULL, &lookup, &err), -1);
	assert_int_equal(err.class, CORDON_E_INVALID_REQUEST);
	resolver_unref(resolver);
	resolver_unref(NULL);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static void the_files_of_the_system(void **state)
{
	(void)state;
	char conf[] = "/tmp/cordon-test-resolv-XXXXXX";
	int fd = mkostemp(conf, O_CLOEXEC);
	/* A server that is not there, and a search domain that must not be used. */
	static const char text[] = "nameserver 127.0.0.1\nsearch test\noptions ndots:5 timeout:1 attempts:1\n";
	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	close(fd);
	struct resolver_options how = options(10000);
	how.resolv_conf = conf;
	struct resolution found = resolve("good", &how);
	assert_int_equal(found.status, RESOLVE_NOT_FOUND);      /* not good.test */
	unlink(conf);

	struct cordon_error err = { 0 };
	struct resolver *resolver;
	how = options(2000);
	how.servers = "not an address";
	assert_int_equal(resolver_open(&how, &resolver, &err), -1);
	assert_int_equal(err.class, CORDON_E_INVALID_REQUEST);
	how = options(2000);
	how.hosts = "/dev/null";
	assert_int_equal(resolver_open(&how, &resolver, &err), -1);
	assert_int_equal(err.class, CORDON_E_NETWORK_UNREACHABLE);
	how.hosts = "/nonexistent/hosts";
	assert_true(resolve("v4.test", &how).allowed);
}

/* A process that may open nothing any more still resolves: all was read when the resolver was opened. */
static void without_any_file(void **state)
{
	(void)state;
	struct landlock_ruleset rules = { .handled_access_fs = (1ull << 13) - 1 };
	struct resolver_options how = options(20000);
	struct cordon_error err = { 0 };
	struct seen seen = { 0 };
	struct lookup *lookup;
	struct host host = host_of("good.test"), listed = host_of("public-listed.test");
	int ruleset = (int)syscall(SYS_landlock_create_ruleset, &rules, sizeof(rules.handled_access_fs), 0);
	if (ruleset < 0)
		skip_cannot("landlock", "the kernel has none");
	pid_t child = fork();
	if (child == 0) {
		if (resolver_open(&how, &seen.resolver, &err) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		    syscall(SYS_landlock_restrict_self, ruleset, 0) < 0 ||
		    open("/etc/hosts", O_RDONLY | O_CLOEXEC) >= 0 ||
		    resolver_start(seen.resolver, &host, on_seen, &seen, &lookup, &err) < 0 ||
		    resolver_start(seen.resolver, &listed, on_seen, &seen, &lookup, &err) < 0)
			_exit(1);
		run_until(&seen, 2, 20000);
		_exit(seen.calls == 2 && seen.last.allowed ? 0 : 2);
	}
	int status = -1;
	assert_int_equal(waitpid(child, &status, 0), child);
	close(ruleset);
	assert_int_equal(status, 0);
}

static int setup(void **state)
{
	(void)state;
	static const char hosts[] = "# addresses\n127.0.0.1\tlocalhost\n::1 localhost ip6-localhost\n\n"
				    "192.168.7.7   other Listed.TEST. # listed\nfd07::7 listed.test\r\n# 1.1.1.1 "
	                            "listed.test\nlisted.test 1.1.1.1\n"
				    "127.1 listed.test\n8.8.4.4 public-listed.test\n0.0.0.0 blocked.test";
	int fd = mkostemp(hosts_path, O_CLOEXEC);
	if (fd < 0 || write(fd, hosts, sizeof(hosts) - 1) != sizeof(hosts) - 1)
		return -1;
	close(fd);
	server = name_server_start(rows, sizeof(rows) / sizeof(rows[0]));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(hosts_path);
	name_server_stop(server);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_of_answer),
		cmocka_unit_test(a_long_answer_comes_over_tcp),
		cmocka_unit_test(silence_ends),
		cmocka_unit_test(exemptions_hold),
		cmocka_unit_test(rebinding),
		cmocka_unit_test(many_at_once),
		cmocka_unit_test(cancelled_and_chained),
		cmocka_unit_test(bounded),
		cmocka_unit_test(the_files_of_the_system),
		cmocka_unit_test(without_any_file),
	};
	return cmocka_run_group_tests_name("resolve", tests, setup, teardown);
}

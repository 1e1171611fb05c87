/* From a list of hosts to addresses and listeners: which there are, how many there can be, and that no two of them want
 * the same place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "profile/egress.h"

static struct arena arena;
static struct strings hosts;

static int set_up(void **state)
{
	(void)state;
	hosts = (struct strings){ 0 };
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	arena_free(&arena);
	return 0;
}

static __attribute__((format(printf, 1, 2))) void list(const char *format, ...)
{
	char text[512];
	va_list more;
	va_start(more, format);
	vsnprintf(text, sizeof(text), format, more);
	va_end(more);
	assert_int_equal(strings_add(&arena, &hosts, arena_strdup(&arena, text)), 0);
}

static bool is_every(const struct address *address)
{
	static const struct address every[] = { { .length = 4 }, { .length = 16 } };
	return !memcmp(address, &every[address->length == 16], sizeof(*address));
}

/* Would the kernel refuse the second of them? */
static bool collide(const struct egress_listener *one, const struct egress_listener *other)
{
	bool udp = one->use == EGRESS_DNS_UDP, other_udp = other->use == EGRESS_DNS_UDP;
	return udp == other_udp && one->port == other->port && one->address.length == other->address.length &&
	       (is_every(&one->address) || is_every(&other->address) ||
	        !memcmp(&one->address, &other->address, sizeof(one->address)));
}

static struct egress_plan make(void)
{
	struct egress_plan plan;
	struct cordon_error err;
	assert_int_equal(egress_make(&arena, &hosts, &plan, &err), 0);
	assert_true(plan.count >= 3 && plan.count <= EGRESS_LISTENERS_MAX);
	for (size_t i = 0; i < plan.count; i++)
		for (size_t j = 0; j < i; j++)
			assert_false(collide(&plan.listeners[i], &plan.listeners[j]));
	return plan;
}

static const char *text_of(const struct address *address)
{
	char text[ADDRESS_TEXT_SIZE];
	if (!address->length)
		return "";
	address_text(address, text);
	return arena_strdup(&arena, text);
}

static size_t listeners_on(const struct egress_plan *plan, const char *address, uint16_t port)
{
	size_t found = 0;
	for (size_t i = 0; i < plan->count; i++)
		found += plan->listeners[i].use == EGRESS_FORWARD && plan->listeners[i].port == port &&
		         !strcmp(text_of(&plan->listeners[i].address), address);
	return found;
}

static void assert_rule(const struct egress_rule *rule, const char *text, const char *v4, const char *v6)
{
	assert_string_equal(rule->text, text);
	assert_string_equal(text_of(&rule->v4), v4);
	assert_string_equal(text_of(&rule->v6), v6);
}

static void test_own_listeners(void **state)
{
	(void)state;
	static const struct {
		enum egress_use use;
		uint16_t port;
	} own[] = { { EGRESS_PROXY, 3128 }, { EGRESS_DNS_UDP, 53 }, { EGRESS_DNS_TCP, 53 } };
	list("203.0.113.7:443");
	struct egress_plan plan = make();
	assert_int_equal(plan.count, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(plan.listeners[i].use, own[i].use);
		assert_int_equal(plan.listeners[i].port, own[i].port);
		assert_string_equal(text_of(&plan.listeners[i].address), "198.18.0.1");
	}
	assert_int_equal(plan.rule_count, 1);
	assert_rule(&plan.rules[0], "203.0.113.7:443", "", "");
}

/* A name has one address whatever the number of its ports; an address and a wildcard have none. */
static void test_addresses(void **state)
{
	(void)state;
	list("B.example.com.:443");
	list("b.example.com:22");
	list("a.example.com:443");
	list("*.example.org:8443");
	list("[2001:db8::1]:80");
	list("b.example.com:443");
	struct egress_plan plan = make();
	assert_int_equal(plan.rule_count, 5);
	assert_rule(&plan.rules[0], "*.example.org:8443", "", "");
	assert_rule(&plan.rules[1], "[2001:db8::1]:80", "", "");
	assert_rule(&plan.rules[2], "a.example.com:443", "198.18.1.1", "2001:2::1:1");
	assert_rule(&plan.rules[3], "b.example.com:22", "198.18.1.2", "2001:2::1:2");
	assert_rule(&plan.rules[4], "b.example.com:443", "198.18.1.2", "2001:2::1:2");
	assert_int_equal(plan.count, 3 + 2 * 4);
	assert_int_equal(listeners_on(&plan, "198.18.1.1", 443), 1);
	assert_int_equal(listeners_on(&plan, "2001:2::1:1", 443), 1);
	assert_int_equal(listeners_on(&plan, "198.18.1.2", 22), 1);
	assert_int_equal(listeners_on(&plan, "198.18.1.2", 443), 1);
	assert_int_equal(listeners_on(&plan, "198.18.1.1", 22), 0);
	assert_int_equal(listeners_on(&plan, "0.0.0.0", 8443), 1);
	assert_int_equal(listeners_on(&plan, "::", 8443), 1);
	assert_int_equal(listeners_on(&plan, "0.0.0.0", 80), 0);
}

/* One port, wanted at an address and at every one: that would be refused by the kernel. */
static void test_wildcard_and_name_share_a_port(void **state)
{
	(void)state;
	list("*.example.org:443");
	list("example.org:443");
	list("example.org:22");
	struct egress_plan plan = make();
	assert_int_equal(plan.count, 3 + 2 * 2);
	assert_int_equal(listeners_on(&plan, "0.0.0.0", 443), 1);
	assert_int_equal(listeners_on(&plan, "198.18.1.1", 443), 0);
	assert_int_equal(listeners_on(&plan, "198.18.1.1", 22), 1);
}

/* The proxy's own ports: an exact name has an address of its own, a wildcard would be in the way. */
static void test_own_ports(void **state)
{
	(void)state;
	list("example.org:53");
	list("example.org:3128");
	list("*.example.org:53");
	list("*.example.org:3128");
	struct egress_plan plan = make();
	assert_int_equal(plan.count, 3 + 2 * 2);
	assert_int_equal(listeners_on(&plan, "198.18.1.1", 53), 1);
	assert_int_equal(listeners_on(&plan, "2001:2::1:1", 3128), 1);
}

static void test_long_list(void **state)
{
	(void)state;
	for (int i = 0; i < EGRESS_PAIRS_MAX; i++)
		list("h%03d.example.org:443", i);
	struct egress_plan plan = make();
	assert_int_equal(plan.count, 3 + 2 * EGRESS_PAIRS_MAX);
	list("h999.example.org:22");
	plan = make();
	assert_int_equal(plan.count, 3 + 2 * 2);
	assert_int_equal(listeners_on(&plan, "0.0.0.0", 22), 1);
	assert_int_equal(listeners_on(&plan, "::", 443), 1);
	assert_rule(&plan.rules[EGRESS_PAIRS_MAX], "h999.example.org:22", "198.18.1.9", "2001:2::1:9");
}

/* The most there can be of everything still fits. */
static void test_bounds(void **state)
{
	(void)state;
	struct egress_plan plan;
	struct cordon_error err;
	for (int i = 0; i < EGRESS_PORTS_MAX; i++)
		list("*.example.org:%d", 1000 + i);
	for (int i = 0; i < EGRESS_PAIRS_MAX; i++)
		list("h%03d.example.org:%d", i, 100 + i);
	for (int i = 0; i < EGRESS_SERVICES_MAX; i++)
		list("localhost:%d", 5000 + i);
	plan = make();
	assert_int_equal(plan.count, EGRESS_LISTENERS_MAX);
	list("*.example.org:99");
	assert_int_equal(egress_make(&arena, &hosts, &plan, &err), -1);
	assert_int_equal(err.class, CORDON_E_INVALID_REQUEST);
	assert_string_equal(err.boundary, "network");
	assert_non_null(strstr(err.reason, "129 different ports"));
}

static void test_most_rules(void **state)
{
	(void)state;
	struct egress_plan plan;
	struct cordon_error err;
	for (int i = 0; i < EGRESS_RULES_MAX; i++)
		list("h%04d.example.org:443", i);
	plan = make();
	assert_int_equal(plan.rule_count, EGRESS_RULES_MAX);
	assert_rule(&plan.rules[EGRESS_RULES_MAX - 1], "h4095.example.org:443", "198.18.17.0", "2001:2::1:1000");
	list("one.more:443");
	assert_int_equal(egress_make(&arena, &hosts, &plan, &err), -1);
	assert_int_equal(err.class, CORDON_E_INVALID_REQUEST);
	assert_non_null(strstr(err.reason, "4097 hosts"));
}

static void test_no_host(void **state)
{
	(void)state;
	struct egress_plan plan;
	struct cordon_error err;
	list("example.org:443");
	list("user@example.org:443");
	assert_int_equal(egress_make(&arena, &hosts, &plan, &err), -1);
	assert_int_equal(err.class, CORDON_E_INVALID_REQUEST);
	assert_string_equal(err.subject, "user@example.org:443");
}

/* One pair of listeners for each port, however the host is written, and none of another's address. */
static void test_services_of_the_host(void **state)
{
	(void)state;
	list("localhost:5432");
	list("127.0.0.1:5432");
	list("[::1]:6379");
	list("127.0.0.2:6379");
	list("a.example.com:443");
	struct egress_plan plan = make();
	assert_rule(&plan.rules[0], "127.0.0.1:5432", "127.0.0.1", "::1");
	assert_rule(&plan.rules[1], "127.0.0.2:6379", "", "");
	assert_rule(&plan.rules[2], "[::1]:6379", "127.0.0.1", "::1");
	assert_rule(&plan.rules[3], "a.example.com:443", "198.18.1.1", "2001:2::1:1");
	assert_rule(&plan.rules[4], "localhost:5432", "127.0.0.1", "::1");
	assert_int_equal(plan.count, 3 + 2 * 3);
	assert_int_equal(listeners_on(&plan, "127.0.0.1", 5432), 1);
	assert_int_equal(listeners_on(&plan, "::1", 6379), 1);
}

/* A port that is listened on at every address needs no listener of its own; the proxy's own ports are free at loopback.
 */
static void test_services_beside_others(void **state)
{
	(void)state;
	list("localhost:443");
	list("localhost:53");
	list("localhost:3128");
	list("*.example.org:443");
	struct egress_plan plan = make();
	assert_int_equal(plan.count, 3 + 2 * 3);
	assert_int_equal(listeners_on(&plan, "127.0.0.1", 443), 0);
	assert_int_equal(listeners_on(&plan, "0.0.0.0", 443), 1);
	assert_int_equal(listeners_on(&plan, "127.0.0.1", 53), 1);
	assert_int_equal(listeners_on(&plan, "::1", 3128), 1);
}

static void test_most_services(void **state)
{
	(void)state;
	struct egress_plan plan;
	struct cordon_error err;
	for (int i = 0; i < EGRESS_SERVICES_MAX; i++)
		list("localhost:%d", 5000 + i);
	plan = make();
	assert_int_equal(plan.count, 3 + 2 * EGRESS_SERVICES_MAX);
	list("localhost:80");
	assert_int_equal(egress_make(&arena, &hosts, &plan, &err), -1);
	assert_int_equal(err.class, CORDON_E_INVALID_REQUEST);
	assert_non_null(strstr(err.reason, "65 different ports of localhost"));
}

static void test_on_loopback(void **state)
{
	(void)state;
	list("a.example.com:443");
	list("localhost:80");
	list("*.example.com:80");
	struct egress_plan plan = make();
	assert_false(plan.is_on_loopback);
	egress_on_loopback(&plan);
	assert_true(plan.is_on_loopback);
	assert_int_equal(plan.count, 1);
	assert_memory_equal(plan.listeners[0].address.bytes, "\x7f\0\0\1", 4);
	assert_int_equal(plan.listeners[0].port, 0);
	assert_int_equal(plan.listeners[0].use, EGRESS_PROXY);
	assert_int_equal(plan.rule_count, 3);
	for (size_t i = 0; i < plan.rule_count; i++)
		assert_rule(&plan.rules[i], plan.rules[i].text, "", "");
}

static void test_offline(void **state)
{
	(void)state;
	struct egress_plan plan;
	struct cordon_error err;
	assert_int_equal(egress_make_offline(&arena, &plan, &err), 0);
	assert_true(plan.is_offline);
	assert_int_equal(plan.count, 3);
	assert_int_equal(plan.rule_count, 0);
	list("a.example.com:443");
	assert_false(make().is_offline);
}

static void test_names_of_uses(void **state)
{
	(void)state;
	for (int i = 0; i < EGRESS_USE_MAX; i++)
		assert_non_null(egress_use_names[i]);
}

#define ROW(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROW(test_own_listeners),
		ROW(test_addresses),
		ROW(test_wildcard_and_name_share_a_port),
		ROW(test_own_ports),
		ROW(test_services_of_the_host),
		ROW(test_services_beside_others),
		ROW(test_most_services),
		ROW(test_on_loopback),
		ROW(test_offline),
		ROW(test_long_list),
		ROW(test_bounds),
		ROW(test_most_rules),
		ROW(test_no_host),
		ROW(test_names_of_uses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

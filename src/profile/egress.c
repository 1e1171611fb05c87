/* The plan of a network of listed hosts: see egress.h. */
#include "profile/egress.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "policy/cover.h"
#include "policy/host.h"

const char *const egress_use_names[EGRESS_USE_MAX] = {
	[EGRESS_PROXY] = "proxy",     [EGRESS_DNS_UDP] = "dns_udp",     [EGRESS_DNS_TCP] = "dns_tcp",
	[EGRESS_FORWARD] = "forward", [EGRESS_PUBLISHED] = "published", [EGRESS_GATEWAY] = "gateway",
};

/* A set of ports. */
struct ports {
	uint8_t bits[(UINT16_MAX + 1) / 8];
	size_t count;
};

static bool has_port(const struct ports *ports, uint16_t port)
{
	return ports->bits[port / 8] & (1u << port % 8);
}

static void set_port(struct ports *ports, uint16_t port)
{
	ports->count += !has_port(ports, port);
	ports->bits[port / 8] |= (uint8_t)(1u << port % 8);
}

static void add_port(struct ports *ports, uint16_t port)
{
	/* What listens on every address would be in the way of the proxy's own listeners. */
	if (port != EGRESS_PORT && port != EGRESS_DNS_PORT)
		set_port(ports, port);
}

/* ---- rules ------------------------------------------------------------------------------------------------------ */

static int by_name(const void *a, const void *b)
{
	const struct host *one = a, *other = b;
	int order = strcmp(one->name, other->name);
	return order ? order : (int)one->port - (int)other->port;
}

/* In order, each once. */
static int read_hosts(struct arena *arena, const struct strings *texts, struct host **ret_hosts, size_t *ret_count,
                      struct cordon_error *err)
{
	size_t count = 0;
	if (texts->count > EGRESS_RULES_MAX) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, "network", "%zu hosts are listed, and there is room for %d",
		     texts->count, EGRESS_RULES_MAX);
		fail_boundary(err, "network");
		return fail_remedy(err, "use wildcards, such as *.example.com:443");
	}
	struct host *hosts = arena_alloc(arena, (texts->count + 1) * sizeof(*hosts));
	if (!hosts)
		return fail_oom(err);
	for (size_t i = 0; i < texts->count; i++) {
		const char *why = host_parse_rule(texts->items[i], strlen(texts->items[i]), &hosts[i]);
		if (why) {
			fail(err, CORDON_E_INVALID_REQUEST, 0, texts->items[i],
			     "this is no host that can be reached: %s", why);
			return fail_boundary(err, "network");
		}
	}
	qsort(hosts, texts->count, sizeof(*hosts), by_name);
	for (size_t i = 0; i < texts->count; i++)
		if (!count || by_name(&hosts[count - 1], &hosts[i]))
			hosts[count++] = hosts[i];
	*ret_hosts = hosts;
	*ret_count = count;
	return 0;
}

/* The address that many after `first`; there are far fewer than its last two bytes can count. */
static struct address address_after(const char *first, size_t number)
{
	struct address address = { 0 };
	if (!address_parse(first, strlen(first), &address))
		return address;
	uint8_t *low = &address.bytes[address.length - 1], *high = low - 1;
	size_t sum = (size_t)(*high << 8 | *low) + number;
	*high = (uint8_t)(sum >> 8);
	*low = (uint8_t)sum;
	return address;
}

static int make_rules(struct arena *arena, const struct host *hosts, size_t count, struct egress_plan *plan)
{
	size_t names = 0;
	const char *before = "";
	plan->rules = arena_alloc(arena, (count + 1) * sizeof(*plan->rules));
	if (!plan->rules)
		return -1;
	for (size_t i = 0; i < count; i++) {
		struct egress_rule *rule = &plan->rules[plan->rule_count++];
		char text[HOST_TEXT_SIZE];
		host_text(&hosts[i], text);
		rule->text = arena_strdup(arena, text);
		if (!rule->text)
			return -1;
		if (host_is_loopback(&hosts[i])) {
			rule->v4 = address_after(EGRESS_LOOPBACK_V4, 0);
			rule->v6 = address_after(EGRESS_LOOPBACK_V6, 0);
			continue;
		}
		if (hosts[i].form != HOST_NAME)
			continue;
		names += strcmp(hosts[i].name, before) != 0;
		before = hosts[i].name;
		rule->v4 = address_after(EGRESS_EXACT_V4, names);
		rule->v6 = address_after(EGRESS_EXACT_V6, names);
	}
	return 0;
}

/* ---- listeners -------------------------------------------------------------------------------------------------- */

/* An exact name that has an address of its own inside. */
static bool is_name(const struct host *host)
{
	return host->form == HOST_NAME && !host_is_loopback(host);
}

/* Which ports must be listened on at every address. */
static struct ports shared_ports(const struct host *hosts, size_t count)
{
	struct ports ports = { 0 };
	size_t pairs = 0;
	for (size_t i = 0; i < count; i++)
		pairs += is_name(&hosts[i]);
	for (size_t i = 0; i < count; i++)
		if (hosts[i].form == HOST_WILDCARD || (is_name(&hosts[i]) && pairs > EGRESS_PAIRS_MAX))
			add_port(&ports, hosts[i].port);
	return ports;
}

/* The ports of services of the host, each once however its host is written. */
static struct ports service_ports(const struct host *hosts, size_t count)
{
	struct ports ports = { 0 };
	for (size_t i = 0; i < count; i++)
		if (host_is_loopback(&hosts[i]))
			set_port(&ports, hosts[i].port);
	return ports;
}

static void listen_on(struct egress_plan *plan, enum egress_use use, const struct address *address, uint16_t port)
{
	plan->listeners[plan->count++] =
		(struct egress_listener){ .use = (uint8_t)use, .port = port, .address = *address };
}

/* At two addresses, one of each family. */
static void listen_on_ports(struct egress_plan *plan, const struct ports *ports, const struct ports *except,
                            const struct address *v4, const struct address *v6)
{
	for (unsigned port = 1; port <= UINT16_MAX && ports->count; port++) {
		if (!has_port(ports, (uint16_t)port) || (except && has_port(except, (uint16_t)port)))
			continue;
		listen_on(plan, EGRESS_FORWARD, v4, (uint16_t)port);
		listen_on(plan, EGRESS_FORWARD, v6, (uint16_t)port);
	}
}

static void make_listeners(const struct host *hosts, size_t count, const struct ports *shared,
                           const struct ports *services, struct egress_plan *plan)
{
	static const struct address every_v4 = { .length = 4 }, every_v6 = { .length = 16 };
	const struct address own = address_after(EGRESS_ADDRESS, 0), loopback_v4 = address_after(EGRESS_LOOPBACK_V4, 0),
	                     loopback_v6 = address_after(EGRESS_LOOPBACK_V6, 0);
	size_t pairs = 0;
	listen_on(plan, EGRESS_PROXY, &own, EGRESS_PORT);
	listen_on(plan, EGRESS_DNS_UDP, &own, EGRESS_DNS_PORT);
	listen_on(plan, EGRESS_DNS_TCP, &own, EGRESS_DNS_PORT);
	for (size_t i = 0; i < count; i++) {
		if (!is_name(&hosts[i]) || has_port(shared, hosts[i].port) || ++pairs > EGRESS_PAIRS_MAX)
			continue;
		listen_on(plan, EGRESS_FORWARD, &plan->rules[i].v4, hosts[i].port);
		listen_on(plan, EGRESS_FORWARD, &plan->rules[i].v6, hosts[i].port);
	}
	listen_on_ports(plan, services, shared, &loopback_v4, &loopback_v6);
	listen_on_ports(plan, shared, NULL, &every_v4, &every_v6);
}

static int fail_ports(struct cordon_error *err, size_t count, const char *what, int most)
{
	fail(err, CORDON_E_INVALID_REQUEST, 0, "network", "%zu different %s are listed, and there is room for %d",
	     count, what, most);
	fail_boundary(err, "network");
	return fail_remedy(err, "list fewer ports");
}

int egress_make(struct arena *arena, const struct strings *hosts, struct egress_plan *ret_plan,
                struct cordon_error *err)
{
	struct egress_plan plan = { 0 };
	struct host *parsed = NULL;
	size_t count = 0;
	if (read_hosts(arena, hosts, &parsed, &count, err) < 0)
		return -1;
	const struct ports shared = shared_ports(parsed, count), services = service_ports(parsed, count);
	if (shared.count > EGRESS_PORTS_MAX)
		return fail_ports(err, shared.count, "ports", EGRESS_PORTS_MAX);
	if (services.count > EGRESS_SERVICES_MAX)
		return fail_ports(err, services.count, "ports of localhost", EGRESS_SERVICES_MAX);
	plan.listeners = arena_alloc(arena, EGRESS_LISTENERS_MAX * sizeof(*plan.listeners));
	if (!plan.listeners || make_rules(arena, parsed, count, &plan) < 0)
		return fail_oom(err);
	make_listeners(parsed, count, &shared, &services, &plan);
	*ret_plan = plan;
	return 0;
}

void egress_share(struct egress_plan *plan)
{
	for (size_t i = 0; i < plan->count; i++)
		if (plan->listeners[i].use == EGRESS_PROXY)
			plan->listeners[i].address = (struct address){ .length = 4 };
}

void egress_on_loopback(struct egress_plan *plan)
{
	const struct address loopback = address_after(EGRESS_LOOPBACK_V4, 0);
	plan->count = 0;
	listen_on(plan, EGRESS_PROXY, &loopback, 0);
	for (size_t i = 0; i < plan->rule_count; i++)
		plan->rules[i].v4 = plan->rules[i].v6 = (struct address){ 0 };
	plan->is_on_loopback = true;
}

struct address egress_command_address(const char *audit_id)
{
	uint32_t hash = 2166136261u;
	for (const char *at = audit_id; *at; at++)
		hash = (hash ^ (uint8_t)*at) * 16777619u;
	return address_after(EGRESS_COMMANDS,
	                     (hash ^ hash >> EGRESS_COMMANDS_BITS) & ((1u << EGRESS_COMMANDS_BITS) - 1));
}

int egress_add_gateways(struct arena *arena, const struct strings *hosts, const struct gateway *gateways, size_t count,
                        struct egress_plan *plan)
{
	const struct address loopback = address_after(EGRESS_LOOPBACK_V4, 0);
	struct egress_listener *listeners = arena_alloc(arena, (plan->count + count) * sizeof(*listeners));
	if (!listeners)
		return -1;
	if (!count)
		return 0;
	memcpy(listeners, plan->listeners, plan->count * sizeof(*listeners));
	plan->listeners = listeners;
	for (size_t i = 0; i < count; i++) {
		char host[HOST_TEXT_SIZE];
		host_text(&gateways[i].upstream.host, host);
		if (!cover_host(hosts, host, false))
			continue;
		listen_on(plan, EGRESS_GATEWAY, &loopback, (uint16_t)(GATEWAY_PORT + i));
		plan->gateway_count++;
	}
	return 0;
}

int egress_make_offline(struct arena *arena, struct egress_plan *ret_plan, struct cordon_error *err)
{
	static const struct strings none = { 0 };
	struct egress_plan plan;
	if (egress_make(arena, &none, &plan, err) < 0)
		return -1;
	plan.is_offline = true;
	*ret_plan = plan;
	return 0;
}

/* What a command with a network of listed hosts finds in its namespace: which addresses names have there, and where is
 * listened for connections to them (policy/egress.h has the addresses). Pure: from the list of hosts to this plan. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "cordon-internal.h"
#include "policy/address.h"
#include "policy/egress.h"
#include "policy/gateway.h"

/* What the proxy, which serves them, has room for. */
#define EGRESS_RULES_MAX 4096
#define EGRESS_PORTS_MAX 128            /* that are listened on at every address */
#define EGRESS_PAIRS_MAX 8              /* of an exact name and a port that have a listener each: each costs 10 us */
#define EGRESS_SERVICES_MAX 64          /* ports of the host's loopback */
#define EGRESS_LISTENERS_MAX (3 + 2 * (EGRESS_PORTS_MAX + EGRESS_PAIRS_MAX + EGRESS_SERVICES_MAX))

struct egress_listener {
	uint8_t use;                    /* enum egress_use */
	uint16_t port;
	struct address address;         /* all zero: every address of that family */
};

struct egress_rule {
	const char *text;               /* "example.com:443", as host_text() writes it */
	struct address v4, v6;          /* of an exact name or a service of the host, inside; else of length 0 */
};

struct egress_plan {
	struct egress_listener *listeners;
	size_t count;                   /* 0: no network, or all of it */
	struct egress_rule *rules;      /* sorted, each once */
	size_t rule_count;
	size_t gateway_count;           /* of the listeners, the last ones: they are not the proxy's but the
	                                   gateway's */
	bool is_offline;                /* there is no network: what is asked for at the listeners is refused at once */
	bool is_on_loopback;            /* of this machine: who uses the proxy shows the token of a command */
};

extern const char *const egress_use_names[EGRESS_USE_MAX];

/* Everything is the arena's. An exact name is listened for at its own addresses, so that the same port stays free at
 * others, such as 127.0.0.1; for wildcards, whose names are not known before they are asked for, and for long lists, a
 * port is listened on at every address. Ports 53 and 3128 are not: there, only exact names can be reached without the
 * proxy. An address of a rule is not local, and can be reached through the proxy alone; but those of loopback
 * (host_is_loopback()) are listened on inside as well. */
int egress_make(struct arena *arena, const struct strings *hosts, struct egress_plan *ret_plan,
                struct cordon_error *err) must_check;
/* Of a sandbox in which several commands run: the proxy is listened for at all addresses, so that each command can
 * have its own. */
void egress_share(struct egress_plan *plan);
/* Without a network namespace: the proxy alone, at a port of this machine's loopback that is not known yet (0). */
void egress_on_loopback(struct egress_plan *plan);
/* The address of a session's command. Two commands may have the same one, and every command can use another's: it is a
 * hint. */
struct address egress_command_address(const char *audit_id);
/* Listeners for the gateways that lead to a host among these. -1 when memory is short. */
int egress_add_gateways(struct arena *arena, const struct strings *hosts, const struct gateway *gateways, size_t count,
                        struct egress_plan *plan) must_check;
/* Of a command without a network: the listeners of the proxy and of the name server, so that programs fail at once,
 * and the hosts that they tried are known. */
int egress_make_offline(struct arena *arena, struct egress_plan *ret_plan, struct cordon_error *err) must_check;

/* The addresses of a sandbox that may reach listed hosts, and what is listened for there. They are of ranges that are
 * set aside for measuring (198.18.0.0/15 and 2001:2::/48), made local to the sandbox's loopback by one route each:
 *
 *     198.18.0.1               the proxy and the name server
 *     198.18.1.0 + i           the i-th exact name of the rules, from 1; 2001:2::1:0 + i in IPv6
 *     198.18.128.0/17          the proxy again: an address for each command of a session, by which it is known whose a
 *                              connection is
 *     198.19.0.0/16            names that only a wildcard covers, given out when they are asked for; 2001:2::2:0/112
 *
 * A service of the host (localhost:PORT) is listened for at 127.0.0.1 and ::1, where clients expect it.
 *
 * Where the driver has no network namespace there is the proxy alone, at a port of this machine's 127.0.0.1 that the
 * system chooses; every local user can connect there, so a command shows a token, as the password of EGRESS_USER. */
#pragma once

#define EGRESS_ADDRESS "198.18.0.1"
#define EGRESS_PORT 3128                /* HTTP, or SOCKS5: the first byte tells */
#define EGRESS_DNS_PORT 53
#define EGRESS_PROXY_URL "http://198.18.0.1:3128"
#define EGRESS_COMMANDS "198.18.128.0"
#define EGRESS_COMMANDS_BITS 15         /* that tell one command from the other */

#define EGRESS_ROUTE_V4 "198.18.0.0"
#define EGRESS_BITS_V4 15
#define EGRESS_ROUTE_V6 "2001:2::"
#define EGRESS_BITS_V6 48
#define EGRESS_EXACT_V4 "198.18.1.0"
#define EGRESS_EXACT_V6 "2001:2::1:0"
#define EGRESS_WILD_V4 "198.19.0.0"
#define EGRESS_WILD_V6 "2001:2::2:0"
#define EGRESS_LOOPBACK_V4 "127.0.0.1"
#define EGRESS_LOOPBACK_V6 "::1"

#define EGRESS_USER "cordon"
/* Of such a proxy, for display; the command gets the token and the port in their places. */
#define EGRESS_LOOPBACK_URL "http://" EGRESS_USER ":(token)@" EGRESS_LOOPBACK_V4 ":(port)"

enum egress_use {
	EGRESS_PROXY,
	EGRESS_DNS_UDP,
	EGRESS_DNS_TCP,
	EGRESS_FORWARD,         /* the name is known by the address that was dialled */
	EGRESS_PUBLISHED,       /* on the host's loopback: the port inside that is meant comes with it */
	EGRESS_GATEWAY,         /* of cordon-gateway: the port tells which */
	EGRESS_USE_MAX
};

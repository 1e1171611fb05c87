/* What travels between the supervisor and cordon-proxy, on a SOCK_SEQPACKET socket that is the proxy's descriptor 3.
 * One message is one struct proxy_message, all of it, padding zeroed; a listener comes with one descriptor
 * (SCM_RIGHTS). Whoever reads checks the size, the kind, what is an enum, and that texts end; neither trusts the other
 * with more than that. When the supervisor's end closes, the proxy ends and all connections with it.
 *
 *     SETTINGS, RULE…, EXEMPTION…, PRIVATE…, NAME…, LISTENER…, BEGIN →     in any order but for BEGIN, the last
 *     ← READY                                                      sealed, and accepting from now on
 *     ← CONNECTION, NAME_DENIED, QUESTION    ANSWER →              while the command runs
 *     END →   ← what was not told yet, TOTALS                      then the proxy exits */
#pragma once
#include <stdint.h>

#include "net/resolution.h"
#include "policy/address.h"
#include "policy/egress.h"
#include "policy/host.h"

#define PROXY_FD 3
#define PROXY_NO_NETWORK "no network access"    /* why everything is refused where there is none */

enum proxy_kind {
	/* To the proxy, before it begins. */
	PROXY_SETTINGS = 1,
	PROXY_RULE,
	PROXY_EXEMPTION,
	PROXY_PRIVATE,          /* a host that may be at an address of this site */
	PROXY_NAME,
	PROXY_LISTENER,
	PROXY_BEGIN,
	/* To the proxy, later. */
	PROXY_ANSWER,
	PROXY_END,
	/* From the proxy. */
	PROXY_READY,
	PROXY_CONNECTION,       /* one has ended, or was refused; or is open, and will be told of again */
	PROXY_NAME_DENIED,      /* a name was asked for that is not allowed: connection.count times since it was last told */
	PROXY_QUESTION,         /* may this host be reached, which no rule covers? */
	PROXY_TOTALS,           /* the last message */
	PROXY_KIND_MAX
};

enum proxy_way {
	PROXY_BY_CONNECT,
	PROXY_BY_HTTP,
	PROXY_BY_SOCKS,
	PROXY_BY_ADDRESS,       /* without a proxy, by one of the addresses inside */
	PROXY_BY_DNS,
	PROXY_WAY_MAX
};

enum proxy_decision {
	PROXY_ALLOWED,
	PROXY_DENIED,           /* by the rules, by the table of addresses, by a human */
	PROXY_FAILED,           /* malformed, not found, not reachable, over a limit */
	PROXY_DECISION_MAX
};

#define PROXY_RULES_MAX 4096            /* also of exemptions, of private hosts and of names */
#define PROXY_LISTENERS_MAX 512

struct proxy_message {
	uint32_t kind;                          /* enum proxy_kind */
	uint32_t id;                            /* of a question, and of its answer */
	union {
		struct {
			uint64_t connections;           /* at a time */
			uint64_t total_connections;
			uint64_t connect_ms, idle_ms;
			uint64_t header_bytes;
			uint64_t total_bytes;           /* both ways together; 0: no bound */
			uint8_t asks;                   /* about what no rule covers */
			uint8_t offline;                /* 1: there is no network; everything is refused, and no socket can be made */
		} settings;
		struct {
			struct address v4, v6;          /* inside, of an exact name; else of length 0 */
		} rule;
		struct {
			struct address address;         /* of PROXY_NAME */
		} name;
		struct {
			uint8_t use;                    /* enum egress_use */
			uint16_t port;
			struct address address;         /* all zero: any */
		} listener;
		struct {
			uint8_t allowed;
			uint8_t remember;               /* for the rest of this command; else for those that wait now */
		} answer;
		struct {
			uint8_t way, decision;          /* enum proxy_way, enum proxy_decision */
			uint8_t open;                   /* 1: it was allowed and goes on; its bytes are those so far */
			uint8_t outside;                /* 1: its host was asked for or dialled there, whatever became of it */
			uint8_t unresolved;             /* 1: it failed because its name has no address, or none could be had */
			uint16_t port;
			uint16_t status;                /* the HTTP status that was told, or 0 */
			struct address address;         /* that was dialled, or refused; else of length 0 */
			uint64_t bytes_in;              /* from the network to the command */
			uint64_t bytes_out;
			uint64_t duration_us;
			uint64_t count;                 /* how many this row stands for; at least 1 */
		} connection;
		struct {
			uint64_t connections, bytes_in, bytes_out, denied, failed;
		} totals;
	};
	char host[HOST_TEXT_SIZE];      /* a rule or a private host "name:port", an exemption "10.1.0.0/16", a name, a name that was denied, a
	                                 * connection's or a question's "host:port"; "" where a connection named none */
	char text[RESOLVE_WHY_SIZE];    /* why, for people, of an answer, too; "" where there is nothing to say */
};

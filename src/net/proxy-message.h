/* What travels between the supervisor and cordon-proxy, on a socket (proxy-socket.h) that is the proxy's descriptor 3.
 * One message is one struct proxy_message, all of it, padding zeroed; a listener comes with one descriptor
 * (SCM_RIGHTS). Whoever reads checks the size, the kind, what is an enum, and that texts end; neither trusts the other
 * with more than that. When the supervisor's end closes, the proxy ends and all connections with it.
 *
 *     SETTINGS, RULE…, EXEMPTION…, PRIVATE…, NAME…, LISTENER…, NETWORK…, SCAN, SECRET…, BEGIN →
 *                                                      in any order, but SECRET behind SCAN, and BEGIN last
 *     ← READY                                          sealed, and accepting from now on
 *     ← CONNECTION, NAME_DENIED, QUESTION    ANSWER →  while the command runs
 *     TELL →  ← what was counted, TOLD                 when one of the sandbox's commands has ended
 *     LEAVE, RULE…, BEGIN →                            another proxy listens from now on; what these rules no longer
 *                                                      cover ends, and with the last connection the proxy, as after END
 *     END →   ← what was not told yet, TOTALS          then the proxy exits */
#pragma once
#include <stdint.h>

#include "net/resolution.h"
#include "policy/address.h"
#include "policy/egress.h"
#include "policy/host.h"

#define PROXY_FD 3
#define PROXY_NO_NETWORK "no network access"    /* why everything is refused where there is none */
#define PROXY_TOKEN_LENGTH 64                   /* characters; longer than a label of a name can be */

enum proxy_kind {
	/* To the proxy, before it begins. */
	PROXY_SETTINGS = 1,
	PROXY_RULE,
	PROXY_EXEMPTION,
	PROXY_PRIVATE,          /* a host that may be at an address of this site */
	PROXY_NAME,
	PROXY_LISTENER,
	PROXY_NETWORK,          /* its descriptor is a user namespace, the next one's a network in it: the proxy goes
	                           there */
	PROXY_SCAN,             /* the bodies of requests are searched for secrets, so: */
	PROXY_SECRET,           /* one of the caller's own, or a piece of it; its name is `host` */
	PROXY_GATEWAY,          /* to cordon-gateway: a part of what it needs to know of a port, in `secret`; where
	                           it leads is `host` */
	PROXY_TOKEN,            /* also later: that of a command, which is told by its number `id`, in `secret`; of
	                           length 0: it has ended, and what it has open ends */
	PROXY_BEGIN,
	/* To the proxy, later. */
	PROXY_ANSWER,
	PROXY_TELL,             /* a command has ended: what was counted so far, then PROXY_TOLD with the same id;
	                           answers are forgotten */
	PROXY_LEAVE,            /* nothing is accepted any more, and the rules are those that follow */
	PROXY_END,
	/* From the proxy. */
	PROXY_READY,
	PROXY_CONNECTION,       /* one has ended, or was refused; or is open, and will be reported again */
	PROXY_NAME_DENIED,      /* a name was asked for that is not allowed: connection.count times since it was last
	                           told */
	PROXY_QUESTION,         /* may this host be reached, which no rule covers? */
	PROXY_TOLD,
	PROXY_TOTALS,           /* the last message */
	PROXY_KIND_MAX
};

enum proxy_way {
	PROXY_BY_CONNECT,
	PROXY_BY_HTTP,
	PROXY_BY_SOCKS,
	PROXY_BY_ADDRESS,       /* without a proxy, by one of the addresses inside */
	PROXY_BY_DNS,
	PROXY_BY_GATEWAY,
	PROXY_PUBLISHED,        /* from this machine to a port inside: what goes in is bytes_in */
	PROXY_WAY_MAX
};

enum proxy_decision {
	PROXY_ALLOWED,
	PROXY_DENIED,           /* by the rules, by the table of addresses, by a human */
	PROXY_FAILED,           /* malformed, not found, not reachable, over a limit */
	PROXY_DECISION_MAX
};

/* The path comes first, once for each gateway; what is long in several messages. */
enum proxy_gateway_field {
	PROXY_GATEWAY_PATH,
	PROXY_GATEWAY_HEADER,
	PROXY_GATEWAY_PREFIX,
	PROXY_GATEWAY_KEY,
	PROXY_GATEWAY_CA,
	PROXY_GATEWAY_WHY,      /* `text`: there is no key */
};

#define PROXY_RULES_MAX 4096            /* also of exemptions, of private hosts and of names */
#define PROXY_LISTENERS_MAX 512

struct proxy_message {
	uint32_t kind;                          /* enum proxy_kind */
	uint32_t id;                            /* of a question, and of its answer; of TELL and TOLD; of a command */
	union {
		struct {
			uint64_t connections;           /* at a time */
			uint64_t total_connections;
			uint64_t connect_ms, idle_ms;
			uint64_t header_bytes;
			uint64_t total_bytes;           /* both ways together; 0: no bound */
			uint8_t asks;                   /* about what no rule covers */
			uint8_t offline;                /* 1: there is no network; everything is refused, and no
			                                   socket can be made */
			uint8_t asks_token;             /* who uses the proxy's port must show one */
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
			uint8_t rows[64], own;          /* enum secret_action, for each row of the kinds */
			uint8_t key[32];                /* of the fingerprints */
		} scan;
		struct {
			uint16_t length;
			uint8_t more;                   /* 1: the next message has more of it */
			uint8_t given;                  /* 1: the command has it by name, and may send it */
			uint8_t field;                  /* of a gateway: enum proxy_gateway_field */
			uint16_t port;                  /* inside */
			uint8_t bytes[128];
		} secret;
		struct {
			uint8_t allowed;
			uint8_t remember;               /* for the rest of this command; else for those that wait now */
		} answer;
		struct {
			uint8_t way, decision;          /* enum proxy_way, enum proxy_decision */
			uint8_t open;                   /* 1: it was allowed and is open; its bytes are those so far */
			uint8_t outside;                /* 1: its host was requested or dialled there, with whatever
			                                   result */
			uint8_t unresolved;             /* 1: it failed because its name has no address, or none
			                                   could be found */
			uint16_t port;
			uint16_t status;                /* the HTTP status that the client got, or 0 */
			uint32_t command;               /* whose token was shown; 0: nobody's */
			struct address address;         /* that was dialled, or refused; else of length 0 */
			struct address inside;          /* of a client of the proxy: what it dialled to reach that;
			                                   else of length 0 */
			uint64_t bytes_in;              /* from the network to the command */
			uint64_t bytes_out;
			uint64_t duration_us;
			uint64_t count;                 /* the number of connections this row sums up; at least 1 */
		} connection;
		struct {
			uint64_t connections, bytes_in, bytes_out, denied, failed;
		} totals;
	};
	char host[HOST_TEXT_SIZE]; /* a rule or a private host "name:port", an exemption "10.1.0.0/16", a name, a name
	                            * that was denied, a connection's or a question's "host:port"; "" where a connection
	                            * named none */
	char text[RESOLVE_WHY_SIZE];    /* the reason, for display, also of an answer; "" if there is none */
};

/* cordon-proxy: the one way out of a sandbox that may reach listed hosts. A process of its own for each sandbox: it
 * accepts on sockets that were made for that, resolves, judges, dials and relays. It waits for nothing but epoll, has
 * no thread but those that wait for the system's resolver where that is asked (net/resolve-system.c), and is sealed
 * (seal.h) before it reads a byte that the command wrote.
 *
 *     main ─▶ setup     settings, rules and listeners, from the supervisor
 *             seal      no file, no program, no privilege from here on
 *             loop      what happened, and whose time is over
 *              ├ accept        listeners → a connection, or an answer of the name service
 *              │  client       HTTP or SOCKS: which host is meant? and whose token is shown, where one must be
 *              │  dial         is it allowed? resolve, judge every address, connect to one of them
 *              │  relay        bytes both ways, by splice where there is that
 *              │  exchange     one request and its response, where HTTP is spoken in the clear
 *              ├ name-service  DNS
 *              └ supervisor    rows, questions, answers
 *
 * Memory is bounded by the number of connections: what a connection holds besides its struct is at most two buffers for
 * each direction, of the size that a head may have, and only while there is something in them. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/proxy-message.h"
#include "net/proxy-socket.h"
#include "proxy/pipes.h"
#include "proxy/rules.h"
#include "proxy/tokens.h"
#include "secrets/filter.h"

/* What epoll hands back. */
struct watch {
	void (*fn)(struct watch *watch, uint32_t events);
};

struct listener {
	struct watch watch;
	struct proxy *proxy;
	int fd;
	uint8_t use;            /* enum egress_use */
	uint16_t port;          /* of EGRESS_PUBLISHED: inside */
};

struct settings {
	uint64_t connections, total_connections, connect_ms, idle_ms, header_bytes, total_bytes;
	bool asks, offline, asks_token;
};

/* A message that the supervisor has not taken yet. */
struct outgoing {
	struct outgoing *next;
	size_t sent;                    /* bytes of it */
	struct proxy_message message;
};

/* What is reported by number rather than singly: see supervisor.h. */
#define TALLIES_MAX 64
struct connection;
struct resolver;

struct proxy {
	struct settings settings;
	struct rules rules;
	struct secret_terms terms;      /* what is looked for in the bodies of requests */
	struct tokens tokens;
	unsigned char *secret;          /* of which the last piece has not come yet */
	size_t secret_length;
	struct listener listeners[PROXY_LISTENERS_MAX];
	size_t listener_count;
	bool has_user;                  /* it is in the user namespace of the network that it is to enter */
	bool has_v6;                    /* is there a listener that IPv6 reaches? */
	bool is_accepting;
	uint64_t accept_again_us;       /* descriptors or memory were short: not before that */

	int epoll_fd;
	uint64_t round;                 /* of the loop: one for each time that epoll has told something */
	uint64_t now_us, next_deadline_us;
	struct watch supervisor_watch, resolver_watch;
	struct resolver *resolver;

	struct connection *connections; /* all that live */
	struct connection *busy;        /* those that had more to do than their turn was long */
	struct connection *dead;        /* those to be freed once nothing that happened can name them any more */
	size_t live, name_service_live;
	uint64_t judged;                /* connections that named a host */
	uint64_t moved;                 /* bytes, both ways */
	uint32_t next_question;
	struct pipes pipes;

	struct proxy_inbox inbox;
	struct outgoing *first_outgoing, **last_outgoing;
	size_t outgoing_count;
	bool supervisor_is_full;        /* it does not read as fast as there is to tell */
	bool supervisor_is_watched;     /* for when it takes more */
	struct proxy_message tallies[TALLIES_MAX];
	size_t tally_count;
	uint64_t tally_deadline_us;
	struct proxy_message totals;
	enum {
		LEAVES_NOT,
		LEAVES_SOON,            /* it no longer listens, and is told which rules are left */
		LEAVES_LAST             /* with its last connection */
	} leaves;
	bool is_ending;                 /* the command has ended */
	uint64_t end_us;                /* then: when it is over */
};

#define NEVER UINT64_MAX

/* One client, from accept to close, and what was dialled for it. A connection is in one phase at a time; each phase has
 * a function that goes on as far as it can without waiting, and one for when its time is over.
 *
 *     CLIENT    reads: which host is meant? (HTTP head, SOCKS; a connection to an address inside begins at ASK)
 *     ASK       the supervisor was asked whether the host may be reached
 *     RESOLVE   the resolver was asked for its addresses
 *     CONNECT   an address is being dialled
 *     TUNNEL    bytes both ways until both sides have ended
 *     EXCHANGE  one HTTP request and its response; then CLIENT again
 *     FAREWELL  the last bytes go to the client, then it may close
 *     NAMES     questions of the name service, over TCP
 *     DEAD      closed; freed when the round is over */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/host.h"
#include "proxy/buffer.h"
#include "proxy/proxy.h"

enum phase {
	PHASE_CLIENT,
	PHASE_ASK,
	PHASE_RESOLVE,
	PHASE_CONNECT,
	PHASE_TUNNEL,
	PHASE_EXCHANGE,
	PHASE_FAREWELL,
	PHASE_NAMES,
	PHASE_DEAD,
	PHASE_MAX
};

/* A socket. Epoll tells each change once; the flags keep what it said until a call says otherwise. */
struct side {
	struct watch watch;
	struct connection *connection;
	int fd;
	uint64_t round;                         /* of the loop, in which it was opened */
	bool readable, writable, broken;        /* broken: reset */
};

struct pipe;

/* Bytes in one direction: `head`, then the first `cleared` bytes of `bytes`, then the pipe. */
struct flow {
	struct buffer head;             /* written by the proxy itself */
	struct buffer bytes;            /* as they were read */
	size_t cleared;                 /* how many of them may continue */
	struct pipe *pipe;              /* of a tunnel, while there is something in it */
	bool has_ended, was_passed_on;  /* the source has no more to say; and the other side knows */
	uint64_t moved;
};

struct dial;
struct exchange;
struct lookup;

struct connection {
	struct connection *next, **link, *next_busy;
	struct proxy *proxy;
	enum phase phase;
	bool is_busy;
	bool spoke;                     /* the client said something */
	bool has_row;                   /* a host was judged, and the result was not reported yet */
	bool is_outside;                /* that was asked for or dialled outside */
	uint8_t way;                    /* enum proxy_way */
	bool is_head;                   /* a response to it has no body */
	bool unresolved;                /* its name has no address, or none could be found */
	const char *option;             /* that would have allowed it, with the host behind it; or NULL */
	enum {
		SOCKS_GREETING,
		SOCKS_LOGIN,            /* the greeting was answered, and a user and a password are to come */
		SOCKS_REQUEST
	} socks;                        /* what it says next, once it has spoken SOCKS */
	uint32_t command;               /* whose token was shown; 0: nobody's */
	bool was_served;                /* not the first request on this connection */
	size_t scanned;                 /* how much of a head was looked at */
	uint64_t deadline_us, started_us;
	uint64_t open_us;               /* when it is reported as open, if it still is */
	struct host host;
	struct address address;         /* that was dialled */
	struct address inside;          /* at which the client reached the proxy; or of length 0 */
	struct side client, server;
	struct flow out, in;            /* to the network, and to the command */
	uint32_t question;
	struct lookup *lookup;
	struct dial *dial;
	struct exchange *exchange;
};

/* Takes the socket. NULL where there is no memory for it. */
struct connection *connection_open(struct proxy *proxy, int fd, enum phase phase);
void connection_step(struct connection *connection);
void connection_expire(struct connection *connection);
/* In so many milliseconds from now; 0: never. */
void connection_expect(struct connection *connection, uint64_t ms);

/* Watches a socket that was dialled, and takes it. -1 where it cannot be watched; it is closed then. */
int connection_watch_server(struct connection *connection, int fd) must_check;
void connection_close_server(struct connection *connection, bool reset);

/* The row of the host that was judged last. `status`: what the client got by HTTP, or 0. A connection that named no
 * host is only counted. */
void connection_tell(struct connection *connection, enum proxy_decision decision, unsigned status, const char *why);
/* It is connected. If it stays open for a while, that is reported, once: a connection that ends together with the
 * supervisor has no other row. */
void connection_expect_open(struct connection *connection);
void connection_tell_open(struct connection *connection);
/* Ends with a row, where there is one to tell. `reset`: both sides shall see that it did not end by itself. */
void connection_end(struct connection *connection, enum proxy_decision decision, const char *why, bool reset);
/* Ends one that named no host. */
void connection_drop(struct connection *connection, enum proxy_decision decision, const char *why);
void connection_end_all(struct proxy *proxy, const char *why);
/* Those that have shown the token of this command. */
void connection_end_command(struct proxy *proxy, uint32_t command, const char *why);
/* Those whose host no rule covers any more. */
void connection_end_uncovered(struct proxy *proxy, const char *why);
/* The host is refused, or cannot be reached: a row, and an answer to the client in its protocol. */
void connection_refuse(struct connection *connection, enum proxy_decision decision, unsigned status, const char *why);
/* The same if `why` has what the command must not learn, such as the addresses of names: that is for the row only, and
 * the client gets `said`. */
void connection_refuse_saying(struct connection *connection, enum proxy_decision decision, unsigned status,
                              const char *why, const char *said);
/* What is in `in` is sent, and no more is read but to be thrown away. */
void connection_farewell(struct connection *connection);
void connection_farewell_step(struct connection *connection);
void connection_free_dead(struct proxy *proxy);

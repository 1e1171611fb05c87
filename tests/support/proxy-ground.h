/* A running cordon-proxy with listeners on loopback, and the supervisor's end of its socket. The test is the command,
 * the server and the supervisor, all in one thread; everything waits at most half a minute and then fails.
 *
 *     server      127.0.0.1:PORT, where the test listens; the names of PROXY_GROUND_NAMES lead there
 *     proxy_port  the proxy's port, on 127.0.0.1
 *     forward     127.77.0.1:PORT, which stands for a.test, and *:ANY for all
 *     dns_port    the name service, UDP and TCP, on 127.0.0.1 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "net/proxy-message.h"

struct proxy_options {
	uint64_t connections, total_connections, connect_ms, idle_ms, header_bytes, total_bytes;
	bool asks, offline;
	const char *const *tokens;      /* of the commands 1, 2, ...; ends with NULL; one must be shown */
	bool has_v6;                    /* a listener is told to be for IPv6, and a.test is 2001:2::1:1 inside, too */
	bool no_exemption;              /* the table of addresses stands as it is */
	const char *const *rules;       /* besides a.test:PORT; ends with NULL; "%" is the server's port */
	long without;                   /* a system call that this kernel shall not have */
};

struct proxy_ground {
	pid_t pid;
	int socket;                     /* the supervisor's end */
	int server;
	uint16_t port, proxy_port, dns_port, any_port;
	bool is_ending;
};

/* All until PROXY_READY. Options that are 0 have a generous value. */
void proxy_ground_start(struct proxy_ground *ground, const struct proxy_options *options);
/* The same, whatever the first message is. */
struct proxy_message proxy_ground_try(struct proxy_ground *ground, const struct proxy_options *options);
/* PROXY_END: what was counted until then is told without delay. proxy_ground_end() must follow. */
void proxy_ground_ask_end(struct proxy_ground *ground);
/* PROXY_END if that was not sent, the totals, and its status, which must be 0. Messages before the totals are skipped.
 */
struct proxy_message proxy_ground_end(struct proxy_ground *ground);
/* Without asking it. */
void proxy_ground_kill(struct proxy_ground *ground);

/* Those that tell that a connection is open are passed over: how long one is depends on the machine. */
struct proxy_message proxy_ground_next(struct proxy_ground *ground);
/* That one; there is none before it. */
struct proxy_message proxy_ground_open(struct proxy_ground *ground);
/* Is there a message now? */
bool proxy_ground_has_message(struct proxy_ground *ground);
/* The next message is a row of this kind; `status` 0: any; `why`: part of the text. */
struct proxy_message proxy_ground_row(struct proxy_ground *ground, enum proxy_way way, enum proxy_decision decision,
                                      const char *host, unsigned status, const char *why);
/* That of a command; "": the command has ended. */
void proxy_ground_give_token(struct proxy_ground *ground, uint32_t command, const char *token);
void proxy_ground_send(struct proxy_ground *ground, const struct proxy_message *message);

/* Sockets; "%" in a text is the server's port. */
int ground_dial(const char *address, uint16_t port);
int ground_client(const struct proxy_ground *ground);           /* to the proxy's port */
/* The same, and by the time it is accepted, it has said this: for tests in which a client has little time. */
int ground_client_saying(const struct proxy_ground *ground, const char *text);
int ground_accept(const struct proxy_ground *ground);           /* what was dialled for it */
void ground_say(const struct proxy_ground *ground, int fd, const char *text);
/* Reads exactly this. */
void ground_hear(const struct proxy_ground *ground, int fd, const char *text);
/* Reads until the end. Returns the length, or -1 where it was reset. */
ssize_t ground_hear_all(int fd, char *text, size_t size);
void ground_hear_end(int fd);
/* A client whose CONNECT to a.test was answered with 200, and the server's side of it. */
int ground_tunnel(const struct proxy_ground *ground, int *ret_server);

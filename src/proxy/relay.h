/* Relays bytes in both directions. Between two sockets they go by splice through a pipe, not through this process's
 * memory, where there is splicing and a pipe to be had (pipes.h). When one side has ended its output, the other is shut
 * down for writing and may continue to send. If one side does not read, the other is not read from. */
#pragma once
#include "proxy/connection.h"

/* Both sides are connected; what the client said already goes first, or is refused where it may not be moved any
 * more. */
void relay_begin(struct connection *connection);
void relay_step(struct connection *connection);
void relay_expire(struct connection *connection);
void relay_free(struct connection *connection);

/* How many bytes may still be read, for this command, of `wanted`. */
size_t relay_allowance(const struct proxy *proxy, size_t wanted);
/* Bytes that were read to find out what they are become traffic: counts them, or false where so many may not be
 * moved. */
bool relay_account(struct proxy *proxy, size_t length) must_check;
extern const char relay_no_allowance[];

/* Sends the head and what was cleared: 0 when all is gone, 1 where the other side does not take it yet, or -errno. */
int relay_flush(struct flow *flow, struct side *to) must_check;

/* Bytes both ways. Between two sockets they go by splice through a pipe, never through this process's memory. When one
 * side has no more to say, the other is told so and may go on talking. A side that does not read stops what is read
 * from the other. */
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

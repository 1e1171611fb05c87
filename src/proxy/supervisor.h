/* The socket to the supervisor. What is to be told waits in a queue; nothing of it is ever dropped. So that the queue
 * is bounded, nothing new is begun while the supervisor does not read: no connection is accepted, no further request is
 * read, and what may still be told is one row for each connection there is, and one that it is open.
 *
 * What a program can cause without end, by names that are not allowed or by connections that say nothing or
 * nothing that can be understood, is counted, and told as one message with the number a little later. */
#pragma once
#include <stdbool.h>

#include "proxy/proxy.h"

void supervisor_watch_fn(struct watch *watch, uint32_t events);
/* Copied. */
void supervisor_tell(struct proxy *proxy, const struct proxy_message *message);
/* False: there is no room; it will be told to those who come again. */
bool supervisor_count(struct proxy *proxy, const struct proxy_message *message);
/* Tells what was counted, if it is time or `all`. */
void supervisor_tell_counted(struct proxy *proxy, bool all);
/* Ends all connections, tells the rest and exits. */
void supervisor_end(struct proxy *proxy) __attribute__((noreturn));

/* Ends the program: what cannot be told must not happen. */
void proxy_give_up(void) __attribute__((noreturn));

/* The one loop: what happened, and whose time is over. */
#pragma once
#include "proxy/proxy.h"

struct connection;

int loop_open(struct proxy *proxy);
void loop_run(struct proxy *proxy) __attribute__((noreturn));
/* The command has ended, and the loop will. What waits by then is looked at before, so that it has its row; and what
 * was begun just now has a moment: a program need not have waited for it. */
void loop_end(struct proxy *proxy);

/* Something is to be done at that moment, if not earlier. */
void loop_expect(struct proxy *proxy, uint64_t deadline_us);
/* This connection had more to do than its share: it continues after the others. */
void loop_again(struct connection *connection);
/* All connections check again whether they can continue. */
void loop_wake_all(struct proxy *proxy);

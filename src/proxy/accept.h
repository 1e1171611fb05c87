/* Listeners: what comes in, and when nothing may. */
#pragma once
#include "proxy/proxy.h"

int accept_open(struct proxy *proxy);
/* Begins or stops to accept, depending on free slots. A client that is not accepted waits in the socket's queue. */
void accept_update(struct proxy *proxy);
/* For good. */
void accept_close(struct proxy *proxy);

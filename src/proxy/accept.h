/* Listeners: what comes in, and when nothing may. */
#pragma once
#include "proxy/proxy.h"

int accept_open(struct proxy *proxy);
/* Begins or stops to accept, as there is room. Who is not accepted waits in the socket's queue. */
void accept_update(struct proxy *proxy);

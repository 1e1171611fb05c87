/* What a client of the proxy's port sends first: HTTP or SOCKS, by the first byte, and the host it names. */
#pragma once
#include "proxy/connection.h"

/* Just accepted. */
void client_begin(struct connection *connection);
/* A response was delivered; the client may send another request. */
void client_again(struct connection *connection);
void client_step(struct connection *connection);
void client_expire(struct connection *connection);

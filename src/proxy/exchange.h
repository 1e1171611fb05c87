/* One HTTP request in the clear and its response. Both heads are parsed and written anew, both bodies are cut where
 * their framing says and not a byte later, so that what the server sees is the one request that was judged, and what
 * the client sees is the response to it. Each request is judged by itself and gets a connection to the server of its
 * own, which ends with the response: nothing that comes behind it is ever taken for the answer to another. The client's
 * connection is kept where HTTP allows it.
 *
 * No other protocol can be changed to: Upgrade is for the next hop only, and is not sent on. Clients of WebSocket use
 * CONNECT where there is a proxy. */
#pragma once
#include <stddef.h>

#include "base/cleanup.h"
#include "proxy/connection.h"

struct http_request;

/* The head was read, and is `length` bytes in connection->out.bytes; they are not needed any more afterwards. -1 where
 * memory is short. */
int exchange_prepare(struct connection *connection, const struct http_request *request, size_t length) must_check;
/* The server is connected. It is refused where the head may not be moved any more. */
void exchange_begin(struct connection *connection);
void exchange_step(struct connection *connection);
void exchange_expire(struct connection *connection);
void exchange_free(struct connection *connection);

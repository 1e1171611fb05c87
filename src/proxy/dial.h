/* From a host to a socket that is connected to it, if it may be. The host is judged by the rules, or by a human; then
 * it is resolved once, every address of it is judged, and one of those that were judged is dialled. */
#pragma once
#include "proxy/connection.h"

/* connection->host and its way are set. */
void dial_begin(struct connection *connection);
/* To its own loopback, at either address. */
void dial_published(struct connection *connection);
/* Waiting for an answer, of a human or of the resolver. */
void dial_wait_step(struct connection *connection);
void dial_step(struct connection *connection);
void dial_expire(struct connection *connection);
void dial_free(struct connection *connection);

/* The supervisor has answered. */
void dial_answered(struct proxy *proxy, const struct proxy_message *answer);

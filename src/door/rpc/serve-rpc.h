/* JSON-RPC in the daemon: what its files share. */
#pragma once
#include "door/rpc/rpc.h"
#include "door/daemon/serve.h"

void rpc_send(struct client *client, char *line,
              size_t length); /* frees the line; NULL: memory is short, and nothing is sent */
void rpc_refuse(struct client *client, const char *id, enum rpc_code code, const char *message,
                const struct cordon_error *err);
/* The same, but the result of a notification is not reported. */
void rpc_reject(struct client *client, const struct rpc_call *call, enum rpc_code code, const char *message,
                const struct cordon_error *err);

/* serve-rpc-watch.c: processes, and their events. */
enum { RPC_QUICK = 1, RPC_STREAMS = 2, RPC_KNOWN = 4, RPC_WAITS = 8 };
/* Of a method of the library's table; 0: there is none of this name. */
unsigned rpc_table_flags(struct server *server, const char *method);
/* After the answer to a call that begins or ends such a thing. */
void rpc_watch(struct client *client, const struct rpc_call *call, const struct cordon_value *result);
/* Does the process end with the connection that started it? */
bool watch_ends_with_a_client(const struct server *server, const char *id);

/* serve-rpc-subscribe.c: the other notices, each from the answer to a call on. */
void subscriptions_take(struct client *client, const struct rpc_call *call, const struct cordon_value *result);
void subscriptions_end(struct client *client);

/* serve-rpc-follow.c. Is the call, which was answered with this, one that a worker goes on with? In the loop. */
bool rpc_is_followed(struct client *client, const struct rpc_call *call, const struct cordon_value *result);
/* In a worker, until its client is gone or wants no more; `number` is the client's follow_number of then. */
void rpc_follow(struct client *client, const struct rpc_call *call, unsigned number);

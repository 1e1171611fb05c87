/* JSON-RPC in the daemon: what its two files share. */
#pragma once
#include "door/rpc/rpc.h"
#include "door/daemon/serve.h"

void rpc_send(struct client *client, char *line, size_t length);        /* frees the line; NULL: memory is short, and nothing is said */
void rpc_refuse(struct client *client, const char *id, enum rpc_code code, const char *message, const struct cordon_error *err);
/* The same, but that nobody is told of what became of a notification. */
void rpc_reject(struct client *client, const struct rpc_call *call, enum rpc_code code, const char *message,
                const struct cordon_error *err);

/* Each answers, or sees to it that there will be an answer. Borrows the call. */
void rpc_run(struct client *client, struct rpc_call *call);
void rpc_job_start(struct client *client, struct rpc_call *call);
void rpc_signal(struct client *client, struct rpc_call *call);
void rpc_resize(struct client *client, struct rpc_call *call);
void rpc_stdin(struct client *client, struct rpc_call *call);

/* `settings` of a call as a request. */
int rpc_settings(json_t *settings, struct cordon_request *request, struct cordon_error *err) must_check;

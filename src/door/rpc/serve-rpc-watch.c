/* Processes of a connection, and what it is told of them without asking: the notice process.event has `process`, its
 * id, and the event as cordon_process_next() gives it, after process.start and process.attach.
 *
 * While a client leaves much unread its processes' events are not taken, and they wait as at a full pipe. A client that
 * goes away ends the processes that it started, unless they are detached. What it has started counts as its own as long
 * as it runs. */
#include <stdio.h>
#include <string.h>

#include "door/rpc/serve-rpc.h"

#define LEAVE_GRACE_MS 1000

struct watch {
	struct watch *next, **previous; /* of the client's */
	struct client *client;
	struct cordon_process *process;
	struct event ready;
	bool is_started; /* by its client, as whose it counts */
	bool is_ours;    /* it ends with its client */
	bool is_silent;  /* nothing of it is told: it is here to be ended, or to have ended */
	bool is_stalled;
};

unsigned rpc_table_flags(struct server *server, const char *method)
{
	struct cordon_value *table;
	struct cordon_error err;
	size_t i;
	json_t *each;
	if (!server->methods && cordon_call(server->cordon, "rpc.discover", NULL, &table, &err) == 0) {
		auto_free char *text = cordon_value_json(table, "methods");
		server->methods = text ? json_loads(text, 0, NULL) : NULL;
		cordon_value_unref(table);
	}
	json_array_foreach(server->methods, i, each) if (!strcmp(json_string_value(json_object_get(each, "name")),
								 method)) return RPC_KNOWN |
		(json_is_true(json_object_get(each, "quick")) ? RPC_QUICK : 0u) |
		(json_is_true(json_object_get(each, "streams")) ? RPC_STREAMS : 0u) |
		(json_is_true(json_object_get(each, "waits")) ? RPC_WAITS : 0u);
	return 0;
}

/* ---- processes ------------------------------------------------------------------------------------------------- */

static void end_watch(struct watch *watch)
{
	struct server *server = watch->client->server;
	event_del(&watch->ready);
	*watch->previous = watch->next;
	if (watch->next)
		watch->next->previous = watch->previous;
	cordon_process_unref(watch->process);
	watch->client->process_count -= watch->is_started;
	server->watch_count--;
	free(watch);
}

static void send_event(struct client *client, const char *id, const struct cordon_value *event)
{
	struct json json;
	size_t length;
	auto_free char *text = cordon_value_json(event, "");
	rpc_notice_begin(&json, "process.event");
	json_object_begin(&json);
	json_key_string(&json, "process", id);
	json_key(&json, "event");
	json_verbatim(&json, text ? text : "null");
	json_object_end(&json);
	char *line = rpc_end(&json, &length);
	rpc_send(client, line, length);
}

static void on_ready(evutil_socket_t fd, short what, void *arg)
{
	struct watch *watch = arg;
	struct client *client = watch->client;
	struct cordon_value *event = NULL;
	struct cordon_error err;
	bool ended = false;
	(void)fd, (void)what;
	while (!ended && (watch->is_silent || client_unread(client) <= UNREAD_MAX) &&
	       cordon_process_next(watch->process, &event, &err) == 0 && event) {
		if (!watch->is_silent)
			send_event(client, cordon_process_id(watch->process), event);
		ended = !strcmp(cordon_value_text(event, "event", NULL), "ended");
		cordon_value_unref(event);
		event = NULL;
	}
	if (ended) {
		end_watch(watch);
		server_settle(client->server);
	} else if (!watch->is_silent && client_unread(client) > UNREAD_MAX) {
		watch->is_stalled = true;
		event_del(&watch->ready);
	}
}

void watches_go_on(struct client *client)
{
	for (struct watch *watch = client->watches, *next; watch; watch = next) {
		next = watch->next;
		if (watch->is_stalled) {
			watch->is_stalled = false;
			event_add(&watch->ready, NULL);
		}
	}
}

void watches_end(struct client *client)
{
	struct cordon_error err;
	while (client->watches) {
		if (client->watches->is_ours)
			(void)!cordon_process_cancel(client->watches->process, LEAVE_GRACE_MS, &err);
		end_watch(client->watches);
	}
	subscriptions_end(client);
}

bool watches_are_wanted(const struct client *client)
{
	const struct watch *watch = client->watches;
	while (watch && watch->is_silent)
		watch = watch->next;
	return watch;
}

static struct watch *find(const struct client *client, const char *id)
{
	struct watch *watch = client->watches;
	while (watch && strcmp(cordon_process_id(watch->process), id) != 0)
		watch = watch->next;
	return watch;
}

static void cancel(struct server *server, const char *id)
{
	struct cordon_process *process;
	struct cordon_error err;
	if (cordon_process_attach(server->cordon, id, 0, 0, &process, &err) < 0)
		return;
	(void)!cordon_process_cancel(process, LEAVE_GRACE_MS, &err);
	cordon_process_unref(process);
}

/* With the attributes of `how`. A silent one holds none of the output, which so never waits for a reader. False: there
 * is no memory or descriptor for it. */
static bool add_watch(struct client *client, const char *id, const json_t *params, const struct watch *how)
{
	struct server *server = client->server;
	struct watch *watch = calloc(1, sizeof(*watch));
	struct cordon_error err;
	uint64_t from[2] = { (uint64_t)json_integer_value(json_object_get(params, "stdout_from")),
			     (uint64_t)json_integer_value(json_object_get(params, "stderr_from")) };
	if (how->is_silent)
		from[0] = from[1] = UINT64_MAX;
	if (!watch || cordon_process_attach(server->cordon, id, from[0], from[1], &watch->process, &err) < 0) {
		free(watch);
		return false;
	}
	watch->client = client;
	watch->is_started = how->is_started;
	watch->is_ours = how->is_ours;
	watch->is_silent = how->is_silent;
	client->process_count += watch->is_started;
	watch->next = client->watches;
	watch->previous = &client->watches;
	if (watch->next)
		watch->next->previous = &watch->next;
	client->watches = watch;
	server->watch_count++;
	event_assign(&watch->ready, server->base, cordon_process_fd(watch->process), EV_READ | EV_PERSIST, on_ready,
		     watch);
	event_add(&watch->ready, NULL);
	return true;
}

/* ---- after a call ---------------------------------------------------------------------------------------------- */

/* One whose events cannot be told must not run unseen: nobody would end it. */
static void on_start(struct client *client, const struct rpc_call *call, const char *id)
{
	const struct watch how = { .is_started = true,
				   .is_ours = !json_is_true(json_object_get(call->params, "detached")),
				   .is_silent = json_is_false(json_object_get(call->params, "events")) };
	if (client->is_gone ? how.is_ours : !add_watch(client, id, call->params, &how))
		cancel(client->server, id);
}

/* Once more: from these places on, and it ends with its client as before. */
static void on_attach(struct client *client, const struct rpc_call *call, const char *id)
{
	struct watch *before = find(client, id), how = { .is_ours = false };
	if (before) {
		how.is_started = before->is_started;
		how.is_ours = before->is_ours;
		end_watch(before);
	}
	add_watch(client, id, call->params, &how);
}

/* Whoever says it, and whoever has started it. It still counts as its starter's. */
static void on_detach(struct client *client, const char *id)
{
	for (struct client *each = client->server->clients; each; each = each->next) {
		struct watch *watch = find(each, id);
		if (watch)
			watch->is_ours = false;
	}
	struct watch *own = find(client, id);
	if (!own)
		return;
	bool is_started = own->is_started;
	end_watch(own);
	if (is_started)
		add_watch(client, id, NULL, &(struct watch){ .is_started = true, .is_silent = true });
}

bool watch_ends_with_a_client(const struct server *server, const char *id)
{
	for (const struct client *each = server->clients; each; each = each->next) {
		const struct watch *watch = find(each, id);
		if (watch && watch->is_ours)
			return true;
	}
	return false;
}

void rpc_watch(struct client *client, const struct rpc_call *call, const struct cordon_value *result)
{
	const char *id = json_string_value(json_object_get(call->params, "id"));
	if (!strcmp(call->method, "process.start"))
		on_start(client, call, cordon_value_text(result, "id", NULL));
	else if (client->is_gone)
		return;
	else if (!strcmp(call->method, "process.attach"))
		on_attach(client, call, id);
	else if (!strcmp(call->method, "process.detach"))
		on_detach(client, id);
	else
		subscriptions_take(client, call, result);
}

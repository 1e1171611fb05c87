/* JSON-RPC 2.0, a line each way. The methods are the library's (rpc.discover): those that never wait are done here
 * and now, the others by workers. What only the daemon knows is added to their results. */
#include "door/rpc/serve-rpc.h"

#include <stdio.h>
#include <string.h>

#include "base/ulimit.h"

#define PENDING_MAX 64          /* calls and runs of one client */
#define PROCESSES_MAX 256       /* that end with one client */

/* A call of the table that a worker carries out. */
struct work {
	struct work *next, **previous;          /* of the client's */
	struct task task;
	struct post post;
	struct client *client;
	struct rpc_call call;
	struct cordon_value *result;            /* or NULL, then */
	struct cordon_error err;
	bool follows;                           /* it was answered, and goes on: rpc_follow() */
	unsigned number;
};

void rpc_send(struct client *client, char *line, size_t length)
{
	if (line)
		client_send(client, &(struct iovec){ line, length }, 1);
	free(line);
}

void rpc_refuse(struct client *client, const char *id, enum rpc_code code, const char *message,
                const struct cordon_error *err)
{
	size_t length;
	char *line = rpc_error(id, code, message, err, &length);
	rpc_send(client, line, length);
}

void rpc_reject(struct client *client, const struct rpc_call *call, enum rpc_code code, const char *message,
                const struct cordon_error *err)
{
	if (call->wants_answer)
		rpc_refuse(client, call->id, code, message, err);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

/* Which code of JSON-RPC an error has; `data` has the error itself. */
static enum rpc_code code_of(const struct cordon_error *err)
{
	if (strcmp(err->boundary, "call") != 0)
		return RPC_REFUSED;
	return err->class == CORDON_E_NOT_FOUND ? RPC_NO_METHOD : RPC_BAD_PARAMS;
}

static void add_limits(const struct server *server, json_t *result)
{
	json_t *limits = json_object_get(result, "limits");
	json_object_set_new(limits, "clients", json_integer(CLIENTS_MAX));
	json_object_set_new(limits, "processes", json_integer((json_int_t)server->runs_most));
	json_object_set_new(limits, "calls_of_a_connection", json_integer(PENDING_MAX));
	json_object_set_new(limits, "processes_of_a_connection", json_integer(PROCESSES_MAX));
	json_object_set_new(limits, "line", json_integer(RPC_LINE_MAX));
}

/* The library knows its processes; commands of `cordon run` are the daemon's own. */
static void add_counts(const struct server *server, json_t *result)
{
	json_int_t running = json_integer_value(json_object_get(result, "running"));
	json_object_set_new(result, "running", json_integer(running + (json_int_t)server->run_count));
	json_object_set_new(result, "clients", json_integer((json_int_t)server->client_count));
	json_object_set_new(result, "served", json_integer((json_int_t)server->served_count));
	json_object_set_new(result, "watched", json_integer((json_int_t)server->watch_count));
}

/* To the library all that are started by a method are detached. */
static void add_detached(const struct server *server, json_t *process)
{
	const char *id = json_string_value(json_object_get(process, "id"));
	json_object_set_new(process, "detached", json_boolean(!id || !watch_ends_with_a_client(server, id)));
}

static void add_detached_each(const struct server *server, json_t *result)
{
	size_t i;
	json_t *each;
	json_array_foreach(json_object_get(result, "processes"), i, each)
		add_detached(server, each);
}

static const struct {
	const char *method;
	void (*add)(const struct server *server, json_t *result);
} additions[] = { { "hello", add_limits }, { "process.attach", add_detached }, { "process.list", add_detached_each },
	          { "process.stat", add_detached }, { "status", add_counts } };

/* What only the daemon knows is added to what the library says. To be free()d. */
static char *text_of(const struct server *server, const char *method, const struct cordon_value *result)
{
	char *text = cordon_value_json(result, "");
	for (size_t i = 0; i < ARRAY_SIZE(additions); i++) {
		if (!text || strcmp(additions[i].method, method) != 0)
			continue;
		json_t *tree = json_loads(text, 0, NULL);
		additions[i].add(server, tree);
		free(text);
		text = json_dumps(tree, JSON_COMPACT);
		json_decref(tree);
	}
	return text;
}

/* In the loop: what a process tells from here on comes after the answer. */
static void answer(struct client *client, const struct rpc_call *call, const struct cordon_value *result,
                   const struct cordon_error *err)
{
	struct json json;
	size_t length;
	if (!result)
		return rpc_reject(client, call, code_of(err), err->reason, err);
	auto_free char *text = text_of(client->server, call->method, result);
	rpc_result_begin(&json, call->id);
	json_verbatim(&json, text ? text : "null");
	char *line = rpc_end(&json, &length);
	if (call->wants_answer)
		rpc_send(client, line, length);
	else
		free(line);
	rpc_watch(client, call, result);
	if (!strcmp(call->method, "stop") && !atomic_load(&client->server->is_ending))
		server_drain(client->server, (uint64_t)json_integer_value(json_object_get(call->params, "drain_ms")));
	/* It may have raised a sandbox, or made a session that ends by itself. */
	server_trim(client->server);
}

static void hand_on(struct client *client, struct rpc_call *call, bool waits, bool follows);

/* Takes the call. */
static void settle(struct client *client, struct rpc_call *call, const struct cordon_value *result,
                   const struct cordon_error *err)
{
	answer(client, call, result, err);
	if (result && rpc_is_followed(client, call, result))
		return hand_on(client, call, true, true);
	json_decref(call->whole);
}

static void leave(struct post *post)
{
	struct work *work = (struct work *)((char *)post - offsetof(struct work, post));
	struct client *client = work->client;
	*work->previous = work->next;
	if (work->next)
		work->next->previous = work->previous;
	size_t bytes = work->call.length;
	if (work->follows)
		json_decref(work->call.whole);
	else
		settle(client, &work->call, work->result, &work->err);
	cordon_value_unref(work->result);
	free(work);
	client->server->call_count--;
	client->server->call_bytes -= bytes;
	client_settle(client);
}

static bool starts_process(const char *method)
{
	return !strcmp(method, "process.start") || !strcmp(method, "job.start");
}

/* A list of settings, with those of the call after them. */
static int put_ulimits(json_t *settings, json_t *ulimits)
{
	json_t *given = json_object_get(settings, "ulimit");
	if (json_is_array(given))
		json_array_extend(ulimits, given);
	else if (given)
		json_array_append(ulimits, given);
	return json_object_set_new(settings, "ulimit", ulimits);
}

/* Where the daemon has less than its client, a command has what the client has. The limits on open files and on core
 * files are a command's own. */
static int add_ulimits(const struct client *client, json_t *params, struct cordon_error *err)
{
	struct rlimit theirs, ours;
	json_t *settings = json_object_get(params, "settings"), *ulimits = json_array();
	for (unsigned i = 0; i < ULIMIT_COUNT; i++) {
		if (i == RLIMIT_NOFILE || i == RLIMIT_CORE ||
		    prlimit(client->pid, (__rlimit_resource_t)i, NULL, &theirs) < 0 ||
		    prlimit(0, (__rlimit_resource_t)i, NULL, &ours) < 0 || theirs.rlim_cur == ours.rlim_cur)
			continue;
		unsigned long long soft = theirs.rlim_cur, hard = theirs.rlim_max;
		if (theirs.rlim_cur > ours.rlim_max) {
			json_decref(ulimits);
			fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, ulimit_name(i),
			     "the daemon's resource limit is below this client's, and cannot be raised");
			fail_boundary(err, "request");
			return fail_remedy(err, "start the daemon without that limit, or use cordon run");
		}
		if (hard > ours.rlim_max)
			hard = ours.rlim_max;
		json_array_append_new(ulimits, json_sprintf("%s=%llu:%llu", ulimit_name(i), soft, hard));
	}
	if (!json_array_size(ulimits)) {
		json_decref(ulimits);
		return 0;
	}
	if (!settings)
		json_object_set_new(params, "settings", settings = json_object());
	return put_ulimits(settings, ulimits) < 0 && json_is_object(settings) ? fail_oom(err) : 0;
}

static int carry_out(struct client *client, const struct rpc_call *call, struct cordon_value **ret_result,
                     struct cordon_error *err)
{
	if (starts_process(call->method) && add_ulimits(client, call->params, err) < 0)
		return -1;
	auto_free char *params = json_dumps(call->params, JSON_COMPACT);
	return params ? cordon_call(client->server->cordon, call->method, params, ret_result, err) : fail_oom(err);
}

static void work_on(struct task *task)
{
	struct work *work = (struct work *)((char *)task - offsetof(struct work, task));
	if (work->follows)
		rpc_follow(work->client, &work->call, work->number);
	else if (carry_out(work->client, &work->call, &work->result, &work->err) < 0)
		work->result = NULL;
	work->post.act = leave;
	server_post(work->client->server, &work->post);
}

/* Takes the call. */
static void hand_on(struct client *client, struct rpc_call *call, bool waits, bool follows)
{
	struct work *work = calloc(1, sizeof(*work));
	struct server *server = client->server;
	if (!work) {
		rpc_refuse(client, call->id, RPC_REFUSED, "memory is short", NULL);
		json_decref(call->whole);
		return;
	}
	work->task.act = work_on;
	work->client = client;
	work->call = *call;
	work->follows = follows;
	work->number = atomic_load(&client->follow_number);
	work->next = client->works;
	work->previous = &client->works;
	if (work->next)
		work->next->previous = &work->next;
	client->works = work;
	client->pending++;
	server->call_count++;
	server->call_bytes += call->length;
	/* A call that waits for a human must not delay the call with the human's answer. */
	pool_add(waits ? &server->waits : &server->calls, &work->task);
	server_press(server);
}

/* Is there a call with this id that is not answered yet? */
static bool is_under_way(const struct client *client, const char *id)
{
	for (const struct work *work = client->works; work; work = work->next)
		if (!work->follows && work->call.wants_answer && !strcmp(work->call.id, id))
			return true;
	return false;
}

/* Why no process is started for this client now; or NULL. */
static const char *no_start(const struct client *client)
{
	const struct server *server = client->server;
	if (server->is_draining || atomic_load(&server->is_ending))
		return "the daemon ends";
	if (client->process_count >= PROCESSES_MAX)
		return "too many processes of this connection run";
	if (server_processes(server) + server->run_count >= server->runs_most)
		return "too many processes run; try later";
	return NULL;
}

/* A method of the table: at once and in order where it never waits, else by a worker. Takes the call. */
static void call_table(struct client *client, struct rpc_call *call)
{
	struct cordon_value *result = NULL;
	struct cordon_error err;
	struct server *server = client->server;
	unsigned flags = rpc_table_flags(server, call->method);
	const char *why = starts_process(call->method) ? no_start(client) : NULL;
	if (why) {
		rpc_reject(client, call, RPC_TOO_MANY, why, NULL);
		json_decref(call->whole);
		return;
	}
	if (!(flags & RPC_QUICK) && flags)
		return hand_on(client, call, flags & RPC_WAITS, false);
	if (carry_out(client, call, &result, &err) < 0)
		result = NULL;
	settle(client, call, result, &err);
	cordon_value_unref(result);
}

/* A client that has less than the daemon must not get more from it. It can use the library itself, with what it has. */
static bool is_refused(struct client *client)
{
	struct cordon_error err;
	const char *what;
	if (client->is_compared)
		return false;
	client->is_compared = true;
	if (peer_compare(&client->server->self, client->fd, client->pid, &what) != PEER_LESS)
		return false;
	fail(&err, CORDON_E_CAPABILITY_DENIED, 0, what, "this client is confined in a way that the daemon is not: %s",
	     what);
	fail_remedy(&err, "use cordon run or the library, which run a command with what this process has");
	rpc_refuse(client, "null", RPC_REFUSED, err.reason, &err);
	return true;
}

/* May it come without an id? An unknown one is no method that would be missed. */
static bool may_notify(struct server *server, const char *method)
{
	return !strcmp(method, "process.write") || !strcmp(method, "process.signal") ||
	       !rpc_table_flags(server, method);
}

static void take_line(struct client *client, const char *line, size_t length)
{
	struct rpc_call call;
	const struct server *server = client->server;
	const char *why = NULL;
	enum rpc_code code = rpc_parse(line, length, &call, &why);
	if (code == RPC_OK && !call.wants_answer && !may_notify(client->server, call.method)) {
		call.wants_answer = true;
		code = RPC_NO_REQUEST;
		why = "this method needs an id";
	} else if (code == RPC_OK && call.wants_answer && is_under_way(client, call.id)) {
		code = RPC_NO_REQUEST;
		why = "a call with this id is under way";
	} else if (code == RPC_OK && client->pending > PENDING_MAX) {
		code = RPC_TOO_MANY;
		why = "too many calls of this connection are under way";
	} else if (code == RPC_OK && server->call_bytes && server->call_bytes + length > CALL_INPUT_MAX) {
		code = RPC_TOO_MANY;
		why = "too much input of calls is under way; try later";
	}
	if (code == RPC_OK)
		return call_table(client, &call);
	rpc_reject(client, &call, code, why, NULL);
	json_decref(call.whole);
}

/* Passes over what there is of the line, and what comes of it. */
static void skip(struct client *client)
{
	bool too_long = client->in_to - client->in_from > RPC_LINE_MAX;
	const char *why =
		too_long ? "the line is too long" : "too much input of all clients; send the line again later";
	if (!client->skips)
		rpc_refuse(client, "null", too_long ? RPC_NO_REQUEST : RPC_TOO_MANY, why, NULL);
	client->skips = true;
	client->in_from = client->in_to;
	client->in_looked = 0;
}

static void take_one(struct client *client, char *line, size_t length)
{
	if (client->skips)
		client->skips = false;
	else if (length > RPC_LINE_MAX)
		rpc_refuse(client, "null", RPC_NO_REQUEST, "the line is too long", NULL);
	else if (length)
		take_line(client, line, length);
}

static bool rpc_take(struct client *client)
{
	char *end;
	/* Before anything of it is parsed. */
	if (is_refused(client))
		return false;
	while ((end = memchr(client->in + client->in_from + client->in_looked, '\n',
	                     client->in_to - client->in_from - client->in_looked))) {
		char *line = client->in + client->in_from;
		client->in_from = (size_t)(end + 1 - client->in);
		client->in_looked = 0;
		if (end > line && end[-1] == '\r')
			end--;
		take_one(client, line, (size_t)(end - line));
	}
	client->in_looked = client->in_to - client->in_from;
	if (client->skips || client->in_looked > RPC_LINE_MAX)
		skip(client);
	return true;
}

const struct client_kind client_rpc = { rpc_take, skip, RPC_LINE_MAX, true };

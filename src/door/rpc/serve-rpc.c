/* JSON-RPC 2.0, a line each way: one row per method. What may wait is done by a worker; what concerns a run at once. */
#include "door/rpc/serve-rpc.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "door/cli/job-text.h"

#define PENDING_MAX 64  /* calls and runs of one client */
#define PARAMS_MAX 6    /* of one method */

struct method;

/* A call that a worker carries out. */
struct work {
	struct task task;
	struct post post;
	struct client *client;
	const struct method *method;
	struct rpc_call call;
};

struct method {
	const char *name;
	void (*now)(struct client *client, struct rpc_call *call);
	/* Or, by a worker; *ret_json is the value of the answer, NULL: true. */
	int (*later)(struct cordon *cordon, json_t *params, char **ret_json, struct cordon_error *err);
	struct rpc_param params[PARAMS_MAX + 1];
};

void rpc_send(struct client *client, char *line, size_t length)
{
	if (line)
		client_send(client, &(struct iovec){ line, length }, 1);
	free(line);
}

void rpc_refuse(struct client *client, const char *id, enum rpc_code code, const char *message, const struct cordon_error *err)
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

/* ---- sessions and approvals ----------------------------------------------------------------------------------------- */

/* NULL: it was not given. */
static const char *text_of(json_t *params, const char *name)
{
	return json_string_value(json_object_get(params, name));
}

static int session_new(struct cordon *cordon, json_t *params, char **ret_json, struct cordon_error *err)
{
	struct cordon_request *settings = NULL;
	if (cordon_request_new(&settings, err) < 0)
		return -1;
	int result = rpc_settings(json_object_get(params, "settings"), settings, err);
	if (result == 0)
		result = cordon_session_new(cordon, text_of(params, "id"), settings, ret_json, err);
	cordon_request_unref(settings);
	return result;
}

static int session_list(struct cordon *cordon, json_t *params, char **ret_json, struct cordon_error *err)
{
	(void)params;
	return cordon_session_list(cordon, ret_json, err);
}

static int session_show(struct cordon *cordon, json_t *params, char **ret_json, struct cordon_error *err)
{
	return cordon_session_show(cordon, text_of(params, "id"), ret_json, err);
}

static int session_pause(struct cordon *cordon, json_t *params, char **ret_json, struct cordon_error *err)
{
	(void)ret_json;
	return cordon_session_pause(cordon, text_of(params, "id"), text_of(params, "why"), err);
}

static int session_resume(struct cordon *cordon, json_t *params, char **ret_json, struct cordon_error *err)
{
	(void)ret_json;
	return cordon_session_resume(cordon, text_of(params, "id"), err);
}

static int session_end(struct cordon *cordon, json_t *params, char **ret_json, struct cordon_error *err)
{
	(void)ret_json;
	return cordon_session_end(cordon, text_of(params, "id"), json_is_true(json_object_get(params, "remove_workspace")), err);
}

static int session_remove(struct cordon *cordon, json_t *params, char **ret_json, struct cordon_error *err)
{
	(void)ret_json;
	return cordon_session_remove(cordon, text_of(params, "id"), err);
}

static int approvals_list(struct cordon *cordon, json_t *params, char **ret_json, struct cordon_error *err)
{
	(void)params;
	return cordon_approvals_list(cordon, ret_json, err);
}

static int approvals_answer(struct cordon *cordon, json_t *params, char **ret_json, struct cordon_error *err)
{
	static const char *const answers[CORDON_ANSWER_MAX] = {
		[CORDON_APPROVED_ONCE] = "once", [CORDON_APPROVED_SESSION] = "session", [CORDON_DENIED] = "deny",
	};
	const char *said = text_of(params, "answer");
	(void)ret_json;
	for (int answer = 0; answer < CORDON_ANSWER_MAX; answer++)
		if (answers[answer] && !strcmp(answers[answer], said))
			return cordon_approvals_answer(cordon, text_of(params, "card"), text_of(params, "hash"),
			                               (enum cordon_answer)answer, text_of(params, "reason"), err);
	return fail(err, CORDON_E_INVALID_REQUEST, 0, said, "an answer is once, session or deny");
}

/* ---- jobs ------------------------------------------------------------------------------------------------------------ */

static int job_list(struct cordon *cordon, json_t *params, char **ret_json, struct cordon_error *err)
{
	return cordon_job_list(cordon, text_of(params, "session"), ret_json, err);
}

static uint64_t place_of(json_t *params, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(params, name));
}

static int job_poll(struct cordon *cordon, json_t *params, char **ret_json, struct cordon_error *err)
{
	return cordon_job_poll(cordon, text_of(params, "id"), place_of(params, "stdout_from"), place_of(params, "stderr_from"),
	                       ret_json, err);
}

static int job_kill(struct cordon *cordon, json_t *params, char **ret_json, struct cordon_error *err)
{
	json_t *given = json_object_get(params, "signal");
	char number[24];
	int signal = 0;
	(void)ret_json;
	snprintf(number, sizeof(number), "%lld", (long long)json_integer_value(given));
	if (given && job_signal(json_is_integer(given) ? number : json_string_value(given), &signal, err) < 0)
		return -1;
	return cordon_job_kill(cordon, text_of(params, "id"), signal, err);
}

/* ---- the daemon itself ---------------------------------------------------------------------------------------------- */

static void status(struct client *client, struct rpc_call *call)
{
	const struct server *server = client->server;
	struct json json;
	size_t length;
	rpc_result_begin(&json, call->id);
	json_object_begin(&json);
	json_key_string(&json, "version", CORDON_VERSION);
	json_key_int(&json, "pid", getpid());
	json_key_uint(&json, "clients", server->client_count);
	json_key_uint(&json, "running", server->run_count);
	json_key_uint(&json, "served", server->served_count);
	json_object_end(&json);
	char *line = rpc_end(&json, &length);
	rpc_send(client, line, length);
}

static void stop(struct client *client, struct rpc_call *call)
{
	struct json json;
	size_t length;
	rpc_result_begin(&json, call->id);
	json_bool(&json, true);
	char *line = rpc_end(&json, &length);
	rpc_send(client, line, length);
	if (!atomic_load(&client->server->is_ending))
		server_end(client->server);
}

#define MUST(given, what) { .name = (given), .type = RPC_##what, .is_needed = true }
#define MAY(given, what) { .name = (given), .type = RPC_##what }
#define END { .name = NULL }

static const struct rpc_param input_members[] = { MAY("text", TEXT), MAY("base64", TEXT), MAY("stream", FLAG), END };

/* Of what runs a command. */
#define COMMAND MUST("argv", TEXTS), MAY("settings", OBJECT), MAY("environment", TEXTS), MAY("ask", FLAG)

static const struct method methods[] = {
	{ "approvals.answer", NULL, approvals_answer, { MUST("card", TEXT), MUST("answer", TEXT), MAY("hash", TEXT),
	                                                MAY("reason", TEXT) } },
	{ "approvals.list", NULL, approvals_list, { END } },
	{ "job.kill", NULL, job_kill, { MUST("id", TEXT), MAY("signal", TEXT_OR_NUMBER) } },
	{ "job.list", NULL, job_list, { MAY("session", TEXT) } },
	{ "job.poll", NULL, job_poll, { MUST("id", TEXT), MAY("stdout_from", COUNT), MAY("stderr_from", COUNT) } },
	{ "job.start", rpc_job_start, NULL, { COMMAND } },
	{ "resize", rpc_resize, NULL, { MUST("run", TEXT_OR_NUMBER), MUST("rows", COUNT), MUST("columns", COUNT) } },
	{ "run", rpc_run, NULL, { COMMAND, MAY("output", FLAG), { .name = "stdin", .type = RPC_OBJECT, .members = input_members } } },
	{ "session.end", NULL, session_end, { MUST("id", TEXT), MAY("remove_workspace", FLAG) } },
	{ "session.list", NULL, session_list, { END } },
	{ "session.new", NULL, session_new, { MUST("id", TEXT), MAY("settings", OBJECT) } },
	{ "session.pause", NULL, session_pause, { MUST("id", TEXT), MAY("why", TEXT) } },
	{ "session.remove", NULL, session_remove, { MUST("id", TEXT) } },
	{ "session.resume", NULL, session_resume, { MUST("id", TEXT) } },
	{ "session.show", NULL, session_show, { MUST("id", TEXT) } },
	{ "signal", rpc_signal, NULL, { MUST("run", TEXT_OR_NUMBER), MUST("signal", TEXT) } },
	{ "status", status, NULL, { END } },
	{ "stdin", rpc_stdin, NULL, { MUST("run", TEXT_OR_NUMBER), MAY("text", TEXT), MAY("base64", TEXT), MAY("end", FLAG) } },
	{ "stop", stop, NULL, { END } },
};

/* ---- calls ---------------------------------------------------------------------------------------------------------- */

static void leave(struct post *post)
{
	struct work *work = (struct work *)((char *)post - offsetof(struct work, post));
	struct client *client = work->client;
	json_decref(work->call.whole);
	free(work);
	client->server->call_count--;
	client_settle(client);
}

static void carry_out(struct task *task)
{
	struct work *work = (struct work *)((char *)task - offsetof(struct work, task));
	struct client *client = work->client;
	struct cordon_error err;
	auto_free char *text = NULL;
	if (work->method->later(client->server->cordon, work->call.params, &text, &err) < 0) {
		rpc_refuse(client, work->call.id, RPC_REFUSED, err.reason, &err);
	} else {
		struct json json;
		size_t length;
		rpc_result_begin(&json, work->call.id);
		json_verbatim(&json, text ? text : "true");
		char *line = rpc_end(&json, &length);
		rpc_send(client, line, length);
	}
	work->post.act = leave;
	server_post(client->server, &work->post);
}

/* Takes the call. */
static void hand_on(struct client *client, const struct method *method, struct rpc_call *call)
{
	struct work *work = calloc(1, sizeof(*work));
	struct server *server = client->server;
	if (!work) {
		rpc_refuse(client, call->id, RPC_REFUSED, "memory is short", NULL);
		json_decref(call->whole);
		return;
	}
	work->client = client;
	work->method = method;
	work->call = *call;
	work->task.act = carry_out;
	client->pending++;
	server->call_count++;
	pool_add(&server->calls, &work->task);
	server_press(server);
}

static const struct method *find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
		if (!strcmp(methods[i].name, name))
			return &methods[i];
	return NULL;
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
	fail(&err, CORDON_E_CAPABILITY_DENIED, 0, what, "this client is confined in a way that the daemon is not: %s", what);
	fail_remedy(&err, "use cordon run or the library, which run a command with what this process has");
	rpc_refuse(client, "null", RPC_REFUSED, err.reason, &err);
	return true;
}

static void take_line(struct client *client, const char *line, size_t length)
{
	struct rpc_call call;
	struct cordon_error err;
	const char *why = NULL;
	enum rpc_code code = rpc_parse(line, length, &call, &why);
	const struct method *method = code == RPC_OK ? find(call.method) : NULL;
	if (code == RPC_OK && !method) {
		code = RPC_NO_METHOD;
		why = "there is no such method";
	} else if (code == RPC_OK && !call.wants_answer && method->now != rpc_signal && method->now != rpc_stdin) {
		/* Nothing that can be notified of. */
		call.wants_answer = true;
		code = RPC_NO_REQUEST;
		why = "this method needs an id";
	} else if (code == RPC_OK && client->pending > PENDING_MAX) {
		code = RPC_TOO_MANY;
		why = "too many calls of this connection are under way";
	}
	if (code != RPC_OK)
		rpc_reject(client, &call, code, why, NULL);
	else if (rpc_check(call.params, method->params, &err) < 0)
		rpc_reject(client, &call, RPC_BAD_PARAMS, err.reason, &err);
	else if (method->later)
		return hand_on(client, method, &call);
	else
		method->now(client, &call);
	json_decref(call.whole);
}

static bool rpc_take(struct client *client)
{
	char *end;
	/* Before anything of it is parsed. */
	if (is_refused(client))
		return false;
	while ((end = memchr(client->in + client->in_from, '\n', client->in_to - client->in_from))) {
		char *line = client->in + client->in_from;
		client->in_from = (size_t)(end + 1 - client->in);
		if (end > line && end[-1] == '\r')
			end--;
		if (end > line)
			take_line(client, line, (size_t)(end - line));
	}
	if (client->in_to - client->in_from <= RPC_LINE_MAX)
		return true;
	rpc_refuse(client, "null", RPC_NO_REQUEST, "the line is too long", NULL);
	return false;
}

const struct client_kind client_rpc = { rpc_take, RPC_LINE_MAX, true };

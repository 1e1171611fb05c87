/* `run` and what goes with it, by JSON-RPC. A run goes by the id of the call that began it. */
#include "door/rpc/serve-rpc.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INPUT_MAX (4u << 20)
#define ENVIRONMENT_MAX 8192

struct called {
	struct served run;
	char id[RPC_ID_MAX];
	bool wants_output;
};

/* The run that goes by this id, as long as its client has not heard of its end. */
static struct called *find(const struct client *client, const char *id)
{
	for (struct served *run = client->runs; run; run = run->next)
		if (!atomic_load(&run->is_told) && !strcmp(((struct called *)run)->id, id))
			return (struct called *)run;
	return NULL;
}

static void answer_true(struct client *client, const struct rpc_call *call)
{
	struct json json;
	size_t length;
	rpc_result_begin(&json, call->id);
	json_bool(&json, true);
	char *line = rpc_end(&json, &length);
	if (call->wants_answer)
		rpc_send(client, line, length);
	else
		free(line);
}

/* ---- the request ---------------------------------------------------------------------------------------------------- */

static int bad(struct cordon_error *err, const char *subject, const char *what)
{
	fail(err, CORDON_E_INVALID_REQUEST, 0, subject, "%s", what);
	return fail_boundary(err, "request");
}

static int set_one(struct cordon_request *request, const char *key, json_t *value, struct cordon_error *err)
{
	if (json_is_boolean(value))
		return cordon_request_set(request, key, json_is_true(value) ? "true" : "false", err);
	if (!json_is_string(value))
		return bad(err, key, "a setting is text, true or false, or a list of texts");
	/* Of the other paths the library demands it; this one it would look for in the daemon's own directory. */
	if (!strcmp(key, "manifest") && *json_string_value(value) != '/')
		return bad(err, json_string_value(value), "manifest: the path must be absolute");
	return cordon_request_set(request, key, json_string_value(value), err);
}

int rpc_settings(json_t *settings, struct cordon_request *request, struct cordon_error *err)
{
	const char *key;
	json_t *value, *each;
	size_t i;
	json_object_foreach(settings, key, value) {
		if (!json_is_array(value)) {
			if (set_one(request, key, value, err) < 0)
				return -1;
			continue;
		}
		json_array_foreach(value, i, each)
			if (set_one(request, key, each, err) < 0)
				return -1;
	}
	return 0;
}

static int take_texts(json_t *list, const char ***ret_texts, struct cordon_error *err)
{
	size_t i;
	json_t *each;
	const char **texts = calloc(json_array_size(list) + 1, sizeof(*texts));
	if (!texts)
		return fail_oom(err);
	json_array_foreach(list, i, each)
		texts[i] = json_string_value(each);
	*ret_texts = texts;
	return 0;
}

/* A call that gives none gets nothing of the daemon's but HOME, by which the user's toolchains are found. */
static int take_home(struct cordon_request *request, struct cordon_error *err)
{
	const char *home = getenv("HOME");
	auto_free char *variable = NULL;
	if (home && asprintf(&variable, "HOME=%s", home) < 0)
		return fail_oom(err);
	return cordon_request_environment(request, (const char *const[]){ variable, NULL }, err);
}

static int take_words(json_t *params, struct cordon_request *request, struct cordon_error *err)
{
	json_t *argv = json_object_get(params, "argv"), *environment = json_object_get(params, "environment");
	auto_free const char **words = NULL, **variables = NULL;
	if (json_array_size(environment) > ENVIRONMENT_MAX)
		return bad(err, "environment", "there are too many variables");
	if (take_texts(argv, &words, err) < 0 || cordon_request_command(request, words, err) < 0)
		return -1;
	if (!environment)
		return take_home(request, err);
	return take_texts(environment, &variables, err) < 0 ? -1 : cordon_request_environment(request, variables, err);
}

static bool has_bytes(json_t *params)
{
	return json_object_get(params, "text") || json_object_get(params, "base64");
}

/* `stdin`: text or base64, and that is all of it; or `stream`: more comes by the method stdin. */
static int set_input(json_t *params, struct called *called, struct cordon_error *err)
{
	json_t *input = json_object_get(params, "stdin");
	auto_free char *data = NULL;
	size_t length = 0;
	bool streams = json_is_true(json_object_get(input, "stream"));
	if (!input)
		return 0;
	if (has_bytes(input) ? !rpc_take_bytes(input, &data, &length) : !streams)
		return bad(err, "stdin", "must have text or base64, or stream");
	called->run.takes_input = called->run.is_long = true;
	called->run.input.waiting = evbuffer_new();
	if (!called->run.input.waiting || (length && evbuffer_add(called->run.input.waiting, data, length) < 0))
		return fail_oom(err);
	called->run.input.has_ended = !streams;
	return 0;
}

/* ---- its life ------------------------------------------------------------------------------------------------------- */

static void refuse_for_now(struct client *client, const char *id)
{
	rpc_refuse(client, id, RPC_TOO_MANY, "too many commands are under way, or the daemon ends", NULL);
}

static bool called_admit(struct served *run)
{
	if (!atomic_load(&run->server->is_ending))
		return true;
	refuse_for_now(run->client, ((struct called *)run)->id);
	return false;
}

static void notice_begin(const struct served *run, struct json *json, const char *method)
{
	rpc_notice_begin(json, method);
	json_object_begin(json);
	json_key(json, "run");
	json_verbatim(json, ((const struct called *)run)->id);
}

static void notice_end(struct served *run, struct json *json)
{
	size_t length;
	json_object_end(json);
	char *line = rpc_end(json, &length);
	rpc_send(run->client, line, length);
}

static void called_started(struct served *run)
{
	struct json json;
	notice_begin(run, &json, "started");
	notice_end(run, &json);
}

static void called_output(struct served *run, enum cordon_stream stream, const char *data, size_t length)
{
	struct json json;
	if (!((struct called *)run)->wants_output)
		return;
	notice_begin(run, &json, "output");
	json_key_string(&json, "stream", stream == CORDON_STDERR ? "stderr" : "stdout");
	rpc_bytes(&json, data, length);
	notice_end(run, &json);
}

/* It is answered like any other card, by approvals.answer or by somebody else. */
static bool called_ask(struct served *run, const struct cordon_card *card)
{
	struct json json;
	notice_begin(run, &json, "approval");
	json_key(&json, "card");
	json_verbatim(&json, card->json);
	notice_end(run, &json);
	return false;
}

static void called_conclude(struct served *run)
{
	struct called *called = (struct called *)run;
	auto_free char *text = run->failed ? NULL : run->is_job ? strdup(run->job) : cordon_result_json(run->result);
	struct json json;
	size_t length;
	if (!text) {
		if (!run->failed)
			fail_oom(&run->err);
		return rpc_refuse(run->client, called->id, RPC_REFUSED, run->err.reason, &run->err);
	}
	rpc_result_begin(&json, called->id);
	json_verbatim(&json, text);
	char *line = rpc_end(&json, &length);
	rpc_send(run->client, line, length);
}

static void called_settled(struct served *run)
{
	(void)run;
}

static void called_room(struct served *run, size_t length)
{
	(void)run, (void)length;
}

static void called_free(struct served *run)
{
	free(run);
}

static const struct served_kind called_kind = {
	called_admit, called_started, called_output, called_conclude, called_ask, called_settled, called_room, called_free,
};

static void begin(struct client *client, struct rpc_call *call, bool is_job)
{
	struct server *server = client->server;
	struct cordon_error err;
	if (find(client, call->id))
		return rpc_refuse(client, call->id, RPC_NO_REQUEST, "a run with this id is under way", NULL);
	if (server->run_count >= server->runs_most || atomic_load(&server->is_ending))
		return refuse_for_now(client, call->id);
	struct called *called = calloc(1, sizeof(*called));
	struct cordon_request *request = NULL;
	bool ready = called ? cordon_request_new(&request, &err) == 0 : (fail_oom(&err), false);
	ready = ready && rpc_settings(json_object_get(call->params, "settings"), request, &err) == 0 &&
	        take_words(call->params, request, &err) == 0 && (is_job || set_input(call->params, called, &err) == 0);
	if (!ready) {
		cordon_request_unref(request);
		if (called && called->run.input.waiting)
			evbuffer_free(called->run.input.waiting);
		free(called);
		return rpc_refuse(client, call->id, RPC_REFUSED, err.reason, &err);
	}
	memcpy(called->id, call->id, sizeof(called->id));
	called->wants_output = json_is_true(json_object_get(call->params, "output"));
	called->run.can_ask = json_is_true(json_object_get(call->params, "ask"));
	called->run.is_job = is_job;
	called->run.request = request;
	run_begin(&called->run, client, &called_kind);
}

void rpc_run(struct client *client, struct rpc_call *call)
{
	begin(client, call, false);
}

/* Starting one may wait for a human as a run may, and what waits so must not keep the answer from being heard. */
void rpc_job_start(struct client *client, struct rpc_call *call)
{
	begin(client, call, true);
}

/* ---- to a run ------------------------------------------------------------------------------------------------------- */

static struct called *find_or_refuse(struct client *client, struct rpc_call *call)
{
	json_t *which = json_object_get(call->params, "run");
	auto_free char *id = json_dumps(which, JSON_ENCODE_ANY | JSON_COMPACT);
	struct called *called = id ? find(client, id) : NULL;
	if (!called)
		rpc_reject(client, call, RPC_BAD_PARAMS, "no such run of this connection is under way", NULL);
	return called;
}

void rpc_signal(struct client *client, struct rpc_call *call)
{
	static const struct {
		const char *name;
		int number;
	} signals[] = {
		{ "INT", SIGINT }, { "TERM", SIGTERM }, { "HUP", SIGHUP }, { "QUIT", SIGQUIT }, { "KILL", SIGKILL },
		{ "USR1", SIGUSR1 }, { "USR2", SIGUSR2 }, { "PIPE", SIGPIPE }, { "STOP", SIGSTOP }, { "CONT", SIGCONT },
	};
	struct called *called = find_or_refuse(client, call);
	const char *name = json_string_value(json_object_get(call->params, "signal"));
	if (!called)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		if (!strcmp(signals[i].name, name)) {
			run_signal(&called->run, signals[i].number);
			return answer_true(client, call);
		}
	rpc_reject(client, call, RPC_BAD_PARAMS, "signal must be a name such as TERM", NULL);
}

void rpc_resize(struct client *client, struct rpc_call *call)
{
	struct called *called = find_or_refuse(client, call);
	json_int_t rows = json_integer_value(json_object_get(call->params, "rows"));
	json_int_t columns = json_integer_value(json_object_get(call->params, "columns"));
	if (!called)
		return;
	if (rows < 1 || rows > 9999 || columns < 1 || columns > 9999 || !called->run.in_loop)
		return rpc_refuse(client, call->id, RPC_BAD_PARAMS, "rows and columns must be numbers, of a run that has started", NULL);
	cordon_execution_resize(called->run.execution, (unsigned short)rows, (unsigned short)columns);
	answer_true(client, call);
}

/* Who is not told cannot send it again, and what comes after it must not take its place. */
static void cut_input(struct served *run)
{
	atomic_store(&run->input.error, ENOBUFS);
	stdin_end(run);
}

void rpc_stdin(struct client *client, struct rpc_call *call)
{
	struct called *called = find_or_refuse(client, call);
	bool ends = json_is_true(json_object_get(call->params, "end"));
	auto_free char *data = NULL;
	size_t length = 0;
	if (!called)
		return;
	struct served *run = &called->run;
	if (!run->takes_input || run->input.has_ended ||
	    (has_bytes(call->params) ? !rpc_take_bytes(call->params, &data, &length) : !ends))
		return rpc_reject(client, call, RPC_BAD_PARAMS, "text, base64 or end must be given, for a run whose stdin is a stream",
		                  NULL);
	if (length + evbuffer_get_length(run->input.waiting) > INPUT_MAX) {
		if (!call->wants_answer)
			cut_input(run);
		return rpc_reject(client, call, RPC_TOO_MANY, "the command has not read what it was sent before; try later", NULL);
	}
	if (length)
		stdin_put(run, data, length);
	if (ends)
		stdin_end(run);
	answer_true(client, call);
}

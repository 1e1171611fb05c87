/* Tasks: see mcp-task.h. A call that became one goes on in its thread, and the client asks for its state; its result is
 * then on disk. Its id cannot be guessed and counts in its session alone. A question has a key of its own, so an answer
 * counts once and for nothing else. */
#include "door/mcp/mcp-task.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utc.h"
#include "door/mcp/mcp-run.h"

#define NOT_KEPT "what carried the task out has ended, and kept no result"

bool mcp_task_is_declared(json_t *params)
{
	json_t *capabilities =
		json_object_get(json_object_get(params, "_meta"), "io.modelcontextprotocol/clientCapabilities");
	return json_is_object(json_object_get(json_object_get(capabilities, "extensions"), MCP_TASKS_EXTENSION));
}

/* NULL: there is none yet. With the lock. */
static const char *session_of(const struct mcp_server *server)
{
	return server->options->session ? server->options->session : server->has_session ? server->session : NULL;
}

/* ---- what a task is told as ------------------------------------------------------------------------------------ */

/* With the lock. */
static const char *status_of(const struct mcp_call *call)
{
	return call->cancelled ? "cancelled" : call->asked == MCP_ASKED ? "input_required" : "working";
}

static void put_task(struct json *json, const struct mcp_call *call, const char *result_type, const char *status)
{
	bool for_job = call->tool->run == mcp_job_wait;
	json_key_string(json, "resultType", result_type);
	json_key_string(json, "taskId", call->task);
	json_key_string(json, "status", status);
	if (!strcmp(status, "working"))
		json_key_string(json, "statusMessage", for_job ? "the job runs" : "cordon's own approver is asked");
	json_key_string(json, "createdAt", call->created);
	json_key_string(json, "lastUpdatedAt", call->updated);
	json_key_uint(json, "ttlMs", MCP_TASK_TTL_MS);
	json_key_uint(json, "pollIntervalMs", MCP_TASK_POLL_MS);
}

/* With the lock: what tasks/get returns of a call that has not ended; to be free()d, or NULL. */
static char *describe(const struct mcp_call *call)
{
	struct json json;
	json_init(&json);
	json_object_begin(&json);
	put_task(&json, call, "complete", status_of(call));
	if (call->asked == MCP_ASKED && !call->cancelled) {
		json_key(&json, "inputRequests");
		json_verbatim(&json, call->inputs);
	}
	json_object_end(&json);
	return json_take(&json);
}

static void put_error(struct json *json, const char *message)
{
	json_key(json, "error");
	json_object_begin(json);
	json_key_int(json, "code", -32603);
	json_key_string(json, "message", message);
	json_object_end(json);
}

static char *describe_end(const struct mcp_call *call, bool cancelled, const char *result)
{
	struct json json;
	json_init(&json);
	json_object_begin(&json);
	put_task(&json, call, "complete", cancelled ? "cancelled" : result ? "completed" : "failed");
	if (!cancelled && result) {
		json_key(&json, "result");
		json_verbatim(&json, result);
	} else if (!cancelled) {
		put_error(&json, "memory is short");
	}
	json_object_end(&json);
	return json_take(&json);
}

/* ---- from call to task ----------------------------------------------------------------------------------------- */

static void touch(struct mcp_call *call)
{
	utc_now(call->updated);
}

char *mcp_task_make(struct mcp_call *call, size_t *ret_length)
{
	unsigned char id[(MCP_TASK_ID - 1) / 2];
	const char *session = session_of(call->server);
	struct json json;
	if (!session || !call->tasks || !*call->id || call->cancelled)
		return NULL;
	randombytes_buf(id, sizeof(id));
	sodium_bin2hex(call->task, sizeof(call->task), id, sizeof(id));
	touch(call);
	memcpy(call->created, call->updated, sizeof(call->created));
	auto_free char *text = describe(call);
	rpc_result_begin(&json, call->id);
	json_object_begin(&json);
	put_task(&json, call, "task", status_of(call));
	json_object_end(&json);
	char *line = rpc_end(&json, ret_length);
	if (!text || !line || !mcp_task_write(call->server, session, call->task, text)) {
		call->task[0] = '\0';
		free(line);
		return NULL;
	}
	/* Its request is answered. */
	call->id[0] = call->last_id[0] = '\0';
	return line;
}

/* Is a human asked on behalf of the server's session? A call may be slow for other reasons, on a machine that is busy.
 */
static bool is_asked(struct mcp_server *server)
{
	auto_free char *text = NULL;
	bool found = false;
	size_t index;
	json_t *each;
	pthread_mutex_lock(&server->lock);
	const char *session = session_of(server);
	pthread_mutex_unlock(&server->lock);
	if (!session || cordon_approvals_list(server->cordon, &text, NULL) < 0)
		return false;
	json_t *list = json_loads(text, 0, NULL);
	json_array_foreach(json_object_get(list, "approvals"), index, each) {
		const char *of = json_string_value(json_object_get(each, "session"));
		found = found || (of && !strcmp(of, session));
	}
	json_decref(list);
	return found;
}

/* With the lock: a call that has become slow before anything of it ran, or NULL and in how many ms there may be one. */
static struct mcp_call *find_slow(struct mcp_server *server, int *ret_wait_ms)
{
	uint64_t now = mcp_now_ms();
	int wait_ms = -1;
	for (struct mcp_call *call = server->calls; call; call = call->next) {
		if (!call->tasks || call->runs || call->cancelled || !*call->id || call->tool->run == mcp_job_wait)
			continue;
		uint64_t due = call->began_ms + MCP_TASK_AFTER_MS;
		if (due <= now)
			return call;
		int left = (int)(due - now);
		wait_ms = wait_ms < 0 || left < wait_ms ? left : wait_ms;
	}
	*ret_wait_ms = wait_ms;
	return NULL;
}

int mcp_task_make_slow(struct mcp_server *server)
{
	int wait_ms = -1;
	pthread_mutex_lock(&server->lock);
	bool is_slow = find_slow(server, &wait_ms);
	pthread_mutex_unlock(&server->lock);
	if (is_slow && !is_asked(server))
		return MCP_TASK_AFTER_MS;
	while (is_slow) {
		size_t length = 0;
		char *line = NULL;
		pthread_mutex_lock(&server->lock);
		struct mcp_call *call = find_slow(server, &wait_ms);
		if (call)
			line = mcp_task_make(call, &length);
		/* One that can be none is answered when it ends. */
		if (call && !line)
			call->tasks = false;
		pthread_mutex_unlock(&server->lock);
		if (line)
			mcp_send(server, line, length);
		is_slow = call;
	}
	return wait_ms;
}

void mcp_task_ask(struct mcp_call *call, char *inputs)
{
	free(call->inputs);
	call->inputs = inputs;
	touch(call);
}

void mcp_task_settle(struct mcp_call *call, const char *result)
{
	struct mcp_server *server = call->server;
	pthread_mutex_lock(&server->lock);
	bool cancelled = call->cancelled;
	const char *session = session_of(server);
	touch(call);
	pthread_mutex_unlock(&server->lock);
	auto_free char *text = describe_end(call, cancelled, result);
	/* What is too large to be kept, or cannot be, is found as a task without a result. */
	if (text && session && !mcp_task_write(server, session, call->task, text))
		return;
}

/* ---- the client's requests ------------------------------------------------------------------------------------- */

static struct mcp_call *find(struct mcp_server *server, const char *task)
{
	struct mcp_call *call = server->calls;
	while (call && (!*call->task || strcmp(call->task, task) != 0))
		call = call->next;
	return call;
}

static void send_value(struct mcp_server *server, const char *id, const char *value)
{
	struct json json;
	size_t length = 0;
	rpc_result_begin(&json, id);
	json_verbatim(&json, value);
	char *line = rpc_end(&json, &length);
	mcp_send(server, line, length);
}

static void refuse_unknown(struct mcp_server *server, const char *id)
{
	mcp_refuse(server, id, RPC_BAD_PARAMS, "there is no such task, or it has expired");
}

/* A task whose record says that it goes on, and which no call carries out, was left by a server that was killed. Takes
 * `text`, and returns it, another, or NULL: it is no record of this task. */
static char *end_abandoned(char *text, const char *task)
{
	json_t *record = json_loads(text, 0, NULL);
	const char *status = json_string_value(json_object_get(record, "status"));
	const char *of = json_string_value(json_object_get(record, "taskId"));
	char *told = text;
	if (!status || !of || strcmp(of, task) != 0) {
		told = NULL;
	} else if (!strcmp(status, "working") || !strcmp(status, "input_required")) {
		json_object_set_new(record, "status", json_string("failed"));
		json_object_set_new(record, "error", json_pack("{s:i,s:s}", "code", -32603, "message", NOT_KEPT));
		json_object_del(record, "statusMessage");
		json_object_del(record, "inputRequests");
		told = json_dumps(record, JSON_COMPACT);
	}
	json_decref(record);
	if (told != text)
		free(text);
	return told;
}

static void get(struct mcp_server *server, const char *id, const char *task, const char *session)
{
	pthread_mutex_lock(&server->lock);
	const struct mcp_call *call = find(server, task);
	auto_free char *text = call ? describe(call) : NULL;
	pthread_mutex_unlock(&server->lock);
	if (!call)
		text = mcp_task_read(server, session, task);
	if (!call && text)
		text = end_abandoned(text, task);
	if (text)
		send_value(server, id, text);
	else
		refuse_unknown(server, id);
}

/* An answer to another question, or to one that is answered, counts for nothing. */
static void take_answer(struct mcp_call *call, json_t *answers)
{
	char key[40];
	snprintf(key, sizeof(key), MCP_QUESTION "%llu", (unsigned long long)call->question);
	json_t *answer = json_object_get(answers, key);
	if (call->asked == MCP_ASKED && json_is_object(answer)) {
		mcp_elicit_take(call, answer);
		touch(call);
	}
}

void mcp_task_request(struct mcp_server *server, const struct rpc_call *request)
{
	static const char *const methods[] = { "tasks/get", "tasks/update", "tasks/cancel" };
	enum { GET, UPDATE, CANCEL, NONE } method = GET;
	const char *task = json_string_value(json_object_get(request->params, "taskId"));
	while (method < NONE && strcmp(methods[method], request->method) != 0)
		method++;
	if (method == NONE)
		return mcp_refuse(server, request->id, RPC_NO_METHOD, "there is no such method");
	if (!mcp_task_is_declared(request->params))
		return mcp_refuse_with(server, request->id, -32021, "the client has not declared the extension",
		                       "{\"requiredCapabilities\":{\"extensions\":{\"" MCP_TASKS_EXTENSION "\":{}}}}");
	pthread_mutex_lock(&server->lock);
	const char *session = session_of(server);
	struct mcp_call *call = task ? find(server, task) : NULL;
	if (call && method == UPDATE)
		take_answer(call, json_object_get(request->params, "inputResponses"));
	if (call && method == CANCEL)
		mcp_call_stop(call);
	pthread_mutex_unlock(&server->lock);
	if (!task || !session)
		return refuse_unknown(server, request->id);
	if (method == GET)
		return get(server, request->id, task, session);
	auto_free char *ended = call ? NULL : mcp_task_read(server, session, task);
	if (call || ended)
		send_value(server, request->id, "{\"resultType\":\"complete\"}");
	else
		refuse_unknown(server, request->id);
}

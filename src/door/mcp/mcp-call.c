/* Tool calls: each in a thread, from its start to the answer. */
#include <errno.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "door/mcp/mcp-task.h"
#include "door/rpc/client-ref.h"

#define STACK_SIZE (512u << 10)

static void call_free(struct mcp_call *call)
{
	json_decref(call->whole);
	free(call->progress_token);
	free(call->client_ref);
	free(call->words);
	free(call->parked);
	free(call->inputs);
	close_fd(&call->cancel_fd);
	close_fd(&call->answer_fd);
	free(call);
}

/* With the lock. */
static void unlink_call(struct mcp_call *call)
{
	struct mcp_call **link = &call->server->calls;
	while (*link != call)
		link = &(*link)->next;
	*link = call->next;
	call->server->call_count--;
	pthread_cond_broadcast(&call->server->call_ended);
}

static void wake(int fd)
{
	if (eventfd_write(fd, 1) < 0)
		return; /* it is readable already */
}

void mcp_call_stop(struct mcp_call *call)
{
	call->cancelled = true;
	wake(call->cancel_fd);
}

/* ---- the answer ------------------------------------------------------------------------------------------------ */

static void put_text(struct json *json, const char *text)
{
	json_object_begin(json);
	json_key_string(json, "type", "text");
	json_key_string(json, "text", text);
	json_object_end(json);
}

/* The value of `result`: the object for programs, and the same as text for models. To be free()d, or NULL. */
static char *result_text(const struct mcp_call *call, const char *structured, bool failed)
{
	struct json json;
	json_init(&json);
	json_object_begin(&json);
	if (call->modern)
		json_key_string(&json, "resultType", "complete");
	json_key(&json, "content");
	json_array_begin(&json);
	put_text(&json, structured);
	if (call->words)
		put_text(&json, call->words);
	json_array_end(&json);
	/* An error has a shape of its own, which the tool's schema does not describe. */
	if (!failed || strncmp(structured, "{\"error\"", 8)) {
		json_key(&json, "structuredContent");
		json_verbatim(&json, structured);
	}
	json_key_bool(&json, "isError", failed);
	json_object_end(&json);
	return json_take(&json);
}

static void send_result(struct mcp_server *server, const char *id, const char *result)
{
	struct json json;
	size_t length = 0;
	rpc_result_begin(&json, id);
	json_verbatim(&json, result);
	char *line = rpc_end(&json, &length);
	mcp_send(server, line, length);
}

/* Takes `result`: it is sent, or kept for the request that repeats the call, which is taken as long as an answer would
 * be. The server may be gone once the call is not in its list. */
static void finish(struct mcp_call *call, char *result)
{
	struct mcp_server *server = call->server;
	char id[RPC_ID_MAX];
	pthread_mutex_lock(&server->lock);
	/* From here on it cannot become one: its request has one answer. */
	bool is_task = *call->task;
	call->tasks = false;
	memcpy(id, call->id, sizeof(id));
	bool wanted = !call->cancelled && !atomic_load(&server->broken);
	bool park = wanted && !is_task && !*id && result && mcp_now_ms() < call->expires_ms;
	if (park)
		call->parked = result;
	pthread_mutex_unlock(&server->lock);
	if (park)
		return;
	if (is_task)
		mcp_task_settle(call, result);
	else if (wanted && *id && result)
		send_result(server, id, result);
	else if (wanted && *id)
		mcp_refuse(server, id, -32603, "memory is short");
	free(result);
	pthread_mutex_lock(&server->lock);
	unlink_call(call);
	pthread_mutex_unlock(&server->lock);
	call_free(call);
}

static void *run_call(void *arg)
{
	struct mcp_call *call = arg;
	struct cordon_error err;
	auto_free char *structured = NULL;
	bool failed = false;
	if (call->tool->run(call, &structured, &failed, &err) < 0) {
		failed = true;
		structured = mcp_error_json(call, &err);
	}
	finish(call, structured ? result_text(call, structured, failed) : NULL);
	return NULL;
}

/* ---- the start ------------------------------------------------------------------------------------------------- */

static void hash_call(const char *tool, json_t *arguments, unsigned char ret_digest[32])
{
	auto_free char *text = arguments ? json_dumps(arguments, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
	crypto_generichash_state state;
	crypto_generichash_init(&state, NULL, 0, 32);
	crypto_generichash_update(&state, (const unsigned char *)tool, strlen(tool) + 1);
	if (text)
		crypto_generichash_update(&state, (const unsigned char *)text, strlen(text));
	crypto_generichash_final(&state, ret_digest, 32);
}

static bool start_thread(struct mcp_call *call)
{
	pthread_attr_t attributes;
	pthread_t thread;
	if (pthread_attr_init(&attributes) != 0)
		return false;
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, STACK_SIZE);
	bool started = pthread_create(&thread, &attributes, run_call, call) == 0;
	pthread_attr_destroy(&attributes);
	return started;
}

static void take_meta(struct mcp_call *call, json_t *params)
{
	json_t *meta = json_object_get(params, "_meta"), *token = json_object_get(meta, "progressToken");
	json_t *capabilities = json_object_get(meta, "io.modelcontextprotocol/clientCapabilities");
	/* Of Claude Code, of Codex, and of traces as W3C has them. */
	static const char *const ids[] = { "claudecode/toolUseId", "callId", "x-codex-turn-metadata", "traceparent",
		                           "tracestate", NULL };
	call->client_ref = client_ref_make(meta, ids);
	if (json_is_string(token) || json_is_integer(token))
		call->progress_token = json_dumps(token, JSON_ENCODE_ANY | JSON_COMPACT);
	call->tasks = call->modern && mcp_task_is_declared(params);
	call->elicits = call->modern ? json_is_object(json_object_get(capabilities, "elicitation")) :
	                               call->server->legacy_elicits;
}

/* With the lock held: results that were never fetched. */
static void drop_expired(struct mcp_server *server)
{
	for (struct mcp_call **link = &server->calls, *call; (call = *link);) {
		if (!call->parked || mcp_now_ms() < call->expires_ms) {
			link = &call->next;
			continue;
		}
		*link = call->next;
		server->call_count--;
		call_free(call);
	}
}

/* NULL: why not is in *ret_why. */
static struct mcp_call *call_new(struct mcp_server *server, const char *id, json_t *params, bool modern,
                                 const char **ret_why)
{
	const char *name = json_string_value(json_object_get(params, "name"));
	json_t *arguments = json_object_get(params, "arguments");
	const struct mcp_tool *tool = name ? mcp_tool_find(name) : NULL;
	*ret_why = tool ? "the arguments must be an object" : "there is no such tool";
	if (!tool || (arguments && !json_is_object(arguments)))
		return NULL;
	struct mcp_call *call = calloc(1, sizeof(*call));
	*ret_why = "memory or descriptors are short";
	if (!call)
		return NULL;
	*call = (struct mcp_call){ .server = server, .tool = tool, .arguments = arguments, .modern = modern,
	                            .began_ms = mcp_now_ms() };
	call->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	call->answer_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	memcpy(call->id, id, strlen(id) + 1);
	memcpy(call->last_id, id, strlen(id) + 1);
	hash_call(name, arguments, call->digest);
	take_meta(call, params);
	if (call->cancel_fd >= 0 && call->answer_fd >= 0)
		return call;
	call_free(call);
	return NULL;
}

void mcp_call_start(struct mcp_server *server, const char *id, json_t *message, bool modern)
{
	const char *why;
	struct mcp_call *call = call_new(server, id, json_object_get(message, "params"), modern, &why);
	if (!call) {
		mcp_refuse(server, id, -32602, why);
		json_decref(message);
		return;
	}
	call->whole = message;
	pthread_mutex_lock(&server->lock);
	drop_expired(server);
	bool room = server->call_count < MCP_CALLS_MAX;
	if (room) {
		call->serial = ++server->serial;
		call->next = server->calls;
		server->calls = call;
		server->call_count++;
	}
	bool started = room && start_thread(call);
	if (room && !started)
		unlink_call(call);
	pthread_mutex_unlock(&server->lock);
	if (started)
		return;
	mcp_refuse(server, id, -32603, room ? "no thread can be made" : "too many calls are under way");
	call_free(call);
}

/* With the lock: the call has a request to answer again, and an answer if it waits for one. */
static void attach(struct mcp_call *call, const char *id, json_t *answer)
{
	memcpy(call->id, id, strlen(id) + 1);
	memcpy(call->last_id, id, strlen(id) + 1);
	if (call->asked == MCP_ASKED)
		mcp_elicit_take(call, answer);
}

bool mcp_call_resume(struct mcp_server *server, const char *id, json_t *message)
{
	json_t *params = json_object_get(message, "params");
	const char *state = json_string_value(json_object_get(params, "requestState"));
	const char *name = json_string_value(json_object_get(params, "name"));
	unsigned char digest[32];
	if (!state)
		return false;
	hash_call(name ? name : "", json_object_get(params, "arguments"), digest);
	uint64_t serial = mcp_state_read(server, state, digest);
	auto_free char *parked = NULL;
	bool found = false;
	pthread_mutex_lock(&server->lock);
	struct mcp_call *call = server->calls;
	/* The question is open, or was answered elsewhere: then the call goes on, or has ended and its result waits. */
	while (call && (call->question != serial || *call->id || call->cancelled))
		call = call->next;
	if (serial && call) {
		found = true;
		json_t *answer = json_object_get(json_object_get(params, "inputResponses"), "approval");
		parked = call->parked;
		call->parked = NULL;
		if (parked) {
			unlink_call(call);
			call_free(call);
		} else {
			attach(call, id, answer);
		}
	}
	pthread_mutex_unlock(&server->lock);
	if (!found)
		mcp_refuse(server, id, -32602,
		           "requestState is not valid: it was changed, used before, or has expired");
	else if (parked)
		send_result(server, id, parked);
	json_decref(message);
	return true;
}

void mcp_call_cancel(struct mcp_server *server, const char *id)
{
	pthread_mutex_lock(&server->lock);
	for (struct mcp_call *call = server->calls; call; call = call->next)
		if (!strcmp(call->last_id, id) && !call->parked)
			mcp_call_stop(call);
	pthread_mutex_unlock(&server->lock);
}

void mcp_call_end_all(struct mcp_server *server)
{
	atomic_store(&server->broken, true);
	pthread_mutex_lock(&server->lock);
	for (struct mcp_call **link = &server->calls, *call; (call = *link);) {
		if (call->parked) {
			*link = call->next;
			server->call_count--;
			call_free(call);
			continue;
		}
		mcp_call_stop(call);
		link = &call->next;
	}
	while (server->call_count)
		pthread_cond_wait(&server->call_ended, &server->lock);
	pthread_mutex_unlock(&server->lock);
}

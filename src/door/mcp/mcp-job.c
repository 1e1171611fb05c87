/* The tools for background jobs. A job is named by its id, which counts only in the server's session. */
#include "door/mcp/mcp-run.h"
#include "door/mcp/mcp-task.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"

#define WAIT_MS 60000
#define LOOK_AGAIN_MS 500       /* whether the call was cancelled */

static const struct rpc_param job_params[] = {
	{ "command", RPC_TEXT, true, NULL }, { "cwd", RPC_TEXT, false, NULL }, { "timeout_ms", RPC_COUNT, false, NULL },
	{ "env", RPC_TEXTS, false, NULL }, { NULL, RPC_TEXT, false, NULL },
};
static const struct rpc_param poll_params[] = {
	{ "id", RPC_TEXT, true, NULL },
	{ "stdout_from", RPC_COUNT, false, NULL },
	{ "stderr_from", RPC_COUNT, false, NULL },
	{ NULL, RPC_TEXT, false, NULL },
};
static const struct rpc_param wait_params[] = {
	{ "id", RPC_TEXT, true, NULL }, { "timeout_ms", RPC_COUNT, false, NULL }, { NULL, RPC_TEXT, false, NULL },
};
static const struct rpc_param kill_params[] = {
	{ "id", RPC_TEXT, true, NULL }, { "signal", RPC_COUNT, false, NULL }, { NULL, RPC_TEXT, false, NULL },
};
static const struct rpc_param no_params[] = { { NULL, RPC_TEXT, false, NULL } };

static uint64_t count_of(const struct mcp_call *call, const char *name, uint64_t otherwise)
{
	json_t *given = json_object_get(call->arguments, name);
	return given ? (uint64_t)json_integer_value(given) : otherwise;
}

int mcp_job_start(struct mcp_call *call, char **ret_json, bool *ret_failed, struct cordon_error *err)
{
	struct cordon_request *request;
	(void)ret_failed;
	if (mcp_command_request(call, job_params, &request, err) < 0)
		return -1;
	int status = cordon_job_start(call->server->cordon, request, ret_json, err);
	cordon_request_unref(request);
	return status;
}

int mcp_job_list(struct mcp_call *call, char **ret_json, bool *ret_failed, struct cordon_error *err)
{
	const char *session;
	(void)ret_failed;
	if (mcp_check(call, no_params, err) < 0 || mcp_session(call->server, &session, err) < 0)
		return -1;
	return cordon_job_list(call->server->cordon, session, ret_json, err);
}

/* A job of another session is none. */
static int check_job(struct mcp_call *call, const struct rpc_param *params, struct cordon_error *err)
{
	const char *session, *id;
	auto_free char *text = NULL;
	if (mcp_check(call, params, err) < 0 || mcp_session(call->server, &session, err) < 0 ||
	    cordon_job_list(call->server->cordon, session, &text, err) < 0)
		return -1;
	json_t *list = json_loads(text, 0, NULL), *each;
	size_t index;
	bool found = false;
	id = mcp_text(call, "id");
	json_array_foreach(json_object_get(list, "jobs"), index, each) {
		const char *known = json_string_value(json_object_get(each, "id"));
		found = found || (known && !strcmp(known, id));
	}
	json_decref(list);
	return found ? 0 : fail(err, CORDON_E_INVALID_REQUEST, 0, id, "this session has no such job");
}

int mcp_job_poll(struct mcp_call *call, char **ret_json, bool *ret_failed, struct cordon_error *err)
{
	(void)ret_failed;
	if (check_job(call, poll_params, err) < 0)
		return -1;
	return cordon_job_poll(call->server->cordon, mcp_text(call, "id"), count_of(call, "stdout_from", 0),
	                       count_of(call, "stderr_from", 0), ret_json, err);
}

/* Unless it is one by now, or its client knows none. */
static void make_task(struct mcp_call *call)
{
	size_t length = 0;
	pthread_mutex_lock(&call->server->lock);
	char *line = mcp_task_make(call, &length);
	call->tasks = call->tasks && *call->task;
	pthread_mutex_unlock(&call->server->lock);
	if (line)
		mcp_send(call->server, line, length);
}

int mcp_job_wait(struct mcp_call *call, char **ret_json, bool *ret_failed, struct cordon_error *err)
{
	(void)ret_failed;
	if (check_job(call, wait_params, err) < 0)
		return -1;
	uint64_t until = mcp_now_ms() + count_of(call, "timeout_ms", WAIT_MS);
	for (;;) {
		if (mcp_now_ms() - call->began_ms >= MCP_TASK_AFTER_MS)
			make_task(call);
		auto_free char *text = NULL;
		uint64_t now = mcp_now_ms(), left = now < until ? until - now : 0;
		if (cordon_job_wait(call->server->cordon, mcp_text(call, "id"), left < 500 ? (int64_t)left : 500, &text,
		                    err) < 0)
			return -1;
		if (!strstr(text, "\"state\":\"running\"") || left == 0 || mcp_is_cancelled(call)) {
			*ret_json = text;
			text = NULL;
			return 0;
		}
	}
}

int mcp_job_kill(struct mcp_call *call, char **ret_json, bool *ret_failed, struct cordon_error *err)
{
	(void)ret_failed;
	uint64_t signal = count_of(call, "signal", 0);
	if (check_job(call, kill_params, err) < 0)
		return -1;
	if (signal > 64)
		return fail(err, CORDON_E_INVALID_REQUEST, 0, "signal", "signals have the numbers 1 to 64");
	if (cordon_job_kill(call->server->cordon, mcp_text(call, "id"), (int)signal, err) < 0)
		return -1;
	*ret_json = strdup(signal ? "{\"ended\":false}" : "{\"ended\":true}");
	return *ret_json ? 0 : fail_oom(err);
}

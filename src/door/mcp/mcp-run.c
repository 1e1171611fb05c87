/* The tools that run commands. Each makes a request of the server's session and hands it to the library. */
#include "door/mcp/mcp-run.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"

#define SHELL "/bin/bash"
#define WAIT_MS 60000
#define PROGRESS_MS 100
#define PROGRESS_SIZE 4096

/* ---- arguments ------------------------------------------------------------------------------------------------------- */

/* What a tool takes; lists end with one that has no name. */
static const struct rpc_param command_params[] = {
	{ "command", RPC_TEXT, true, NULL }, { "cwd", RPC_TEXT, false, NULL }, { "timeout_ms", RPC_COUNT, false, NULL },
	{ "env", RPC_TEXTS, false, NULL }, { "stdin", RPC_TEXT, false, NULL }, { NULL, RPC_TEXT, false, NULL },
};
static const struct rpc_param exec_params[] = {
	{ "argv", RPC_TEXTS, true, NULL }, { "cwd", RPC_TEXT, false, NULL }, { "timeout_ms", RPC_COUNT, false, NULL },
	{ "env", RPC_TEXTS, false, NULL }, { "stdin", RPC_TEXT, false, NULL }, { NULL, RPC_TEXT, false, NULL },
};
static const struct rpc_param job_params[] = {
	{ "command", RPC_TEXT, true, NULL }, { "cwd", RPC_TEXT, false, NULL }, { "timeout_ms", RPC_COUNT, false, NULL },
	{ "env", RPC_TEXTS, false, NULL }, { NULL, RPC_TEXT, false, NULL },
};
static const struct rpc_param poll_params[] = {
	{ "id", RPC_TEXT, true, NULL }, { "stdout_from", RPC_COUNT, false, NULL }, { "stderr_from", RPC_COUNT, false, NULL },
	{ NULL, RPC_TEXT, false, NULL },
};
static const struct rpc_param wait_params[] = {
	{ "id", RPC_TEXT, true, NULL }, { "timeout_ms", RPC_COUNT, false, NULL }, { NULL, RPC_TEXT, false, NULL },
};
static const struct rpc_param kill_params[] = {
	{ "id", RPC_TEXT, true, NULL }, { "signal", RPC_COUNT, false, NULL }, { NULL, RPC_TEXT, false, NULL },
};
static const struct rpc_param no_params[] = { { NULL, RPC_TEXT, false, NULL } };
static const struct rpc_param capability_params[] = {
	{ "fs_read", RPC_TEXTS, false, NULL }, { "fs_write", RPC_TEXTS, false, NULL }, { "hosts", RPC_TEXTS, false, NULL },
	{ NULL, RPC_TEXT, false, NULL },
};
static const struct rpc_param preflight_params[] = {
	{ "command", RPC_TEXT, true, NULL }, { "cwd", RPC_TEXT, false, NULL }, { "fs_read", RPC_TEXTS, false, NULL },
	{ "fs_write", RPC_TEXTS, false, NULL }, { "hosts", RPC_TEXTS, false, NULL }, { NULL, RPC_TEXT, false, NULL },
};

int mcp_check(struct mcp_call *call, const struct rpc_param *params, struct cordon_error *err)
{
	if (call->arguments)
		return rpc_check(call->arguments, params, err);
	json_t *none = json_object();
	int result = none ? rpc_check(none, params, err) : fail_oom(err);
	json_decref(none);
	return result;
}

static const char *text_of(const struct mcp_call *call, const char *name)
{
	return json_string_value(json_object_get(call->arguments, name));
}

static uint64_t count_of(const struct mcp_call *call, const char *name, uint64_t otherwise)
{
	json_t *given = json_object_get(call->arguments, name);
	return given ? (uint64_t)json_integer_value(given) : otherwise;
}

/* ---- requests -------------------------------------------------------------------------------------------------------- */

/* Arguments of the tool that are settings of a request, under other names. */
static const struct {
	const char *argument, *setting;
} settings[] = { { "env", "env" }, { "fs_read", "read" }, { "fs_write", "write" }, { "hosts", "net" } };

static int set_lists(struct mcp_call *call, struct cordon_request *request, struct cordon_error *err)
{
	size_t index;
	json_t *each;
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++)
		json_array_foreach(json_object_get(call->arguments, settings[i].argument), index, each)
			if (cordon_request_set(request, settings[i].setting, json_string_value(each), err) < 0)
				return -1;
	return 0;
}

static int set_command(struct mcp_call *call, struct cordon_request *request, struct cordon_error *err)
{
	json_t *list = json_object_get(call->arguments, "argv"), *each;
	const char *line = text_of(call, "command");
	const char *shell[] = { SHELL, "-c", line ? line : "true", NULL };
	if (!list)
		return cordon_request_command(request, shell, err);
	auto_free const char **argv = calloc(json_array_size(list) + 1, sizeof(*argv));
	size_t index;
	if (!argv)
		return fail_oom(err);
	json_array_foreach(list, index, each)
		argv[index] = json_string_value(each);
	return cordon_request_command(request, argv, err);
}

/* What every request of a call has, with a command or without. */
static int fill(struct mcp_call *call, struct cordon_request *request, struct cordon_error *err)
{
	const char *session, *cwd = text_of(call, "cwd");
	char time[32];
	json_t *timeout = json_object_get(call->arguments, "timeout_ms");
	if (mcp_session(call->server, &session, err) < 0 || cordon_request_set(request, "session", session, err) < 0)
		return -1;
	snprintf(time, sizeof(time), "%llums", (unsigned long long)json_integer_value(timeout));
	if ((cwd && cordon_request_set(request, "cwd", cwd, err) < 0) ||
	    (timeout && call->tool->run != mcp_job_wait && cordon_request_set(request, "timeout", time, err) < 0))
		return -1;
	/* Without an approver of ours, the configuration says whether cordon approvals can be waited for. */
	bool asks = call->elicits && !call->server->options->own_approver;
	cordon_request_approver(request, asks ? mcp_elicit : NULL, call, call->cancel_fd, 0);
	return 0;
}

int mcp_request(struct mcp_call *call, struct cordon_request **ret_request, struct cordon_error *err)
{
	struct cordon_request *request;
	if (cordon_request_new(&request, err) < 0)
		return -1;
	if (fill(call, request, err) < 0) {
		cordon_request_unref(request);
		return -1;
	}
	*ret_request = request;
	return 0;
}

static int request_new(struct mcp_call *call, const struct rpc_param *params, struct cordon_request **ret_request,
                       struct cordon_error *err)
{
	struct cordon_request *request;
	if (mcp_check(call, params, err) < 0 || mcp_request(call, &request, err) < 0)
		return -1;
	if (set_lists(call, request, err) < 0 || set_command(call, request, err) < 0) {
		cordon_request_unref(request);
		return -1;
	}
	*ret_request = request;
	return 0;
}

/* A file in memory with what the command reads; -1 with errno 0: there is none. */
static int open_stdin(const struct mcp_call *call, struct cordon_error *err, int *ret_fd)
{
	json_t *given = json_object_get(call->arguments, "stdin");
	*ret_fd = -1;
	if (!given)
		return 0;
	auto_close int fd = memfd_create("cordon-mcp-stdin", MFD_CLOEXEC);
	size_t length = json_string_length(given);
	if (fd < 0 || write(fd, json_string_value(given), length) != (ssize_t)length || lseek(fd, 0, SEEK_SET) < 0)
		return fail(err, CORDON_E_INTERNAL, errno, "stdin", "cannot keep the command's input");
	*ret_fd = take_fd(&fd);
	return 0;
}

/* ---- progress -------------------------------------------------------------------------------------------------------- */

struct progress {
	struct mcp_call *call;
	uint64_t bytes, sent_ms;
	size_t length;
	char text[PROGRESS_SIZE];       /* the newest output that was not sent yet */
};

static void send_progress(struct progress *progress)
{
	struct mcp_call *call = progress->call;
	struct json json;
	size_t length = 0;
	rpc_notice_begin(&json, "notifications/progress");
	json_object_begin(&json);
	json_key(&json, "progressToken");
	json_verbatim(&json, call->progress_token);
	json_key_uint(&json, "progress", progress->bytes);
	json_key(&json, "message");
	json_bytes(&json, progress->text, progress->length);
	json_object_end(&json);
	char *line = rpc_end(&json, &length);
	pthread_mutex_lock(&call->server->lock);
	bool wanted = !call->cancelled && *call->id;
	pthread_mutex_unlock(&call->server->lock);
	if (wanted)
		mcp_send(call->server, line, length);
	else
		free(line);
	progress->length = 0;
	progress->sent_ms = mcp_now_ms();
}

static void take_output(void *arg, enum cordon_stream stream, const void *data, size_t length)
{
	struct progress *progress = arg;
	(void)stream;
	progress->bytes += length;
	size_t room = sizeof(progress->text) - progress->length, taken = length < room ? length : room;
	memcpy(progress->text + progress->length, data, taken);
	progress->length += taken;
	if (mcp_now_ms() - progress->sent_ms >= PROGRESS_MS)
		send_progress(progress);
}

/* ---- shell and exec -------------------------------------------------------------------------------------------------- */

static void put_denials(struct json *json, const struct cordon_result *result)
{
	json_key(json, "denials");
	json_array_begin(json);
	for (size_t i = 0; i < result->denial_count; i++) {
		const struct cordon_denial *denial = &result->denials[i];
		/* What the policy hides is not told to whom it is hidden from. */
		if (!strcmp(denial->wall, "masked_names"))
			continue;
		json_object_begin(json);
		json_key_string(json, "what", denial->what);
		json_key_string(json, "wall", denial->wall);
		json_key_string(json, "note", denial->note);
		json_key_string(json, "grant", denial->grant);
		json_object_end(json);
	}
	json_array_end(json);
}

static char *result_json(const struct cordon_result *result)
{
	struct json json;
	json_init(&json);
	json_object_begin(&json);
	json_key_int(&json, "exit_code", result->exit_code);
	json_key_int(&json, "signal", result->signal);
	json_key_bool(&json, "timed_out", result->timed_out);
	json_key_bool(&json, "truncated", result->truncated);
	json_key(&json, "stdout");
	json_bytes(&json, result->stdout_data, result->stdout_length);
	json_key(&json, "stderr");
	json_bytes(&json, result->stderr_data, result->stderr_length);
	json_key_string(&json, "limit_hit", result->limit_hit);
	json_key_string(&json, "network_hint", result->network_hint);
	json_key_uint(&json, "duration_ms", result->duration_ms);
	json_key_string(&json, "audit_id", result->audit_id);
	put_denials(&json, result);
	json_object_end(&json);
	return json_take(&json);
}

static bool is_cancelled(struct mcp_call *call)
{
	pthread_mutex_lock(&call->server->lock);
	bool cancelled = call->cancelled;
	pthread_mutex_unlock(&call->server->lock);
	return cancelled;
}

/* Until the command has ended, or the call is cancelled. */
static int follow(struct mcp_call *call, struct cordon_execution *execution, struct cordon_error *err)
{
	bool finished = false;
	while (!finished) {
		struct pollfd fds[] = { { .fd = cordon_execution_fd(execution), .events = POLLIN }, { .fd = call->cancel_fd, .events = POLLIN } };
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return fail(err, CORDON_E_INTERNAL, errno, "poll", "cannot wait for the command");
		if (fds[1].revents)
			return fail(err, CORDON_E_CANCELLED, 0, NULL, "the call was cancelled");
		if (cordon_execution_step(execution, &finished, err) < 0)
			return -1;
	}
	return 0;
}

static int run_request(struct mcp_call *call, struct cordon_request *request, char **ret_json, bool *ret_failed,
                       struct cordon_error *err)
{
	struct cordon_execution *execution = NULL;
	struct cordon_result *result = NULL;
	struct progress progress = { .call = call };
	auto_close int input = -1;
	if (open_stdin(call, err, &input) < 0)
		return -1;
	cordon_request_stdin(request, input);
	if (call->progress_token)
		cordon_request_output(request, take_output, &progress);
	if (cordon_start(call->server->cordon, request, &execution, err) < 0)
		return -1;
	int status = follow(call, execution, err);
	if (status == 0 && progress.length)
		send_progress(&progress);
	/* An error may come with a result, which is what the caller wants to know. */
	if (status == 0 && cordon_execution_result(execution, &result, err) < 0 && !result)
		status = -1;
	if (result) {
		*ret_json = result_json(result);
		*ret_failed = result->exit_code != 0;
		status = *ret_json ? 0 : fail_oom(err);
	}
	cordon_result_unref(result);
	cordon_execution_unref(execution);
	return status;
}

static int run_command(struct mcp_call *call, const struct rpc_param *params, char **ret_json, bool *ret_failed,
                       struct cordon_error *err)
{
	struct cordon_request *request;
	if (request_new(call, params, &request, err) < 0)
		return -1;
	int status = run_request(call, request, ret_json, ret_failed, err);
	cordon_request_unref(request);
	return status;
}

int mcp_shell(struct mcp_call *call, char **ret_json, bool *ret_failed, struct cordon_error *err)
{
	return run_command(call, command_params, ret_json, ret_failed, err);
}

int mcp_exec(struct mcp_call *call, char **ret_json, bool *ret_failed, struct cordon_error *err)
{
	return run_command(call, exec_params, ret_json, ret_failed, err);
}

/* ---- jobs ------------------------------------------------------------------------------------------------------------ */

int mcp_job_start(struct mcp_call *call, char **ret_json, bool *ret_failed, struct cordon_error *err)
{
	struct cordon_request *request;
	(void)ret_failed;
	if (request_new(call, job_params, &request, err) < 0)
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
	id = text_of(call, "id");
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
	return cordon_job_poll(call->server->cordon, text_of(call, "id"), count_of(call, "stdout_from", 0),
	                       count_of(call, "stderr_from", 0), ret_json, err);
}

int mcp_job_wait(struct mcp_call *call, char **ret_json, bool *ret_failed, struct cordon_error *err)
{
	(void)ret_failed;
	if (check_job(call, wait_params, err) < 0)
		return -1;
	uint64_t until = mcp_now_ms() + count_of(call, "timeout_ms", WAIT_MS);
	for (;;) {
		auto_free char *text = NULL;
		uint64_t now = mcp_now_ms(), left = now < until ? until - now : 0;
		if (cordon_job_wait(call->server->cordon, text_of(call, "id"), left < 500 ? (int64_t)left : 500, &text, err) < 0)
			return -1;
		if (!strstr(text, "\"state\":\"running\"") || left == 0 || is_cancelled(call)) {
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
	if (cordon_job_kill(call->server->cordon, text_of(call, "id"), (int)signal, err) < 0)
		return -1;
	*ret_json = strdup(signal ? "{\"ended\":false}" : "{\"ended\":true}");
	return *ret_json ? 0 : fail_oom(err);
}

/* ---- capabilities ---------------------------------------------------------------------------------------------------- */

/* What is asked for is asked for by a command that does nothing: the same walk, the same card, the same rows. */
int mcp_request_capability(struct mcp_call *call, char **ret_json, bool *ret_failed, struct cordon_error *err)
{
	auto_free char *result = NULL;
	if (run_command(call, capability_params, &result, ret_failed, err) < 0)
		return -1;
	*ret_json = strdup(*ret_failed ? "{\"granted\":false}" : "{\"granted\":true}");
	return *ret_json ? 0 : fail_oom(err);
}

int mcp_preflight(struct mcp_call *call, char **ret_json, bool *ret_failed, struct cordon_error *err)
{
	struct cordon_request *request;
	auto_free char *profile = NULL;
	struct json json;
	(void)ret_failed;
	if (request_new(call, preflight_params, &request, err) < 0)
		return -1;
	int status = cordon_profile(call->server->cordon, request, &profile, err);
	cordon_request_unref(request);
	json_init(&json);
	json_object_begin(&json);
	json_key_bool(&json, "allowed", status == 0);
	json_key_string(&json, "reason", status < 0 ? err->reason : "");
	json_key_string(&json, "remediation", status < 0 ? err->remediation : "");
	json_object_end(&json);
	*ret_json = json_take(&json);
	return *ret_json ? 0 : fail_oom(err);
}

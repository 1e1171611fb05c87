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
#define PROGRESS_MS 100
#define PROGRESS_SIZE 4096
#define LOOK_MS 10              /* at a command that has no descriptor to wait for */

/* ---- arguments ------------------------------------------------------------------------------------------------- */

/* What a tool takes; lists end with one that has no name. */
static const struct rpc_param command_params[] = {
	{ "command", RPC_TEXT, true, NULL }, { "cwd", RPC_TEXT, false, NULL }, { "timeout_ms", RPC_COUNT, false, NULL },
	{ "env", RPC_TEXTS, false, NULL }, { "stdin", RPC_TEXT, false, NULL }, { NULL, RPC_TEXT, false, NULL },
};
static const struct rpc_param exec_params[] = {
	{ "argv", RPC_TEXTS, true, NULL }, { "cwd", RPC_TEXT, false, NULL }, { "timeout_ms", RPC_COUNT, false, NULL },
	{ "env", RPC_TEXTS, false, NULL }, { "stdin", RPC_TEXT, false, NULL }, { NULL, RPC_TEXT, false, NULL },
};
static const struct rpc_param capability_params[] = {
	{ "fs_read", RPC_TEXTS, false, NULL },
	{ "fs_write", RPC_TEXTS, false, NULL },
	{ "hosts", RPC_TEXTS, false, NULL },
	{ NULL, RPC_TEXT, false, NULL },
};
static const struct rpc_param preflight_params[] = {
#ifdef SYSTEM_WITHOUT_BASH
	{ "argv", RPC_TEXTS, true, NULL },
#else
	{ "command", RPC_TEXT, true, NULL },
#endif
	{ "cwd", RPC_TEXT, false, NULL }, { "fs_read", RPC_TEXTS, false, NULL },
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

const char *mcp_text(const struct mcp_call *call, const char *name)
{
	return json_string_value(json_object_get(call->arguments, name));
}

/* ---- requests -------------------------------------------------------------------------------------------------- */

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
	const char *line = mcp_text(call, "command");
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
	const char *session, *cwd = mcp_text(call, "cwd");
	char time[32];
	json_t *timeout = json_object_get(call->arguments, "timeout_ms");
	if (mcp_session(call->server, &session, err) < 0 || cordon_request_set(request, "session", session, err) < 0)
		return -1;
	snprintf(time, sizeof(time), "%llums", (unsigned long long)json_integer_value(timeout));
	if ((cwd && cordon_request_set(request, "cwd", cwd, err) < 0) ||
	    (call->client_ref && cordon_request_set(request, "client-ref", call->client_ref, err) < 0) ||
	    (timeout && call->tool->run != mcp_job_wait && cordon_request_set(request, "timeout", time, err) < 0))
		return -1;
	/* Without an approver of this client's, the configuration says whether cordon approvals can be waited for. */
	bool asks = call->elicits && !call->server->options->own_approver;
	if (asks && cordon_request_set(request, "client-asks", "true", err) < 0)
		return -1;
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

int mcp_command_request(struct mcp_call *call, const struct rpc_param *params, struct cordon_request **ret_request,
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

/* ---- progress -------------------------------------------------------------------------------------------------- */

struct progress {
	struct mcp_call *call;
	uint64_t bytes, sent_ms;
	size_t length, left_out;
	char text[PROGRESS_SIZE + 64];  /* output that was not sent yet; then, how much had no room */
};

static void send_progress(struct progress *progress)
{
	struct mcp_call *call = progress->call;
	struct json json;
	size_t length = 0;
	if (progress->left_out)
		progress->length += (size_t)snprintf(progress->text + progress->length, 64,
		                                     "\n[%zu more bytes are in the result]\n", progress->left_out);
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
	progress->length = progress->left_out = 0;
	progress->sent_ms = mcp_now_ms();
}

static void take_output(void *arg, enum cordon_stream stream, const void *data, size_t length)
{
	struct progress *progress = arg;
	(void)stream;
	progress->bytes += length;
	size_t room = PROGRESS_SIZE - progress->length, taken = length < room ? length : room;
	memcpy(progress->text + progress->length, data, taken);
	progress->length += taken;
	progress->left_out += length - taken;
	if (mcp_now_ms() - progress->sent_ms >= PROGRESS_MS)
		send_progress(progress);
}

/* When what is held back is to be sent, though the command says nothing more; -1: nothing is. */
static int progress_timeout(const struct progress *progress)
{
	uint64_t passed = mcp_now_ms() - progress->sent_ms;
	return !progress->length ? -1 : passed < PROGRESS_MS ? (int)(PROGRESS_MS - passed) : 0;
}

/* ---- shell and exec -------------------------------------------------------------------------------------------- */

bool mcp_is_cancelled(struct mcp_call *call)
{
	pthread_mutex_lock(&call->server->lock);
	bool cancelled = call->cancelled;
	pthread_mutex_unlock(&call->server->lock);
	return cancelled;
}

static int wait_ms(const struct cordon_execution *execution, const struct progress *progress)
{
	int left = progress_timeout(progress);
	return cordon_execution_fd(execution) < 0 && (left < 0 || left > LOOK_MS) ? LOOK_MS : left;
}

/* Until the command has ended, or the call is cancelled. */
static int follow(struct mcp_call *call, struct cordon_execution *execution, struct progress *progress,
                  struct cordon_error *err)
{
	bool finished = false;
	while (!finished) {
		struct pollfd fds[] = { { .fd = cordon_execution_fd(execution), .events = POLLIN },
			                { .fd = call->cancel_fd, .events = POLLIN } };
		if (poll(fds, 2, wait_ms(execution, progress)) < 0 && errno != EINTR)
			return fail(err, CORDON_E_INTERNAL, errno, "poll", "cannot wait for the command");
		if (progress_timeout(progress) == 0)
			send_progress(progress);
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
	/* What is captured is what was handed on: neither may have the first part of a secret in it. */
	if (cordon_request_set(request, "judged", "true", err) < 0)
		return -1;
	if (call->progress_token)
		cordon_request_output(request, take_output, &progress);
	if (cordon_execution_start(call->server->cordon, request, &execution, err) < 0)
		return -1;
	pthread_mutex_lock(&call->server->lock);
	call->runs = true;
	pthread_mutex_unlock(&call->server->lock);
	int status = follow(call, execution, &progress, err);
	if (status == 0 && progress.length)
		send_progress(&progress);
	/* An error may come with a result: the caller is told both. */
	if (status == 0 && cordon_execution_result(execution, &result, err) < 0 && !result)
		status = -1;
	if (result) {
		*ret_json = mcp_result_json(call, result);
		call->words = mcp_result_words(result);
		*ret_failed = result->exit_code != 0 || result->error;
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
	if (mcp_command_request(call, params, &request, err) < 0)
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

/* ---- capabilities ---------------------------------------------------------------------------------------------- */

int mcp_request_capability(struct mcp_call *call, char **ret_json, bool *ret_failed, struct cordon_error *err)
{
	struct cordon_request *request;
	(void)ret_failed;
	if (mcp_check(call, capability_params, err) < 0 || mcp_request(call, &request, err) < 0)
		return -1;
	int status = set_lists(call, request, err);
	if (status == 0)
		status = cordon_capability_request(call->server->cordon, request, err);
	cordon_request_unref(request);
	if (status < 0)
		return -1;
	*ret_json = strdup("{\"granted\":true}");
	return *ret_json ? 0 : fail_oom(err);
}

/* The answer of the library, with its error as text for the agent. */
static int tell_preflight(char *answer, char **ret_json, struct cordon_error *err)
{
	json_t *told = json_loads(answer, 0, NULL), *error = json_object_get(told, "error");
	const char *reason = "", *remedy = "";
	if (json_object_get(told, "asks")) {
		reason = "a human would be asked to approve it";
		remedy = "run it all the same, or ask with request_capability";
	} else if (error && mcp_reword_error(error, 0, true)) {
		reason = json_string_value(json_object_get(error, "reason"));
		remedy = json_string_value(json_object_get(error, "remediation"));
		json_object_set(told, "request_capability", json_object_get(error, "request_capability"));
	}
	json_object_set_new(told, "reason", json_string(reason));
	json_object_set_new(told, "remediation", json_string(remedy));
	json_object_del(told, "error");
	*ret_json = told ? json_dumps(told, JSON_COMPACT) : NULL;
	json_decref(told);
	return *ret_json ? 0 : fail_oom(err);
}

int mcp_preflight(struct mcp_call *call, char **ret_json, bool *ret_failed, struct cordon_error *err)
{
	struct cordon_request *request;
	auto_free char *answer = NULL;
	(void)ret_failed;
	if (mcp_command_request(call, preflight_params, &request, err) < 0)
		return -1;
	int status = cordon_preflight(call->server->cordon, request, &answer, err);
	cordon_request_unref(request);
	return status < 0 ? -1 : tell_preflight(answer, ret_json, err);
}

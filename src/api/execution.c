/* The public calls that take the walk: starting a command, following it, its result. */
#include <stdlib.h>

#include "api/result.h"
#include "base/json.h"
#include "walk.h"

#define START_ATTEMPTS 5

/* One attempt. */
static int start(struct cordon *cordon, const struct cordon_request *request, struct execution **ret_walk,
                 bool *ret_asked, struct cordon_error *err)
{
	struct execution *execution;
	if (walk_new(cordon, request, false, &execution, err) < 0)
		return -1;
	if (walk(execution, WALK_STARTED, err) == 0) {
		*ret_walk = execution;
		return 0;
	}
	*ret_asked = execution->asked;
	walk_free(execution);
	return -1;
}

int cordon_execution_start(struct cordon *cordon, const struct cordon_request *request,
                           struct cordon_execution **ret_execution, struct cordon_error *err)
{
	if (call_check(err, cordon, request, ret_execution) < 0)
		return -1;
	struct cordon_execution *execution = calloc(1, sizeof(*execution));
	if (!execution)
		return fail_oom(err);
	/* A process that changes the workspace meanwhile may have moved a name that was to be hidden: search again, a
	 * few times. But no question is asked twice. */
	int result = -1;
	bool asked = false;
	for (int attempt = 0; attempt < START_ATTEMPTS && result < 0 && !asked; attempt++) {
		result = start(cordon, request, &execution->walk, &asked, err);
		/* If the session was held, that was waited for already. */
		if (result < 0 && (err->class != CORDON_E_SESSION_BUSY || err->step == CORDON_STEP_SESSION))
			break;
	}
	if (result < 0) {
		free(execution);
		return -1;
	}
	*ret_execution = execution;
	return 0;
}

/* Whether it exists and belongs to this process: a request from a forked child would affect the parent's command. */
static bool is_ours(const struct cordon_execution *execution)
{
	return execution && handle_check(execution->walk->cordon, NULL) == 0;
}

static struct running *running_of(const struct cordon_execution *execution)
{
	return execution->walk->run.running;
}

int cordon_execution_fd(const struct cordon_execution *execution)
{
	return !execution ? -1 : running_of(execution)->ops->fd(running_of(execution));
}

uint64_t cordon_execution_kept(const struct cordon_execution *execution, enum cordon_stream stream)
{
	if (!execution)
		return 0;
	const struct limits *limits = &execution->walk->verdict.profile.limits;
	uint64_t kept = stream == CORDON_STDERR ? limits->stderr_bytes : limits->stdout_bytes;
	return kept ? kept : UINT64_MAX;
}

int cordon_execution_step(struct cordon_execution *execution, bool *ret_finished, struct cordon_error *err)
{
	if (call_check(err, execution, ret_finished) < 0 || handle_check(execution->walk->cordon, err) < 0)
		return -1;
	return running_of(execution)->ops->step(running_of(execution), 0, ret_finished, err);
}

void cordon_execution_signal(struct cordon_execution *execution, int signal)
{
	if (is_ours(execution))
		running_of(execution)->ops->signal(running_of(execution), signal);
}

void cordon_execution_hold_output(struct cordon_execution *execution, enum cordon_stream stream, bool hold)
{
	if (is_ours(execution) && (stream == CORDON_STDOUT || stream == CORDON_STDERR))
		running_of(execution)->ops->hold_output(running_of(execution), stream, hold);
}

void cordon_execution_close_output(struct cordon_execution *execution, enum cordon_stream stream)
{
	if (is_ours(execution) && (stream == CORDON_STDOUT || stream == CORDON_STDERR))
		running_of(execution)->ops->close_output(running_of(execution), stream);
}

void cordon_execution_resize(struct cordon_execution *execution, unsigned short rows, unsigned short columns)
{
	if (is_ours(execution))
		running_of(execution)->ops->resize(running_of(execution), rows, columns);
}

bool cordon_execution_press_stop(struct cordon_execution *execution)
{
	return !is_ours(execution) || running_of(execution)->ops->press_stop(running_of(execution));
}

void cordon_execution_unref(struct cordon_execution *execution)
{
	if (!is_ours(execution))
		return;
	walk_free(execution->walk);
	free(execution);
}

int cordon_execution_result(struct cordon_execution *execution, struct cordon_result **ret_result,
                            struct cordon_error *err)
{
	if (call_check(err, execution, ret_result) < 0 || handle_check(execution->walk->cordon, err) < 0)
		return -1;
	if (!running_of(execution)->finished)
		return fail(err, CORDON_E_INVALID_REQUEST, 0, NULL, "the command has not ended yet");
	return result_take(execution->walk, ret_result, err);
}

int cordon_result_run(struct cordon *cordon, const struct cordon_request *request, struct cordon_result **ret_result,
               struct cordon_error *err)
{
	struct cordon_execution *execution;
	if (call_check(err, cordon, request, ret_result) < 0 ||
	    cordon_execution_start(cordon, request, &execution, err) < 0)
		return -1;
	bool finished = false;
	int result = 0;
	while (!finished && result == 0)
		result = running_of(execution)->ops->step(running_of(execution), -1, &finished, err);
	if (result == 0)
		result = result_take(execution->walk, ret_result, err);
	cordon_execution_unref(execution);
	return result;
}

int cordon_run(struct cordon *cordon, const struct cordon_request *request, struct cordon_value **ret_result,
               struct cordon_error *err)
{
	struct cordon_result *result = NULL;
	if (call_check(err, cordon, request, ret_result) < 0)
		return -1;
	int status = cordon_result_run(cordon, request, &result, err);
	return result_as_value(status, result, ret_result, err);
}

int cordon_profile(struct cordon *cordon, const struct cordon_request *request, char **ret_json,
                   struct cordon_error *err)
{
	struct execution *execution;
	struct json json;
	if (call_check(err, cordon, request, ret_json) < 0 || walk_new(cordon, request, true, &execution, err) < 0)
		return -1;
	if (walk(execution, WALK_DECIDED, err) < 0) {
		walk_free(execution);
		return -1;
	}
	json_init(&json);
	json.pretty = true;
	profile_write_json(&json, &execution->verdict.profile);
	walk_free(execution);
	char *text = json_take(&json);
	if (!text)
		return fail_oom(err);
	*ret_json = text;
	return 0;
}

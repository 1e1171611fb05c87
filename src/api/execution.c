/* The public calls that take the walk: starting a command, following it, its result. */
#include <stdlib.h>

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

int cordon_start(struct cordon *cordon, const struct cordon_request *request, struct cordon_execution **ret_execution,
                 struct cordon_error *err)
{
	if (call_check(err, cordon, request, ret_execution) < 0)
		return -1;
	struct cordon_execution *execution = calloc(1, sizeof(*execution));
	if (!execution)
		return fail_oom(err);
	/* Something that changes the workspace meanwhile may have moved what was to be hidden: look again, a few times. But
	 * nobody is asked the same twice. */
	int result = -1;
	bool asked = false;
	for (int attempt = 0; attempt < START_ATTEMPTS && result < 0 && !asked; attempt++) {
		result = start(cordon, request, &execution->walk, &asked, err);
		/* A session that somebody holds was waited for already. */
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

/* Whether it is there, and of this process: another one would take what it is told, or have its command killed. */
static bool is_ours(const struct cordon_execution *execution)
{
	return execution && handle_check(execution->walk->cordon, NULL) == 0;
}

int cordon_execution_fd(const struct cordon_execution *execution)
{
	return !execution ? -1 : execution->walk->run.supervision.epoll_fd;
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
	return supervise_step(&execution->walk->run.supervision, 0, ret_finished, err);
}

void cordon_execution_signal(struct cordon_execution *execution, int signal)
{
	if (is_ours(execution))
		supervise_signal(&execution->walk->run.supervision, signal);
}

void cordon_execution_hold_output(struct cordon_execution *execution, enum cordon_stream stream, bool hold)
{
	if (is_ours(execution) && (stream == CORDON_STDOUT || stream == CORDON_STDERR))
		supervise_hold_output(&execution->walk->run.supervision, stream, hold);
}

void cordon_execution_close_output(struct cordon_execution *execution, enum cordon_stream stream)
{
	if (is_ours(execution) && (stream == CORDON_STDOUT || stream == CORDON_STDERR))
		supervise_close_output(&execution->walk->run.supervision, stream);
}

void cordon_execution_resize(struct cordon_execution *execution, unsigned short rows, unsigned short columns)
{
	if (is_ours(execution))
		supervise_resize(&execution->walk->run.supervision, rows, columns);
}

bool cordon_execution_press_stop(struct cordon_execution *execution)
{
	return !is_ours(execution) || supervise_press_stop(&execution->walk->run.supervision);
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
	if (execution->walk->run.supervision.state != SUPERVISE_FINISHED)
		return fail(err, CORDON_E_INVALID_REQUEST, 0, NULL, "the command has not ended yet");
	return result_take(execution->walk, ret_result, err);
}

int cordon_run(struct cordon *cordon, const struct cordon_request *request, struct cordon_result **ret_result,
               struct cordon_error *err)
{
	struct cordon_execution *execution;
	if (call_check(err, cordon, request, ret_result) < 0 || cordon_start(cordon, request, &execution, err) < 0)
		return -1;
	bool finished = false;
	int result = 0;
	while (!finished && result == 0)
		result = supervise_step(&execution->walk->run.supervision, -1, &finished, err);
	if (result == 0)
		result = result_take(execution->walk, ret_result, err);
	cordon_execution_unref(execution);
	return result;
}

int cordon_profile(struct cordon *cordon, const struct cordon_request *request, char **ret_json, struct cordon_error *err)
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

/* What calls the six steps, in their order, and nothing else: no step is left out, none comes twice. */
#include "execute.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "audit/ledger.h"
#include "base/json.h"
#include "base/lock.h"
#include "config/config.h"
#include "driver/linux/kernel-mounts.h"
#include "driver/linux/linger.h"
#include "host/tools.h"
#include "host/view.h"
#include "session/workspace.h"

#define START_ATTEMPTS 5

static const struct {
	enum cordon_step step;
	int (*take)(struct execution *execution, struct cordon_error *err);
} to_profile[] = {
	{ CORDON_STEP_SESSION, session_step },
	{ CORDON_STEP_CWD, cwd_step },
	{ CORDON_STEP_CAPABILITY, capability_step },
	{ CORDON_STEP_PROFILE, profile_step },
}, to_start[] = {
	{ CORDON_STEP_AUDIT, audit_step_intent },
	{ CORDON_STEP_RUN, run_step_start },
};

/* ---- the library's state ---------------------------------------------------------------------------------------- */

int cordon_open(const struct cordon_options *options, struct cordon **ret_cordon, struct cordon_error *err)
{
	if (call_check(err, ret_cordon) < 0)
		return -1;
	struct cordon *cordon = calloc(1, sizeof(*cordon));
	if (!cordon)
		return fail_oom(err);
	cordon->owner = getpid();
	cordon->approver.interrupt_fd = -1;
	pthread_mutex_init(&cordon->jobs_lock, NULL);
	if (!(cordon->vigil = vigil_new()) || !(cordon->view = host_view_new(cordon->vigil)) ||
	    !(cordon->tools = host_tools_new(cordon->vigil)) || !(cordon->names = names_memory_new(cordon->vigil))) {
		cordon_unref(cordon);
		return fail_oom(err);
	}
	/* A program that runs one command and ends has nothing of what is watched, and would wait some 20 ms for the end of it. */
	vigil_sleep(cordon->vigil, true);
	if (workspace_data_dir(&cordon->arena, options ? options->data_dir : NULL, &cordon->data_dir, &cordon->data_named, err) < 0 ||
	    ledger_open(cordon->data_dir, false, &cordon->ledger, err) < 0 ||
	    config_store_open(cordon->data_dir, options ? options->config : NULL, &cordon->config, err) < 0 ||
	    config_store_watch(cordon->config, cordon->vigil, err) < 0) {
		cordon_unref(cordon);
		return -1;
	}
	*ret_cordon = cordon;
	return 0;
}

int execute_owned(const struct cordon *cordon, struct cordon_error *err)
{
	if (cordon->owner == getpid())
		return 0;
	fail(err, CORDON_E_INVALID_REQUEST, 0, "cordon_open", "this handle was opened before fork(), by process %d", (int)cordon->owner);
	fail_boundary(err, "request");
	return fail_remedy(err, "open one in the process that uses it, or use it in the process that opened it");
}

/* What is in it is of the process that opened it: its threads, its children, what it has locked. */
void cordon_unref(struct cordon *cordon)
{
	if (!cordon || execute_owned(cordon, NULL) < 0)
		return;
	job_end_all(cordon);
	pthread_mutex_destroy(&cordon->jobs_lock);
	disk_forget();
	kernel_mounts_forget();
	ledger_unref(cordon->ledger);
	config_store_unref(cordon->config);
	names_memory_free(cordon->names);
	host_tools_free(cordon->tools);
	host_view_free(cordon->view);
	vigil_free(cordon->vigil);
	arena_free(&cordon->arena);
	free(cordon);
	/* Last: init is on its way out meanwhile. */
	linger_settle();
	cgroup_forget();
}

int cordon_data_dir(struct cordon *cordon, const char **ret_path, struct cordon_error *err)
{
	if (call_check(err, cordon, ret_path) < 0 || execute_owned(cordon, err) < 0 ||
	    workspace_make_data_dir(cordon->data_dir, err) < 0)
		return -1;
	*ret_path = cordon->data_dir;
	return 0;
}

uint64_t execute_hear(struct cordon *cordon, bool again)
{
	if (!again && atomic_exchange(&cordon->asked, true)) {
		atomic_store(&cordon->stays, true);
		vigil_sleep(cordon->vigil, false);
	}
	/* Where nothing is watched yet, nothing is compared with it either. */
	if (!vigil_hear(cordon->vigil) && !atomic_load(&cordon->stays))
		return 0;
	return again ? kernel_mounts_version_again() : kernel_mounts_version();
}

/* ---- the walk --------------------------------------------------------------------------------------------------- */

int execute_new(struct cordon *cordon, const struct cordon_request *request, bool dry, struct execution **ret_execution,
                struct cordon_error *err)
{
	if (execute_owned(cordon, err) < 0)
		return -1;
	if (!request->argv.count)
		return fail(err, CORDON_E_INVALID_REQUEST, 0, "", "there is no command to run");
	struct execution *execution = calloc(1, sizeof(*execution));
	if (!execution)
		return fail_oom(err);
	execution->cordon = cordon;
	execution->request = request;
	execution->dry = dry;
	execution->session.use_fd = -1;
	execution->session.workspace_fd = execution->session.home_fd = execution->session.scratch_fd = -1;
	execution->cwd.fd = execution->profile.names.fd = -1;
	/* What is not run has no id; the same request always has the same profile. */
	if (dry)
		memset(execution->audit.id, '0', sizeof(execution->audit.id) - 1);
	else
		id_make(execution->audit.id);
	execution->run.launch.report_fd = -1;
	execution->run.launch.pidfd = -1;
	execution->run.launch.ready_fd = execution->run.launch.go_fd = -1;
	execution->session.id = execution->audit.id;
	*ret_execution = execution;
	return 0;
}

void execute_free(struct execution *execution)
{
	if (!execution)
		return;
	int *const owned[] = { &execution->session.workspace_fd, &execution->session.scratch_fd, &execution->cwd.fd,
	                       &execution->profile.names.fd, &execution->run.launch.report_fd,
	                       &execution->run.launch.ready_fd, &execution->run.launch.go_fd,
	                       &execution->session.home_fd };
	egress_free(execution);
	driver_release(&execution->run.held);
	if (execution->run.prepared)
		supervise_free(&execution->run.supervision);
	cgroup_remove(&execution->run.group);
	disk_watch_end(&execution->run.disk);
	judge_free(execution);
	run_step_clean(execution);
	session_step_clean(execution);
	if (execution->session.job && !execution->run.started)
		jobs_leave(execution->session.job, true);
	/* Where the command works is often where it starts. */
	if (execution->cwd.fd == execution->session.workspace_fd)
		execution->cwd.fd = -1;
	for (size_t i = 0; i < execution->profile.tree_count; i++)
		if (execution->profile.trees[i].fd != execution->session.workspace_fd)
			close(execution->profile.trees[i].fd);
	for (size_t i = 0; i < ARRAY_SIZE(owned); i++)
		if (*owned[i] >= 0)
			close(*owned[i]);
	lock_release(&execution->session.use_fd);
	config_unref(execution->session.config);
	free(execution->audit.isolation);
	ledger_release(execution->cordon->ledger, &execution->audit.room);
	arena_free(&execution->arena);
	free(execution);
}

/* Where there is no result, the refusal is what somebody reads. */
static int refuse(const struct execution *execution, enum cordon_step step, struct cordon_error *err)
{
	const char *note = execution->session.note;
	err->step = (int32_t)step;
	return note ? fail_remedy(err, "%s%s%s", err->remediation, *err->remediation ? "; besides, " : "", note) : -1;
}

static int walk(struct execution *execution, bool start, bool record, struct cordon_error *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(to_profile); i++)
		if (to_profile[i].take(execution, err) < 0)
			return refuse(execution, to_profile[i].step, err);
	for (size_t i = 0; start && i < ARRAY_SIZE(to_start); i++) {
		if (to_start[i].step == CORDON_STEP_AUDIT && !record)
			continue;
		if (to_start[i].take(execution, err) < 0)
			return refuse(execution, to_start[i].step, err);
	}
	if (start && record)
		audit_step_running(execution);
	return 0;
}

static int follow(struct execution *execution, struct cordon_error *err)
{
	bool finished = false;
	while (!finished)
		if (supervise_step(&execution->run.supervision, -1, &finished, err) < 0)
			return -1;
	return run_step_finish(execution, err);
}

int execute_unrecorded(struct cordon *cordon, const struct cordon_request *request, struct execution **ret_execution,
                       struct cordon_error *err)
{
	struct execution *execution;
	if (execute_new(cordon, request, false, &execution, err) < 0)
		return -1;
	execution->probe = true;
	if (walk(execution, true, false, err) < 0 || follow(execution, err) < 0) {
		execute_free(execution);
		return -1;
	}
	*ret_execution = execution;
	return 0;
}

/* ---- the public calls ------------------------------------------------------------------------------------------- */

/* One attempt. */
static int start(struct cordon *cordon, const struct cordon_request *request, struct execution **ret_walk,
                 bool *ret_asked, struct cordon_error *err)
{
	struct execution *execution;
	if (execute_new(cordon, request, false, &execution, err) < 0)
		return -1;
	if (walk(execution, true, true, err) == 0) {
		*ret_walk = execution;
		return 0;
	}
	*ret_asked = execution->capability.asked;
	audit_step_denial(execution, err);
	execute_free(execution);
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
	return execution && execute_owned(execution->walk->cordon, NULL) == 0;
}

int cordon_execution_fd(const struct cordon_execution *execution)
{
	return !execution ? -1 : execution->walk->run.supervision.epoll_fd;
}

uint64_t cordon_execution_kept(const struct cordon_execution *execution, enum cordon_stream stream)
{
	if (!execution)
		return 0;
	const struct limits *limits = &execution->walk->profile.profile.limits;
	uint64_t kept = stream == CORDON_STDERR ? limits->stderr_bytes : limits->stdout_bytes;
	return kept ? kept : UINT64_MAX;
}

int cordon_execution_step(struct cordon_execution *execution, bool *ret_finished, struct cordon_error *err)
{
	if (call_check(err, execution, ret_finished) < 0 || execute_owned(execution->walk->cordon, err) < 0)
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
	execute_free(execution->walk);
	free(execution);
}

int cordon_execution_result(struct cordon_execution *execution, struct cordon_result **ret_result,
                            struct cordon_error *err)
{
	if (call_check(err, execution, ret_result) < 0 || execute_owned(execution->walk->cordon, err) < 0)
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
	if (call_check(err, cordon, request, ret_json) < 0 || execute_new(cordon, request, true, &execution, err) < 0)
		return -1;
	if (walk(execution, false, false, err) < 0) {
		execute_free(execution);
		return -1;
	}
	json_init(&json);
	json.pretty = true;
	profile_write_json(&json, &execution->profile.profile);
	execute_free(execution);
	char *text = json_take(&json);
	if (!text)
		return fail_oom(err);
	*ret_json = text;
	return 0;
}

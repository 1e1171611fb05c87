/* The walk, whole: see walk.h. */
#include "walk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "approval/authorize.h"
#include "config/config.h"
#include "paths/trees.h"
#include "session/jobs.h"
#include "session/registry.h"

static int make(struct cordon *cordon, const struct cordon_request *request, bool dry, struct execution **ret_execution,
                struct cordon_error *err)
{
	if (handle_check(cordon, err) < 0)
		return -1;
	struct execution *execution = calloc(1, sizeof(*execution));
	if (!execution)
		return fail_oom(err);
	execution->cordon = cordon;
	execution->request = request;
	execution->facts = (struct walk_facts){ .arena = &execution->arena, .cordon = cordon, .request = request,
	                                        .audit_id = execution->audit.id, .denials = &execution->denials,
	                                        .dry = dry };
	execution->held =
		(struct walk_held){ .use_fd = -1, .home_fd = -1, .tmp_fd = -1, .layers_fd = -1, .scratch_fd = -1 };
	execution->verdict.session.workspace_fd = execution->verdict.cwd.fd = -1;
	/* What is not run has no id; the same request always has the same profile. */
	if (dry)
		memset(execution->audit.id, '0', sizeof(execution->audit.id) - 1);
	else
		id_make(execution->audit.id);
	execution->verdict.session.id = execution->audit.id;
	*ret_execution = execution;
	return 0;
}

int walk_new(struct cordon *cordon, const struct cordon_request *request, bool dry, struct execution **ret_execution,
             struct cordon_error *err)
{
	if (!request->argv.count)
		return fail(err, CORDON_E_INVALID_REQUEST, 0, "", "there is no command to run");
	return make(cordon, request, dry, ret_execution, err);
}

void walk_free(struct execution *execution)
{
	if (!execution)
		return;
	struct verdict *verdict = &execution->verdict;
	run_release(execution);
	trees_free(execution->trees, execution->run.running);
	if (execution->held.job && !execution->run.running)
		jobs_leave(execution->held.job, true);
	/* The command often works where it starts. */
	if (verdict->cwd.fd != verdict->session.workspace_fd)
		cleanup_close(&verdict->cwd.fd);
	session_release(&execution->facts, &execution->held, &verdict->session);
	free(execution->audit.isolation);
	ledger_release(execution->cordon->ledger, &execution->audit.room);
	/* The command's environment is in it. */
	arena_wipe(&execution->arena);
	free(execution);
}

/* The error of a step. Where there is no result, the remedy is where a caller reads the note about the
 * configuration. */
static int refuse(struct execution *execution, enum cordon_step step, bool record, struct cordon_error *err)
{
	const char *note = execution->verdict.session.note;
	err->step = (int32_t)step;
	if (note)
		fail_remedy(err, "%s%s%s", err->remediation, *err->remediation ? "; besides, " : "", note);
	if (record)
		audit_step_denial(execution, err);
	return -1;
}

/* Nothing was refused: the error says that the command ran, by which row it is known, and not to run it again. */
int walk_fail_after_run(const struct execution *execution, enum cordon_step step, struct cordon_error *err)
{
	const struct cordon_error cause = *err;
	int code = execution->run.outcome.exit_code;
	fail(err, cause.class, 0, cause.subject, "the command ran (%s %d), and afterwards this failed: %s",
	     code < 0 ? "signal" : "exit status", code < 0 ? execution->run.outcome.signal : code, cause.reason);
	fail_boundary(err, cause.boundary);
	fail_remedy(err, "%s%sdo not run it again because of this", cause.remediation, *cause.remediation ? "; " : "");
	err->os_errno = cause.os_errno;
	err->step = step;
	err->retriable = false;
	snprintf(err->audit_id, sizeof(err->audit_id), "%s", execution->audit.id);
	return -1;
}

static int follow(struct execution *execution, struct cordon_error *err)
{
	for (bool finished = false; !finished;)
		if (execution->run.running->ops->step(execution->run.running, -1, &finished, err) < 0)
			return -1;
	return 0;
}

/* Step 5 failed at its end: did the command run? */
static int fail_finish(struct execution *execution, bool record, struct cordon_error *err)
{
	err->step = CORDON_STEP_RUN;
	if (!record)
		return -1;
	if (execution->run.ended)
		walk_fail_after_run(execution, CORDON_STEP_RUN, err);
	audit_step_denial(execution, err);
	return -1;
}

/* Steps 1 to 3, which a file tool takes, too. */
static int decide(struct execution *execution, bool record, struct cordon_error *err)
{
	const struct walk_facts *facts = &execution->facts;
	struct verdict *verdict = &execution->verdict;
	if (session_step(facts, &execution->held, &verdict->session, err) < 0)
		return refuse(execution, CORDON_STEP_SESSION, record, err);
	const struct cwd_facts where = {
		facts->arena, facts->request->cwd, verdict->session.here, &verdict->session.workspace,
		verdict->session.workspace_fd,
		{ &facts->request->granted, &verdict->session.config->baseline, &verdict->session.record->baseline },
	};
	if (cwd_step(&where, &verdict->cwd, err) < 0)
		return refuse(execution, CORDON_STEP_CWD, record, err);
	if (capability_step(facts, &execution->held, verdict, &verdict->grants, &execution->asked, err) < 0)
		return refuse(execution, CORDON_STEP_CAPABILITY, record, err);
	return 0;
}

int walk(struct execution *execution, enum walk_stage until, struct cordon_error *err)
{
	struct verdict *verdict = &execution->verdict;
	bool record = until >= WALK_STARTED && !execution->facts.probe;

	if (execution->stage < WALK_DECIDED) {
		if (decide(execution, record, err) < 0)
			return -1;
		if (profile_step(&execution->facts, &execution->held, verdict, &execution->trees, &verdict->profile,
		                 err) < 0)
			return refuse(execution, CORDON_STEP_PROFILE, record, err);
		execution->stage = WALK_DECIDED;
	}

	/* The verdict is constant from here on. No row, no run. */
	if (execution->stage < WALK_STARTED && until >= WALK_STARTED) {
		if (record && audit_step_intent(execution, err) < 0)
			return refuse(execution, CORDON_STEP_AUDIT, record, err);
		if (run_step_start(execution, err) < 0)
			return refuse(execution, CORDON_STEP_RUN, record, err);
		if (record)
			audit_step_running(execution);
		execution->stage = WALK_STARTED;
	}

	/* A caller with a loop of its own has stepped the command to its end by now; then there is nothing to
	 * follow. */
	if (execution->stage < WALK_ENDED && until == WALK_ENDED) {
		if (follow(execution, err) < 0)
			return -1;
		execution->stage = WALK_ENDED;
		if (run_step_finish(execution, err) < 0)
			return fail_finish(execution, record, err);
		if (record && audit_step_result(execution, err) < 0)
			return walk_fail_after_run(execution, CORDON_STEP_AUDIT, err);
		if (record && (limits_pause(execution, err) < 0 || leaks_block(execution, err) < 0))
			return walk_fail_after_run(execution, CORDON_STEP_RUN, err);
	}
	return 0;
}

/* ---- file tools -------------------------------------------------------------------------------------------------- */

/* A tool rule wants a human to be asked. */
static int ask_about_rule(struct execution *execution, const char *rule, struct cordon_error *err)
{
	const struct capability_set nothing = { 0 };
	const struct gate gate = handle_gate(execution->cordon);
	struct gate_question question;
	struct gate_answer answer;
	if (!rule)
		return 0;
	if (capability_question(&execution->facts, &execution->held, &execution->verdict, &question, err) < 0)
		return -1;
	question.excess = &nothing;
	question.rule = rule;
	return gate_ask(&gate, &execution->arena, execution->verdict.session.config, &question, &answer, err);
}

static int walk_tool_steps(struct execution *execution, const struct walk_tool *tool, struct cordon_error *err)
{
	const struct verdict *verdict = &execution->verdict;
	const char *rule = NULL;
	uint64_t bytes = 0;
	struct secret_screen *screen;
	if (decide(execution, true, err) < 0)
		return -1;
	if (tool->judge(tool->arg, &execution->arena, verdict, &rule, err) < 0)
		return refuse(execution, CORDON_STEP_CAPABILITY, true, err);
	if (ask_about_rule(execution, rule, err) < 0)
		return refuse(execution, CORDON_STEP_CAPABILITY, true, err);
	execution->stage = WALK_DECIDED;
	if (audit_step_intent(execution, err) < 0)
		return refuse(execution, CORDON_STEP_AUDIT, true, err);
	if (leaks_begin_tool(execution, tool, &screen, err) < 0 ||
	    tool->act(tool->arg, &execution->arena, verdict, screen, &bytes, err) < 0)
		return refuse(execution, CORDON_STEP_RUN, true, err);
	if (leaks_end(execution) < 0)
		return fail_oom(err);
	if (leaks_block(execution, err) < 0)
		return refuse(execution, CORDON_STEP_RUN, true, err);
	if (leaks_clean_denials(execution) < 0)
		return fail_oom(err);
	if (tool->tell && tool->tell(tool->arg, execution, err) < 0)
		return refuse(execution, CORDON_STEP_RUN, true, err);
	if (audit_step_tool_result(execution, bytes, err) < 0)
		return refuse(execution, CORDON_STEP_AUDIT, false, err);
	return 0;
}

int walk_tool(struct cordon *cordon, const struct cordon_request *request, const struct walk_tool *tool,
              struct cordon_error *err)
{
	struct execution *execution;
	if (make(cordon, request, false, &execution, err) < 0)
		return -1;
	execution->facts.tool = tool;
	if (tool->ret_audit_id)
		memcpy(tool->ret_audit_id, execution->audit.id, ID_SIZE);
	int result = walk_tool_steps(execution, tool, err);
	walk_free(execution);
	return result;
}

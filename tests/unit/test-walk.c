/* The walk: the six steps in their order, what is recorded of a refusal, and how far a walk goes. The steps are this
 * test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/config.h"
#include "paths/trees.h"
#include "session/jobs.h"
#include "session/registry.h"
#include "walk.h"

#include <cmocka.h>

/* ---- the steps --------------------------------------------------------------------------------------------------- */

static char taken[256];                 /* the steps, in the order in which they were taken */
static const char *refusing;            /* the step that refuses; or NULL */
static const char *note, *rule;
static bool ended;

static int step(const char *name, struct cordon_error *err)
{
	strcat(taken, *taken ? " " : "");
	strcat(taken, name);
	return refusing && !strcmp(refusing, name) ? (fail)(err, CORDON_E_CAPABILITY_DENIED, 0, NULL, "refused") : 0;
}

int handle_check(const struct cordon *cordon, struct cordon_error *err)
{
	(void)cordon, (void)err;
	return 0;
}

int session_step(const struct walk_facts *facts, struct walk_held *held, struct verdict_session *ret,
                 struct cordon_error *err)
{
	static const struct config config;
	static const struct session_record record;
	(void)facts, (void)held;
	*ret = (struct verdict_session){
		.id = "s", .config = &config, .record = &record, .note = note, .workspace_fd = -1
	};
	return step("session", err);
}

void session_release(const struct walk_facts *facts, struct walk_held *held, struct verdict_session *session)
{
	(void)facts, (void)held, (void)session;
	strcat(taken, " release");
}

int cwd_step(const struct cwd_facts *facts, struct verdict_cwd *ret, struct cordon_error *err)
{
	(void)facts, (void)ret;
	return step("cwd", err);
}

int capability_step(const struct walk_facts *facts, const struct walk_held *held, const struct verdict *verdict,
                    struct grants *ret, bool *ret_asked, struct cordon_error *err)
{
	(void)facts, (void)held, (void)ret, (void)ret_asked;
	assert_string_equal(verdict->session.id, "s");
	return step("capability", err);
}

int capability_question(const struct walk_facts *facts, const struct walk_held *held, const struct verdict *verdict,
                        struct gate_question *ret_question, struct cordon_error *err)
{
	(void)facts, (void)held, (void)verdict, (void)err;
	*ret_question = (struct gate_question){ .ended_fd = -1 };
	return 0;
}

int gate_ask(const struct gate *gate, struct arena *arena, const struct config *config,
             const struct gate_question *question, struct gate_answer *ret_answer, struct cordon_error *err)
{
	(void)gate, (void)arena, (void)config, (void)ret_answer;
	assert_string_equal(question->rule, rule);
	return step("gate", err);
}

int profile_step(const struct walk_facts *facts, struct walk_held *held, const struct verdict *verdict,
                 struct trees **ret_trees, struct profile *ret, struct cordon_error *err)
{
	(void)facts, (void)held, (void)verdict, (void)ret_trees, (void)ret;
	return step("profile", err);
}

static int step_running(struct running *running, int wait_ms, bool *ret_finished, struct cordon_error *err)
{
	(void)running, (void)wait_ms, (void)err;
	*ret_finished = true;
	return 0;
}

int run_step_start(struct execution *execution, struct cordon_error *err)
{
	static const struct running_ops ops = { .step = step_running };
	static struct running running = { .ops = &ops };
	execution->run.running = !refusing || strcmp(refusing, "start") ? &running : NULL;
	return step("start", err);
}

int run_step_finish(struct execution *execution, struct cordon_error *err)
{
	execution->run.ended = ended;
	return step("finish", err);
}

void run_release(struct execution *execution)
{
	(void)execution;
}

int limits_pause(struct execution *execution, struct cordon_error *err)
{
	(void)execution, (void)err;
	return 0;
}

int leaks_begin_tool(struct execution *execution, const struct walk_tool *tool, struct secret_screen **ret_screen,
                     struct cordon_error *err)
{
	(void)execution, (void)tool, (void)err;
	*ret_screen = NULL;
	return 0;
}

int leaks_end(struct execution *execution)
{
	(void)execution;
	return 0;
}

int leaks_clean_denials(struct execution *execution)
{
	(void)execution;
	return 0;
}

int leaks_block(const struct execution *execution, struct cordon_error *err)
{
	(void)execution, (void)err;
	return 0;
}

int audit_step_intent(struct execution *execution, struct cordon_error *err)
{
	(void)execution;
	return step("intent", err);
}

void audit_step_running(struct execution *execution)
{
	(void)execution;
}

int audit_step_result(struct execution *execution, struct cordon_error *err)
{
	(void)execution;
	return step("result", err);
}

int audit_step_tool_result(struct execution *execution, uint64_t bytes, struct cordon_error *err)
{
	(void)execution;
	assert_int_equal(bytes, 42);
	return step("result", err);
}

void audit_step_denial(struct execution *execution, struct cordon_error *err)
{
	(void)execution, (void)err;
	strcat(taken, " denial");
}

void ledger_release(struct ledger *ledger, struct ledger_room *room)
{
	(void)ledger, (void)room;
}

void trees_free(struct trees *trees, bool started)
{
	(void)trees, (void)started;
}

void jobs_leave(struct job_place *place, bool remove)
{
	(void)place, (void)remove;
}

/* ---- a walk ------------------------------------------------------------------------------------------------------ */

static struct cordon cordon;
static struct cordon_request request;
static struct cordon_error err;

static int set_up(void **state)
{
	(void)state;
	static const char *words[] = { "true" };
	request.argv = (struct strings){ .items = words, .count = 1 };
	*taken = '\0';
	refusing = note = rule = NULL;
	ended = false;
	memset(&err, 0, sizeof(err));
	return 0;
}

static int go(enum walk_stage until, bool probe)
{
	struct execution *execution;
	*taken = '\0';
	assert_int_equal(walk_new(&cordon, &request, until == WALK_DECIDED, &execution, &err), 0);
	execution->facts.probe = probe;
	int result = walk(execution, until, &err);
	if (result == 0)
		assert_int_equal(execution->stage, until);
	walk_free(execution);
	return result;
}

static void test_six_steps_in_order(void **state)
{
	(void)state;
	assert_int_equal(go(WALK_ENDED, false), 0);
	assert_string_equal(taken, "session cwd capability profile intent start finish result release");
}

static void test_a_dry_walk_ends_with_the_verdict(void **state)
{
	(void)state;
	assert_int_equal(go(WALK_DECIDED, false), 0);
	assert_string_equal(taken, "session cwd capability profile release");
	refusing = "capability";
	assert_int_equal(go(WALK_DECIDED, false), -1);
	assert_string_equal(taken, "session cwd capability release");
}

static void test_a_probe_leaves_no_row(void **state)
{
	(void)state;
	assert_int_equal(go(WALK_ENDED, true), 0);
	assert_string_equal(taken, "session cwd capability profile start finish release");
	refusing = "start";
	assert_int_equal(go(WALK_ENDED, true), -1);
	assert_null(strstr(taken, "denial"));
}

/* The first step that refuses is the one that is told, nothing comes after it, and it is recorded. */
static void test_the_order_of_refusal(void **state)
{
	static const struct {
		const char *step;
		enum cordon_step named;
		const char *taken;
	} rows[] = {
		{ "session", CORDON_STEP_SESSION, "session denial release" },
		{ "cwd", CORDON_STEP_CWD, "session cwd denial release" },
		{ "capability", CORDON_STEP_CAPABILITY, "session cwd capability denial release" },
		{ "profile", CORDON_STEP_PROFILE, "session cwd capability profile denial release" },
		{ "intent", CORDON_STEP_AUDIT, "session cwd capability profile intent denial release" },
		{ "start", CORDON_STEP_RUN, "session cwd capability profile intent start denial release" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		refusing = rows[i].step;
		assert_int_equal(go(WALK_ENDED, false), -1);
		assert_string_equal(taken, rows[i].taken);
		assert_int_equal(err.step, rows[i].named);
	}
	note = "a file of the configuration is invalid";
	assert_int_equal(go(WALK_ENDED, false), -1);
	assert_non_null(strstr(err.remediation, note));
}

static void test_what_fails_after_the_command_ran_says_so(void **state)
{
	(void)state;
	ended = true;
	refusing = "result";
	assert_int_equal(go(WALK_ENDED, false), -1);
	assert_int_equal(err.step, CORDON_STEP_AUDIT);
	assert_non_null(strstr(err.reason, "the command ran"));
	assert_false(err.retriable);
	assert_null(strstr(taken, "denial"));
	refusing = "finish";
	assert_int_equal(go(WALK_ENDED, false), -1);
	assert_non_null(strstr(err.reason, "the command ran"));
	assert_string_equal(taken, "session cwd capability profile intent start finish denial release");
	ended = false;
	assert_int_equal(go(WALK_ENDED, false), -1);
	assert_null(strstr(err.reason, "the command ran"));
}

static void test_no_command_is_an_invalid_request(void **state)
{
	struct execution *execution;
	(void)state;
	request.argv.count = 0;
	assert_int_equal(walk_new(&cordon, &request, false, &execution, &err), -1);
	assert_int_equal(err.class, CORDON_E_INVALID_REQUEST);
}

/* ---- file tools -------------------------------------------------------------------------------------------------- */

static int judge(void *arg, struct arena *arena, const struct verdict *verdict, const char **ret_rule,
                 struct cordon_error *ret_err)
{
	(void)arena;
	assert_string_equal(arg, "arg");
	assert_string_equal(verdict->session.id, "s");
	*ret_rule = rule;
	return step("judge", ret_err);
}

static int act(void *arg, struct arena *arena, const struct verdict *verdict, struct secret_screen *screen,
               uint64_t *ret_bytes, struct cordon_error *ret_err)
{
	(void)arena, (void)screen, (void)arg, (void)verdict;
	*ret_bytes = 42;
	return step("act", ret_err);
}

static void test_a_file_tool_takes_the_walk(void **state)
{
	static char arg[] = "arg";
	static const struct {
		const char *refusing;
		enum cordon_step named;
		const char *taken;
	} rows[] = {
		{ "judge", CORDON_STEP_CAPABILITY, "session cwd capability judge denial release" },
		{ "gate", CORDON_STEP_CAPABILITY, "session cwd capability judge gate denial release" },
		{ "intent", CORDON_STEP_AUDIT, "session cwd capability judge gate intent denial release" },
		{ "act", CORDON_STEP_RUN, "session cwd capability judge gate intent act denial release" },
	};
	const struct walk_tool tool = { .name = "read", .paths = { "file" }, .judge = judge, .act = act, .arg = arg };
	(void)state;
	request.argv.count = 0;
	assert_int_equal(walk_tool(&cordon, &request, &tool, &err), 0);
	assert_string_equal(taken, "session cwd capability judge intent act result release");
	rule = "a rule asks";
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		*taken = '\0';
		refusing = rows[i].refusing;
		assert_int_equal(walk_tool(&cordon, &request, &tool, &err), -1);
		assert_string_equal(taken, rows[i].taken);
		assert_int_equal(err.step, rows[i].named);
	}
}

#define CASE(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_six_steps_in_order),
		CASE(test_a_dry_walk_ends_with_the_verdict),
		CASE(test_a_probe_leaves_no_row),
		CASE(test_the_order_of_refusal),
		CASE(test_what_fails_after_the_command_ran_says_so),
		CASE(test_no_command_is_an_invalid_request),
		CASE(test_a_file_tool_takes_the_walk),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

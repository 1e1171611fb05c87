/* Step 5: a sandbox of the command's own or the session's, in which order a command is started, and how it ends when
 * several things fail. The driver and all that the step calls are this test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "egress/egress.h"
#include "egress/publish.h"
#include "git-broker.h"
#include "host/kernel-mounts.h"
#include "paths/trees.h"
#include "secrets/guard.h"
#include "session/registry.h"
#include "walk.h"

#include <cmocka.h>

/* ---- what the step calls ---------------------------------------------------------------------------------------- */

static char taken[512];                 /* what was called, in its order */
static const char *failing[3];          /* the calls that fail; or NULL */
static bool lost;                       /* the sandbox does not answer */
static bool shares;                     /* the session has a sandbox that the command may be in */
static enum sandbox_end left_as;
static unsigned watched;

static bool fails(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(failing); i++)
		if (failing[i] && !strcmp(failing[i], name))
			return true;
	return false;
}

static void note(const char *name)
{
	assert_true(strlen(taken) + strlen(name) + 2 < sizeof(taken));
	strcat(taken, *taken ? " " : "");
	strcat(taken, name);
}

static int call(const char *name, struct cordon_error *err)
{
	note(name);
	return fails(name) ? (fail)(err, CORDON_E_INTERNAL, 0, NULL, "%s", name) : 0;
}

/* The objects that nobody looks into. */
static struct sandbox own, shared;
static char live, view, publish;
static struct egress egress;
static struct egress_command connections;

int leaks_begin(struct execution *execution, struct cordon_error *err)
{
	(void)execution;
	return call("secrets", err);
}

struct output_filter leaks_filter(struct execution *execution)
{
	(void)execution;
	return (struct output_filter){ 0 };
}

int leaks_end(struct execution *execution)
{
	(void)execution;
	return call("leaks", NULL);
}

int leaks_clean_denials(struct execution *execution)
{
	(void)execution;
	return 0;
}

void leaks_free(struct execution *execution)
{
	(void)execution;
}

void credentials_wipe(struct execution *execution)
{
	(void)execution;
	note("wipe");
}

int secret_guard_terms(struct secret_guard *guard, bool with_key, struct secret_terms *ret_terms)
{
	(void)guard, (void)with_key, (void)ret_terms;
	return 0;
}

enum command_wish session_wish(void *execution)
{
	(void)execution;
	return (enum command_wish)0;
}

char *const *request_environment(const struct cordon_request *of)
{
	static char *const environment[] = { NULL };
	(void)of;
	return environment;
}

uint64_t kernel_mounts_version(void)
{
	return 7;
}

int sandboxes_refresh(struct sandboxes *sandboxes, const struct sandbox_request *wanted, struct cordon_error *err)
{
	(void)sandboxes, (void)wanted;
	return call("refresh", err);
}

int sandboxes_enter(struct sandboxes *sandboxes, const struct sandbox_request *wanted, struct sandbox_place *place,
                    struct cordon_error *err)
{
	(void)sandboxes;
	assert_true(wanted->walls.stays);
	assert_int_equal(wanted->walls.mounts, 7);
	assert_string_equal(wanted->session_id, "s");
	if (shares) {
		place->live = (struct live *)&live;
		place->view = (struct sandbox_view *)&view;
	}
	return call("enter", err);
}

void sandboxes_leave(struct sandboxes *sandboxes, struct sandbox_place *place, enum sandbox_end end)
{
	(void)sandboxes;
	if (!place->live)
		return;
	place->live = NULL;
	left_as = end;
	note("leave");
}

struct sandbox *sandbox_of(const struct sandbox_place *place)
{
	assert_ptr_equal(place->live, &live);
	return &shared;
}

int sandbox_join_egress(const struct sandbox_place *place, const struct egress_command_facts *facts,
                        struct egress_command **ret_command, struct cordon_error *err)
{
	(void)place, (void)facts;
	*ret_command = &connections;
	return call("join-shared", err);
}

void sandbox_set_running(struct sandbox_place *place, struct running *running)
{
	(void)place;
	if (running)
		note("running");
}

int egress_begin(const struct egress_facts *facts, struct egress **ret_egress, struct cordon_error *err)
{
	assert_false(facts->stays);
	if (fails("egress"))
		return call("egress", err);
	*ret_egress = &egress;
	return call("egress", err);
}

struct address egress_command_address(const char *audit_id)
{
	(void)audit_id;
	return (struct address){ 0 };
}

int *egress_listeners(struct egress *of)
{
	assert_ptr_equal(of, &egress);
	return NULL;
}

void egress_started(struct egress *of, bool listens)
{
	(void)of;
	note(listens ? "listeners" : "deaf");
}

int egress_fd(const struct egress *of)
{
	return of == &egress ? 10 : 11;
}

void egress_handle(void *of)
{
	(void)of;
}

int egress_join(struct egress *of, const struct egress_command_facts *facts, struct egress_command **ret_command,
                struct cordon_error *err)
{
	(void)of, (void)facts;
	*ret_command = &connections;
	return call("join", err);
}

static const char *token;               /* that the command has to show; or NULL */

const char *egress_command_token(const struct egress_command *command)
{
	assert_ptr_equal(command, &connections);
	return token;
}

int credentials_deliver_proxy(struct execution *execution, const char *its, unsigned port, struct cordon_error *err)
{
	(void)execution;
	assert_ptr_equal(its, token);
	assert_int_equal(port, 4711);
	return call("deliver", err);
}

int egress_leave(struct egress_command *command, struct egress_report *report, struct cordon_error *err)
{
	assert_ptr_equal(command, &connections);
	(void)report;
	return call("part", err);
}

int egress_end(struct egress *of, struct cordon_error *err)
{
	(void)of;
	return call("egress-end", err);
}

void egress_free(struct egress *of)
{
	if (of)
		note("egress-free");
}

int publish_begin(const struct publish_facts *facts, struct publish **ret_publish, struct cordon_error *err)
{
	(void)facts;
	if (fails("publish"))
		return call("publish", err);
	*ret_publish = (struct publish *)&publish;
	return call("publish", err);
}

void publish_started(struct publish *of, const struct sandbox *sandbox)
{
	(void)of;
	assert_ptr_equal(sandbox, &own);
	note("published");
}

struct egress *publish_egress(const struct publish *of)
{
	static struct egress its;
	(void)of;
	return &its;
}

void publish_free(struct publish *of)
{
	if (of)
		note("publish-free");
}

int git_broker_begin(struct execution *execution, struct git_broker **ret_broker, struct cordon_error *err)
{
	(void)execution, (void)ret_broker;
	return call("broker", err);
}

const struct rename_watch *git_broker_renames(const struct git_broker *broker)
{
	(void)broker;
	return NULL;
}

void git_broker_free(struct git_broker *broker)
{
	(void)broker;
}

int limits_end(struct execution *execution, struct cordon_error *err)
{
	(void)execution;
	return call("limits", err);
}

const struct captured *remarks_source(const struct execution *execution)
{
	return &execution->run.outcome.streams[CORDON_STDERR];
}

int remarks_add(struct execution *execution)
{
	(void)execution;
	return call("remarks", NULL);
}

int remarks_add_success(struct execution *execution)
{
	(void)execution;
	return 0;
}

int trees_keep_shown(struct trees *trees)
{
	(void)trees;
	return call("shown", NULL);
}

int trees_judge(struct trees *trees)
{
	(void)trees;
	return call("judge", NULL);
}

/* ---- the driver -------------------------------------------------------------------------------------------------- */

static int end_running(struct running *running, struct outcome *ret_outcome, struct cordon_error *err)
{
	(void)running, (void)ret_outcome;
	return call("end", err);
}

static void free_running(struct running *running)
{
	(void)running;
	note("free");
}

static int raise_walls(const struct driver *driver, const struct walls *walls, struct sandbox **ret_sandbox,
                       struct cordon_error *err)
{
	assert_false(walls->stays);
	own.driver = driver;
	if (call("raise", err) < 0)
		return -1;
	*ret_sandbox = &own;
	return 0;
}

static void describe(const struct sandbox *sandbox, struct arena *arena, const struct profile *profile,
                     const char *isolation[CORDON_WALL_MAX])
{
	(void)sandbox, (void)arena, (void)profile;
	isolation[CORDON_WALL_NETWORK] = "this test";
}

static int take_listeners(struct sandbox *sandbox, int *ret_fds)
{
	(void)ret_fds;
	assert_ptr_equal(sandbox, &own);
	return fails("listeners") ? -1 : 0;
}

static int start_command(struct sandbox *sandbox, const struct command *command, struct running **ret_running,
                         struct cordon_error *err)
{
	static const struct running_ops ops = { .end = end_running, .free = free_running };
	static struct running running = { .ops = &ops };
	assert_ptr_equal(sandbox, command->view ? &shared : &own);
	watched = command->watched_count;
	if (call("start", err) < 0)
		return -1;
	if (lost)
		return (fail)(err, CORDON_E_INTERNAL, 0, NULL, "it does not answer"), 1;
	*ret_running = &running;
	return 0;
}

static void lower(struct sandbox *sandbox)
{
	assert_ptr_equal(sandbox, &own);
	note("lower");
}

static uint16_t loopback_port(const struct sandbox *sandbox)
{
	assert_ptr_equal(sandbox, &own);
	return 4711;
}

static const struct driver_keeping keeping;
static const struct driver on_loopback = { .name = "on loopback", .describe = describe, .raise = raise_walls,
	.take_listeners = take_listeners, .loopback_port = loopback_port, .start = start_command, .lower = lower };
static const struct driver one_by_one = { .name = "one by one", .describe = describe, .raise = raise_walls,
	.take_listeners = take_listeners, .start = start_command, .lower = lower };
static const struct driver keeps = { .name = "keeps", .keeping = &keeping, .describe = describe, .raise = raise_walls,
	.take_listeners = take_listeners, .start = start_command, .lower = lower };

/* ---- a command --------------------------------------------------------------------------------------------------- */

static struct cordon cordon;
static struct cordon_request request;
static struct cordon_error err;

static int set_up(void **state)
{
	static const struct config config;
	static const struct session_record record;
	static const char *words[] = { "true" };
	struct execution *execution = calloc(1, sizeof(*execution));
	*taken = '\0';
	memset(failing, 0, sizeof(failing));
	memset(&err, 0, sizeof(err));
	lost = shares = false;
	token = NULL;
	left_as = SANDBOX_STAYS;
	request = (struct cordon_request){ .argv = { .items = words, .count = 1 }, .stdin_fd = -1 };
	execution->cordon = &cordon;
	execution->request = &request;
	execution->verdict.session =
		(struct verdict_session){ .id = "s", .record = &record, .config = &config, .driver = &keeps };
	*state = execution;
	return 0;
}

static int tear_down(void **state)
{
	struct execution *execution = *state;
	arena_free(&execution->arena);
	free(execution);
	return 0;
}

/* With a network of listed hosts, and a port. */
static void give_network(struct execution *execution)
{
	static const char *ports[] = { "8080:80" };
	execution->verdict.profile.egress.count = 1;
	execution->verdict.grants.set.publish = (struct strings){ .items = ports, .count = 1 };
}

static void assert_taken(const char *expected)
{
	if (strcmp(taken, expected))
		fail_msg("<%s> instead of <%s>", taken, expected);
	*taken = '\0';
}

static void assert_failed(int result, const char *reason)
{
	assert_int_equal(result, -1);
	assert_string_equal(err.reason, reason);
}

/* ---- the start --------------------------------------------------------------------------------------------------- */

static void test_a_one_off_raises_starts_and_lowers(void **state)
{
	struct execution *execution = *state;
	execution->verdict.session.one_off = true;
	assert_int_equal(run_step_start(execution, &err), 0);
	assert_taken("secrets raise broker start wipe running");
	assert_string_equal(execution->run.isolation[CORDON_WALL_NETWORK], "this test");
	assert_null(execution->run.command.wish);
	run_release(execution);
	assert_taken("free lower wipe");
}

static void test_the_network_of_its_own_sandbox(void **state)
{
	struct execution *execution = *state;
	execution->verdict.session.one_off = true;
	give_network(execution);
	assert_int_equal(run_step_start(execution, &err), 0);
	assert_taken("secrets raise egress publish join broker start wipe running listeners published");
	assert_int_equal(watched, 2);
	run_release(execution);
	assert_taken("part publish-free egress-free free lower wipe");
	/* Without its listeners a command has no network, and that is no error. */
	*execution = (struct execution){ .cordon = &cordon, .request = &request, .verdict = execution->verdict };
	failing[0] = "listeners";
	assert_int_equal(run_step_start(execution, &err), 0);
	assert_taken("secrets raise egress publish join broker start wipe running deaf published");
}

/* Once the port is known and before the command is there, it is told both. */
static void test_the_token_of_its_proxy(void **state)
{
	struct execution *execution = *state;
	execution->verdict.session.driver = &on_loopback;
	execution->verdict.session.one_off = true;
	give_network(execution);
	token = "a token";
	assert_int_equal(run_step_start(execution, &err), 0);
	assert_taken("secrets raise egress publish join deliver broker start wipe running listeners published");
	run_release(execution);
	assert_taken("part publish-free egress-free free lower wipe");
	*execution = (struct execution){ .cordon = &cordon, .request = &request, .verdict = execution->verdict };
	failing[0] = "deliver";
	assert_int_equal(run_step_start(execution, &err), -1);
	assert_taken("secrets raise egress publish join deliver");
	run_release(execution);
	assert_taken("part publish-free egress-free lower wipe");
}

static void test_a_command_of_a_session_is_started_in_its_sandbox(void **state)
{
	struct execution *execution = *state;
	shares = true;
	give_network(execution);
	assert_int_equal(run_step_start(execution, &err), 0);
	/* Its network and its ports are those of the sandbox. */
	assert_taken("secrets enter join-shared broker start wipe running");
	assert_int_equal(watched, 0);
	assert_non_null(execution->run.command.wish);
	run_release(execution);
	assert_taken("part free leave wipe");
	assert_int_equal(left_as, SANDBOX_STAYS);
}

static void test_who_has_a_sandbox_of_its_own(void **state)
{
	struct execution *execution = *state;
	/* It asks for other walls than its session has. */
	assert_int_equal(run_step_start(execution, &err), 0);
	assert_taken("secrets enter raise broker start wipe running");
	shares = true;
	request.fresh = true;
	assert_int_equal(run_step_start(execution, &err), 0);
	assert_taken("secrets raise broker start wipe running");
	request.fresh = false;
	execution->facts.probe = true;
	assert_int_equal(run_step_start(execution, &err), 0);
	assert_taken("secrets raise broker start wipe running");
	execution->facts.probe = false;
	execution->verdict.session.driver = &one_by_one;
	assert_int_equal(run_step_start(execution, &err), 0);
	assert_taken("secrets raise broker start wipe running");
}

static void test_a_sandbox_that_does_not_answer_is_left_as_lost(void **state)
{
	struct execution *execution = *state;
	shares = lost = true;
	assert_int_equal(run_step_start(execution, &err), -1);
	assert_taken("secrets enter join-shared broker start wipe part leave");
	assert_int_equal(left_as, SANDBOX_LOST);
	/* Whoever started it may begin again. */
	assert_int_equal(err.class, CORDON_E_SESSION_BUSY);
	assert_string_equal(err.boundary, "lifetime");
	assert_null(execution->run.running);
	run_release(execution);
	assert_taken("wipe");
}

static void test_nothing_is_started_after_a_failure(void **state)
{
	static const struct {
		const char *failing, *taken, *released;
	} rows[] = {
		{ "secrets", "secrets", "wipe" },
		{ "raise", "secrets raise", "wipe" },
		{ "egress", "secrets raise egress", "lower wipe" },
		{ "publish", "secrets raise egress publish", "egress-free lower wipe" },
		{ "join", "secrets raise egress publish join", "part publish-free egress-free lower wipe" },
		{ "broker", "secrets raise egress publish join broker", "part publish-free egress-free lower wipe" },
		{ "start", "secrets raise egress publish join broker start wipe",
		  "part publish-free egress-free lower wipe" },
	};
	struct execution *execution = *state;
	execution->verdict.session.one_off = true;
	give_network(execution);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		*execution =
			(struct execution){ .cordon = &cordon, .request = &request, .verdict = execution->verdict };
		failing[0] = rows[i].failing;
		assert_failed(run_step_start(execution, &err), rows[i].failing);
		assert_taken(rows[i].taken);
		assert_null(execution->run.running);
		run_release(execution);
		assert_taken(rows[i].released);
	}
}

/* ---- the finish -------------------------------------------------------------------------------------------------- */

static void start(struct execution *execution)
{
	execution->verdict.session.one_off = !shares;
	execution->verdict.profile.walls = WALL_BIT(MASKED) | WALL_BIT(PROTECTED);
	give_network(execution);
	assert_int_equal(run_step_start(execution, &err), 0);
	*taken = '\0';
}

static void test_an_end(void **state)
{
	struct execution *execution = *state;
	start(execution);
	assert_int_equal(run_step_finish(execution, &err), 0);
	assert_taken("end leaks publish-free egress-end part egress-free limits shown judge");
	assert_true(execution->run.ended);
	assert_int_equal(execution->denials.count, 0);
	run_release(execution);
	assert_taken("free lower wipe");
}

static void test_a_command_that_failed_gets_remarks(void **state)
{
	struct execution *execution = *state;
	start(execution);
	execution->run.outcome.exit_code = 1;
	assert_int_equal(run_step_finish(execution, &err), 0);
	assert_taken("end leaks publish-free egress-end part egress-free limits remarks shown judge");
}

static void test_the_first_failure_is_told_and_what_was_left_is_judged(void **state)
{
	static const struct {
		const char *failing[3], *taken, *reason;
		bool ended;
	} rows[] = {
		/* That nothing ran is the first thing to tell, whatever else fails. */
		{ { "end", "egress-end", "limits" },
		  "end leaks publish-free egress-end part egress-free judge",
		  "end",
		  false },
		{ { "egress-end", "limits" },
		  "end leaks publish-free egress-end part egress-free judge",
		  "egress-end",
		  true },
		{ { "part" }, "end leaks publish-free egress-end part egress-free judge", "part", true },
		{ { "egress-end", "part" },
		  "end leaks publish-free egress-end part egress-free judge",
		  "egress-end",
		  true },
		{ { "limits", "judge" },
		  "end leaks publish-free egress-end part egress-free limits judge",
		  "limits",
		  true },
		{ { "shown", "judge" },
		  "end leaks publish-free egress-end part egress-free limits shown judge",
		  NULL,
		  true },
		{ { "judge" }, "end leaks publish-free egress-end part egress-free limits shown judge", NULL, true },
		{ { "leaks" }, "end leaks publish-free egress-end part egress-free limits shown judge", NULL, true },
	};
	struct execution *execution = *state;
	struct cordon_error no_memory;
	fail_oom(&no_memory);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		*execution =
			(struct execution){ .cordon = &cordon, .request = &request, .verdict = execution->verdict };
		memset(failing, 0, sizeof(failing));
		start(execution);
		memcpy(failing, rows[i].failing, sizeof(failing));
		assert_failed(run_step_finish(execution, &err), rows[i].reason ? rows[i].reason : no_memory.reason);
		assert_taken(rows[i].taken);
		assert_int_equal(execution->run.ended, rows[i].ended);
	}
}

static void test_what_became_of_others_in_the_sandbox_is_told(void **state)
{
	struct execution *execution = *state;
	shares = true;
	start(execution);
	execution->run.outcome.sandbox_ended = execution->run.place.follows_lost = true;
	execution->run.place.left = "job 1";
	execution->run.place.ended = "job 2";
	assert_int_equal(run_step_finish(execution, &err), 0);
	assert_int_equal(execution->denials.count, 4);
	assert_non_null(strstr(execution->denials.items[2].note, "job 1"));
	assert_non_null(strstr(execution->denials.items[3].note, "job 2"));
	run_release(execution);
	assert_int_equal(left_as, SANDBOX_ENDED);
}

static void test_output_that_was_handed_on_is_not_called_cut(void **state)
{
	struct execution *execution = *state;
	struct outcome *outcome = &execution->run.outcome;
	execution->verdict.profile.limits.stderr_bytes = 100;
	request.hand_on = true;
	start(execution);
	outcome->streams[CORDON_STDOUT].truncated = outcome->streams[CORDON_STDERR].truncated = true;
	assert_int_equal(execution->run.command.stderr_cap, 100);
	assert_int_equal(run_step_finish(execution, &err), 0);
	assert_false(outcome->streams[CORDON_STDOUT].truncated);
	assert_true(outcome->streams[CORDON_STDERR].truncated);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_a_one_off_raises_starts_and_lowers),
		CASE(test_the_network_of_its_own_sandbox),
		CASE(test_the_token_of_its_proxy),
		CASE(test_a_command_of_a_session_is_started_in_its_sandbox),
		CASE(test_who_has_a_sandbox_of_its_own),
		CASE(test_a_sandbox_that_does_not_answer_is_left_as_lost),
		CASE(test_nothing_is_started_after_a_failure),
		CASE(test_an_end),
		CASE(test_a_command_that_failed_gets_remarks),
		CASE(test_the_first_failure_is_told_and_what_was_left_is_judged),
		CASE(test_what_became_of_others_in_the_sandbox_is_told),
		CASE(test_output_that_was_handed_on_is_not_called_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Step 5: a sandbox of the command's own or the session's, in which order a command is started, and how it ends when
 * several things fail. The driver and all that the step calls are stand-ins (tests/support/step-run-ground.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "session/registry.h"
#include "step-run-ground.h"
#include "walk.h"

#include <cmocka.h>

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

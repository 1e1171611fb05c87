/* Step 6: what each row says, what space is reserved with the intent, and what happens when a row cannot be written.
 * The ledger is this test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "audit/ledger.h"
#include "base/json.h"
#include "config/config.h"
#include "session/jobs.h"
#include "walk.h"

#include <cmocka.h>

/* ---- the ledger -------------------------------------------------------------------------------------------------- */

static json_t *rows;
static size_t reserved;
static int failures;                    /* so many rows are refused from here on, */
static int failure_errno;
static size_t line_max;                 /* and those that are longer; 0: none is too long */

static int append(const char *line, size_t length, struct cordon_error *err)
{
	json_t *row = json_loadb(line, length, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(row);
	if (failures > 0 || (line_max && length > line_max)) {
		failures--;
		json_decref(row);
		return (fail)(err, CORDON_E_AUDIT_UNAVAILABLE, failure_errno, "ledger", "no space");
	}
	json_array_append_new(rows, row);
	return 0;
}

int ledger_append(struct ledger *ledger, const char *line, size_t length, struct cordon_error *err)
{
	(void)ledger;
	return append(line, length, err);
}

int ledger_append_reserving(struct ledger *ledger, const char *line, size_t length, size_t bytes,
                            struct ledger_room *ret_room, struct cordon_error *err)
{
	(void)ledger;
	if (append(line, length, err) < 0)
		return -1;
	reserved = bytes;
	*ret_room = (struct ledger_room){ .slots = 1, .left = bytes };
	return 0;
}

int ledger_append_in(struct ledger *ledger, struct ledger_room *room, const char *line, size_t length,
                     struct cordon_error *err)
{
	(void)ledger, (void)room;
	return append(line, length, err);
}

int leaks_clean_row(struct execution *execution, struct json *json, struct cordon_error *ret_err)
{
	(void)execution, (void)json, (void)ret_err;
	return 0;
}

int leaks_clean_error(struct execution *execution, struct cordon_error *ret_err)
{
	(void)execution, (void)ret_err;
	return 0;
}

int leaks_list(struct execution *execution)
{
	(void)execution;
	return 0;
}

void leaks_write_json(struct json *json, const struct cordon_secret *secrets, size_t count, uint64_t total)
{
	(void)secrets, (void)count;
	json_key_uint(json, "secrets_found", total);
}

const char *const network_mode_names[] = { "none", "hosts", "all" };

static const char *text(size_t row, const char *key)
{
	return json_string_value(json_object_get(json_array_get(rows, row), key));
}

static json_t *member(size_t row, const char *key)
{
	json_t *found = json_object_get(json_array_get(rows, row), key);
	assert_non_null(found);
	return found;
}

/* ---- a walk that has come to step 6 ------------------------------------------------------------------------------ */

static struct config config;
static const struct driver driver = { .name = "test" };

static int set_up(void **state)
{
	struct execution *execution = calloc(1, sizeof(*execution));
	struct cordon_request *request = calloc(1, sizeof(*request));
	rows = json_array();
	reserved = line_max = 0;
	failures = 0;
	failure_errno = ENOSPC;
	config = (struct config){ .enabled = true };
	strings_add(&execution->arena, &request->argv, "program");
	strings_add(&execution->arena, &request->argv, "--password=hunter2");
	execution->request = request;
	execution->cordon = calloc(1, sizeof(*execution->cordon));
	execution->facts = (struct walk_facts){ .arena = &execution->arena, .request = request };
	execution->verdict.session = (struct verdict_session){ .id = "s", .config = &config, .driver = &driver,
	                                                       .workspace = { .path = "/work" }, .workspace_fd = 7 };
	execution->verdict.cwd.path = "/work/sub";
	execution->verdict.grants.set =
		(struct capability_set){ .limits = { .memory_bytes = UINT64_MAX, .wall_ms = 60000 } };
	strcpy(execution->audit.id, "01TESTTESTTESTTESTTESTTEST");
	execution->stage = WALK_DECIDED;
	*state = execution;
	return 0;
}

static int tear_down(void **state)
{
	struct execution *execution = *state;
	free(execution->audit.isolation);
	free((void *)(uintptr_t)execution->request);
	free(execution->cordon);
	arena_free(&execution->arena);
	free(execution);
	json_decref(rows);
	return 0;
}

/* As step 5 leaves it. */
static void end(struct execution *execution)
{
	execution->run.isolation[CORDON_WALL_FILESYSTEM] = "a mechanism";
	audit_step_running(execution);
	execution->run.outcome.exit_code = 3;
	execution->run.outcome.duration_ms = 250;
	execution->run.outcome.streams[CORDON_STDOUT] = (struct captured){ .total = 12, .sha256 = "aa" };
	execution->run.outcome.streams[CORDON_STDERR] =
		(struct captured){ .total = 0, .sha256 = "bb", .truncated = true };
	assert_int_equal(denials_add(&execution->denials, &execution->arena, CORDON_WALL_NETWORK, "example.com:443",
	                             "denied", ""),
	                 0);
}

/* ---- the rows ---------------------------------------------------------------------------------------------------- */

static void test_the_intent(void **state)
{
	struct execution *execution = *state;
	struct cordon_error err;
	assert_int_equal(audit_step_intent(execution, &err), 0);
	assert_true(execution->audit.intended);
	assert_int_equal(json_array_size(rows), 1);
	assert_string_equal(text(0, "row"), "intent");
	assert_string_equal(text(0, "id"), execution->audit.id);
	assert_string_equal(text(0, "session"), "s");
	assert_string_equal(text(0, "cwd"), "/work/sub");
	assert_string_equal(text(0, "workspace"), "/work");
	assert_string_equal(text(0, "driver"), "test");
	json_t *capabilities = member(0, "capabilities");
	assert_true(json_is_null(json_object_get(capabilities, "memory_bytes")));
	assert_int_equal(json_integer_value(json_object_get(capabilities, "wall_ms")), 60000);
	assert_true(reserved > 0 && execution->audit.room.left == reserved);
}

/* Arguments may be secrets: the ledger has the program's name, the lengths and a hash. */
static void test_arguments_are_not_recorded(void **state)
{
	struct execution *execution = *state;
	struct cordon_error err;
	assert_int_equal(audit_step_intent(execution, &err), 0);
	char *dumped = json_dumps(rows, 0);
	assert_null(strstr(dumped, "hunter2"));
	free(dumped);
	assert_string_equal(text(0, "program"), "program");
	json_t *shape = member(0, "argv_shape");
	assert_int_equal(json_array_size(shape), 2);
	assert_int_equal(json_integer_value(json_array_get(shape, 1)), strlen("--password=hunter2"));
	const char *hash = text(0, "argv_sha256");
	assert_int_equal(strlen(hash), 64);
	/* "a", "bc" and "ab", "c" are two commands. */
	strings_add(&execution->arena, (struct strings *)(uintptr_t)&execution->request->argv, "");
	assert_int_equal(audit_step_intent(execution, &err), 0);
	assert_string_not_equal(text(1, "argv_sha256"), hash);
}

static void test_a_configuration_that_is_not_in_force_has_a_row(void **state)
{
	struct execution *execution = *state;
	struct cordon_error err;
	execution->verdict.session.note = "line 3 is invalid";
	assert_int_equal(audit_step_intent(execution, &err), 0);
	assert_string_equal(text(0, "row"), "config");
	assert_string_equal(text(0, "audit_id"), execution->audit.id);
	assert_string_equal(text(0, "note"), "line 3 is invalid");
	assert_string_equal(text(1, "row"), "intent");
}

static void test_connections_have_a_reserve_of_their_own(void **state)
{
	struct execution *execution = *state;
	struct cordon_error err;
	assert_int_equal(audit_step_intent(execution, &err), 0);
	size_t without = reserved;
	assert_int_equal(execution->audit.network_room.left, 0);
	execution->verdict.profile.egress.count = 1;
	execution->verdict.grants.set.network = NETWORK_HOSTS;
	assert_int_equal(audit_step_intent(execution, &err), 0);
	assert_true(execution->audit.network_room.left > 0);
	assert_int_equal(execution->audit.room.left, without);
	assert_int_equal(reserved, without + execution->audit.network_room.left);
}

static void test_no_row_no_run(void **state)
{
	struct execution *execution = *state;
	struct cordon_error err;
	failures = 1;
	assert_int_equal(audit_step_intent(execution, &err), -1);
	assert_false(execution->audit.intended);
	assert_int_equal(err.class, CORDON_E_AUDIT_UNAVAILABLE);
	/* Nor where only the note before it could not be written. */
	execution->verdict.session.note = "invalid";
	failures = 1;
	assert_int_equal(audit_step_intent(execution, &err), -1);
	assert_int_equal(json_array_size(rows), 0);
}

static void test_the_result(void **state)
{
	struct execution *execution = *state;
	struct cordon_error err;
	end(execution);
	assert_int_equal(audit_step_result(execution, &err), 0);
	assert_int_equal(json_array_size(rows), 1);
	assert_string_equal(text(0, "row"), "result");
	assert_string_equal(text(0, "id"), execution->audit.id);
	assert_int_equal(json_integer_value(member(0, "exit_code")), 3);
	assert_int_equal(json_integer_value(member(0, "duration_ms")), 250);
	assert_string_equal(json_string_value(json_object_get(member(0, "isolation"), "filesystem")), "a mechanism");
	assert_int_equal(json_integer_value(json_object_get(member(0, "stdout"), "bytes")), 12);
	assert_true(json_is_true(json_object_get(member(0, "stderr"), "truncated")));
	json_t *denial = json_array_get(member(0, "denials"), 0);
	assert_string_equal(json_string_value(json_object_get(denial, "what")), "example.com:443");
	assert_string_equal(json_string_value(json_object_get(denial, "wall")), "network");
}

static void test_a_limit_has_a_row(void **state)
{
	struct execution *execution = *state;
	struct cordon_error err;
	end(execution);
	execution->run.outcome.limit_hit = (struct limit_hit){ "time", "ms", 60001, 60000 };
	assert_int_equal(audit_step_result(execution, &err), 0);
	assert_string_equal(text(0, "row"), "limit");
	assert_string_equal(text(0, "limit"), "time");
	assert_int_equal(json_integer_value(member(0, "allowed")), 60000);
	assert_string_equal(text(1, "limit_hit"), "time");
}

static void add_denials(struct execution *execution, size_t count)
{
	static struct cordon_denial many[20000];
	assert_true(count <= ARRAY_SIZE(many));
	for (size_t i = 0; i < count; i++)
		many[i] = (struct cordon_denial){
			.what = "/some/path/that/was/denied", .wall = "filesystem", .note = "not granted", .grant = ""
		};
	execution->denials.items = many;
	execution->denials.count = count;
}

static void test_more_denials_than_a_row_holds(void **state)
{
	struct execution *execution = *state;
	struct cordon_error err;
	end(execution);
	add_denials(execution, 20000);
	line_max = LEDGER_LINE_MAX;
	assert_int_equal(audit_step_result(execution, &err), 0);
	json_t *denials = member(0, "denials");
	size_t listed = json_array_size(denials);
	char note[64];
	assert_in_range(listed, 1000, 19999);
	snprintf(note, sizeof(note), "%zu that are not listed", 20000 - (listed - 1));
	json_t *last = json_array_get(denials, listed - 1);
	assert_string_equal(json_string_value(json_object_get(last, "what")), "and more");
	assert_string_equal(json_string_value(json_object_get(last, "note")), note);
}

/* With the disk full, the row is cut to what was reserved; it is not left out. */
static void test_a_result_that_fits_into_the_reserve(void **state)
{
	struct execution *execution = *state;
	struct cordon_error err;
	assert_int_equal(audit_step_intent(execution, &err), 0);
	end(execution);
	add_denials(execution, 5000);
	line_max = execution->audit.room.left;
	assert_int_equal(audit_step_result(execution, &err), 0);
	assert_string_equal(text(1, "row"), "result");
	assert_in_range(json_array_size(member(1, "denials")), 1, 500);
	/* Of another failure it is not tried twice. */
	failure_errno = EIO;
	failures = 1;
	assert_int_equal(audit_step_result(execution, &err), -1);
	assert_int_equal(err.os_errno, EIO);
	assert_int_equal(json_array_size(rows), 2);
}

static void test_a_job_is_named_in_its_rows(void **state)
{
	struct execution *execution = *state;
	struct cordon_error err;
	struct job_place place = JOB_PLACE_NONE;
	((struct cordon_request *)(uintptr_t)execution->request)->job = execution->held.job = &place;
	assert_int_equal(audit_step_intent(execution, &err), 0);
	assert_string_equal(text(0, "job"), "started");
	end(execution);
	assert_int_equal(audit_step_result(execution, &err), 0);
	assert_string_equal(text(1, "job"), "ended");
	place.killed = true;
	assert_int_equal(audit_step_result(execution, &err), 0);
	assert_string_equal(text(2, "job"), "killed");
}

static void test_a_file_tool(void **state)
{
	struct execution *execution = *state;
	struct cordon_error err;
	const struct walk_tool tool = { .name = "rename", .paths = { "a", "b" } };
	execution->facts.tool = &tool;
	((struct cordon_request *)(uintptr_t)execution->request)->argv = (struct strings){ 0 };
	assert_int_equal(audit_step_intent(execution, &err), 0);
	assert_string_equal(text(0, "tool"), "rename");
	assert_int_equal(json_array_size(member(0, "paths")), 2);
	assert_null(text(0, "program"));
	assert_int_equal(audit_step_tool_result(execution, 512, &err), 0);
	assert_int_equal(json_integer_value(member(1, "bytes")), 512);
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

static int refused(struct cordon_error *err)
{
	memset(err, 0, sizeof(*err));
	(void)(fail)(err, CORDON_E_CAPABILITY_DENIED, 0, "/etc", "not granted");
	return (fail_remedy)(err, "grant it");
}

static void test_a_refusal(void **state)
{
	struct execution *execution = *state;
	struct cordon_error err;
	refused(&err);
	execution->stage = WALK_BEGIN;
	execution->verdict.session.note = "invalid";
	audit_step_denial(execution, &err);
	assert_string_equal(err.audit_id, execution->audit.id);
	assert_string_equal(text(0, "row"), "config");
	assert_string_equal(text(1, "row"), "denial");
	assert_string_equal(json_string_value(json_object_get(member(1, "error"), "reason")), "not granted");
	/* The note was written with the intent, if there was one. */
	execution->stage = WALK_DECIDED;
	audit_step_denial(execution, &err);
	assert_int_equal(json_array_size(rows), 3);
}

static void test_a_refusal_that_cannot_be_recorded(void **state)
{
	struct execution *execution = *state;
	struct cordon_error err;
	refused(&err);
	failures = 1;
	audit_step_denial(execution, &err);
	/* The reason stays; an id that is in no row is not named. */
	assert_string_equal(err.reason, "not granted");
	assert_string_equal(err.audit_id, "");
	refused(&err);
	assert_int_equal(audit_step_intent(execution, &err), 0);
	failures = 1;
	audit_step_denial(execution, &err);
	assert_string_equal(err.audit_id, execution->audit.id);
}

static void test_a_sandbox_that_is_off_leaves_no_row(void **state)
{
	struct execution *execution = *state;
	struct cordon_error err;
	refused(&err);
	config.enabled = false;
	execution->verdict.session.workspace_fd = -1;
	audit_step_denial(execution, &err);
	assert_int_equal(json_array_size(rows), 0);
	assert_string_equal(err.audit_id, "");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_the_intent),
		CASE(test_arguments_are_not_recorded),
		CASE(test_a_configuration_that_is_not_in_force_has_a_row),
		CASE(test_connections_have_a_reserve_of_their_own),
		CASE(test_no_row_no_run),
		CASE(test_the_result),
		CASE(test_a_limit_has_a_row),
		CASE(test_more_denials_than_a_row_holds),
		CASE(test_a_result_that_fits_into_the_reserve),
		CASE(test_a_job_is_named_in_its_rows),
		CASE(test_a_file_tool),
		CASE(test_a_refusal),
		CASE(test_a_refusal_that_cannot_be_recorded),
		CASE(test_a_sandbox_that_is_off_leaves_no_row),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* After a command: which limit it met becomes a remark, and a session that ran out of memory is paused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/driver.h"
#include "session/registry.h"
#include "session/session-row.h"
#include "walk.h"

#include <cmocka.h>

/* ---- what is called beyond its own parts ------------------------------------------------------------------------- */

static struct session_record record;
static unsigned changes, rows, retired;

bool run_failed(const struct execution *execution)
{
	return execution->run.outcome.exit_code || execution->run.outcome.signal;
}

void sandboxes_retire(struct sandboxes *sandboxes, const struct sandbox_place *place)
{
	(void)sandboxes, (void)place;
	retired++;
}

int registry_change(struct arena *arena, const char *data_dir, const char *id, registry_change_fn change, void *arg,
                    struct session_record *ret_record, struct cordon_error *err)
{
	(void)data_dir;
	assert_string_equal(id, "s");
	int changed = change(arena, &record, arg, err);
	changes += changed == 0;
	*ret_record = record;
	return changed < 0 ? -1 : 0;
}

int session_row_write(struct ledger *ledger, const char *change, const struct session_record *written,
                      bool removes_workspace, struct cordon_error *err)
{
	(void)ledger, (void)removes_workspace, (void)err;
	assert_string_equal(change, "paused");
	assert_int_equal(written->state, SESSION_PAUSED);
	rows++;
	return 0;
}

/* ---- a command that has ended ------------------------------------------------------------------------------------ */

static int set_up(void **state)
{
	struct execution *execution = calloc(1, sizeof(*execution));
	changes = rows = retired = 0;
	record = (struct session_record){ .id = "s" };
	execution->cordon = calloc(1, sizeof(*execution->cordon));
	execution->request = calloc(1, sizeof(*execution->request));
	execution->verdict.session =
		(struct verdict_session){ .id = "s",
		                          .workspace = { .path = "/work" },
		                          .workspace_fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC) };
	execution->verdict.profile.limits = (struct limits){ .memory_bytes = 64 << 20,
		                                             .processes = 64,
		                                             .open_files = 1024,
		                                             .disk_bytes = 1 << 30,
		                                             .tmp_bytes = 256 << 20 };
	execution->verdict.profile.walls = WALL_BIT(LIMIT_PROCESSES) | WALL_BIT(LIMIT_FILES) | WALL_BIT(LIMIT_DISK);
	execution->verdict.profile.spawn = true;
	for (int wall = 0; wall < CORDON_WALL_MAX; wall++)
		execution->run.isolation[wall] = "rlimit";
	*state = execution;
	return 0;
}

static int tear_down(void **state)
{
	struct execution *execution = *state;
	close(execution->verdict.session.workspace_fd);
	arena_free(&execution->arena);
	free((void *)(uintptr_t)execution->request);
	free(execution->cordon);
	free(execution);
	return 0;
}

static void fails_saying(struct execution *execution, enum cordon_stream stream, const char *text)
{
	execution->denials = (struct denials){ 0 };
	execution->run.outcome.exit_code = 1;
	memset(execution->run.outcome.streams, 0, sizeof(execution->run.outcome.streams));
	execution->run.outcome.streams[stream] = (struct captured){ .data = text, .length = strlen(text) };
}

static void assert_remark(struct execution *execution, const char *what, const char *note, const char *grant)
{
	struct cordon_error err;
	assert_int_equal(limits_end(execution, &err), 0);
	if (!what) {
		assert_int_equal(execution->denials.count, 0);
		return;
	}
	assert_int_equal(execution->denials.count, 1);
	const struct cordon_denial *denial = &execution->denials.items[0];
	assert_string_equal(denial->what, what);
	assert_non_null(strstr(denial->note, note));
	assert_string_equal(denial->grant, grant);
}

static void test_what_was_counted_is_certain(void **state)
{
	struct execution *execution = *state;
	execution->run.outcome.process_refusals = 3;
	assert_remark(execution, "processes", "3 more could not be started beside 64", "--processes, more than 64");
	execution->denials = (struct denials){ 0 };
	execution->run.outcome.process_refusals = 0;
	execution->run.outcome.disk_passed = true;
	execution->run.outcome.disk_used = UINT64_C(2) << 30;
	assert_remark(execution, "/work", "it held 2G when it ended; 1G are allowed", "--disk, more than 1G");
	execution->denials = (struct denials){ 0 };
	execution->run.outcome.disk_growth = true;
	assert_remark(execution, "/work", "it had added 2G", "--disk, more than 1G");
}

static void test_what_a_failed_command_printed_is_a_hint(void **state)
{
	struct execution *execution = *state;
	fails_saying(execution, CORDON_STDERR, "open: Too many open files\n");
	assert_remark(execution, "open files", "1024 for each process", "--open-files N");
	fails_saying(execution, CORDON_STDERR, "fork: Resource temporarily unavailable\n");
	assert_remark(execution, "processes", "64", "--processes N");
	fails_saying(execution, CORDON_STDERR, "write: No space left on device\n");
	assert_remark(execution, "/tmp", "256M", "--tmp SIZE");
	fails_saying(execution, CORDON_STDERR, "MemoryError: Cannot allocate memory\n");
	execution->run.outcome.memory_peak_bytes = 63 << 20;
	assert_remark(execution, "memory", "64M", "--memory SIZE");
	/* Far below the limit it was something else. */
	fails_saying(execution, CORDON_STDERR, "MemoryError: Cannot allocate memory\n");
	execution->run.outcome.memory_peak_bytes = 1 << 20;
	assert_remark(execution, NULL, NULL, NULL);
}

static void test_a_command_that_may_not_spawn_has_met_no_number(void **state)
{
	struct execution *execution = *state;
	execution->verdict.profile.spawn = false;
	execution->run.outcome.grouped = WALL_BIT(LIMIT_PROCESSES);
	fails_saying(execution, CORDON_STDERR, "sh: 1: Cannot fork\n");
	assert_remark(execution, "processes", "not granted", "--spawn");
	assert_string_equal(execution->denials.items[0].wall, "spawn");
}

static void test_no_hint_where_it_cannot_be_the_limit(void **state)
{
	struct execution *execution = *state;
	static const char words[] = "fork: Resource temporarily unavailable\n";
	/* A group counts refusals itself. */
	fails_saying(execution, CORDON_STDERR, words);
	execution->run.outcome.grouped = WALL_BIT(LIMIT_PROCESSES);
	assert_remark(execution, NULL, NULL, NULL);
	execution->run.outcome.grouped = 0;
	execution->run.isolation[CORDON_WALL_LIMIT_PROCESSES] = "none";
	assert_remark(execution, NULL, NULL, NULL);
	execution->run.isolation[CORDON_WALL_LIMIT_PROCESSES] = "rlimit";
	/* It succeeded; or it was ended by a limit, which is named already; or printed it where output is expected. */
	execution->run.outcome.exit_code = 0;
	assert_remark(execution, NULL, NULL, NULL);
	execution->run.outcome.exit_code = 1;
	execution->run.outcome.limit_hit.name = "time";
	assert_remark(execution, NULL, NULL, NULL);
	execution->run.outcome.limit_hit.name = NULL;
	fails_saying(execution, CORDON_STDOUT, words);
	assert_remark(execution, NULL, NULL, NULL);
	/* With a terminal there is one stream. */
	((struct cordon_request *)(uintptr_t)execution->request)->tty = true;
	assert_remark(execution, "processes", "64", "--processes N");
}

static void test_out_of_memory_pauses_the_session(void **state)
{
	struct execution *execution = *state;
	struct cordon_error err;
	assert_int_equal(limits_pause(execution, &err), 0);
	assert_int_equal(changes, 0);
	execution->run.outcome.oom_kills = 1;
	execution->verdict.session.one_off = true;
	assert_int_equal(limits_pause(execution, &err), 0);
	assert_int_equal(changes, 0);
	execution->verdict.session.one_off = false;
	assert_int_equal(limits_pause(execution, &err), 0);
	assert_int_equal(changes, 1);
	assert_int_equal(record.state, SESSION_PAUSED);
	assert_string_equal(record.why, "oom");
	/* One that was paused or ended meanwhile stays so. */
	record = (struct session_record){ .id = "s", .state = SESSION_ENDED };
	assert_int_equal(limits_pause(execution, &err), 0);
	assert_int_equal(record.state, SESSION_ENDED);
	assert_int_equal(changes, 1);
	assert_int_equal(rows, 1);
	assert_int_equal(retired, 2);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_what_was_counted_is_certain), CASE(test_what_a_failed_command_printed_is_a_hint),
		CASE(test_a_command_that_may_not_spawn_has_met_no_number),
		CASE(test_no_hint_where_it_cannot_be_the_limit), CASE(test_out_of_memory_pauses_the_session),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

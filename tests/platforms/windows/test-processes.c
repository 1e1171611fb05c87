/* Several processes at once: this program starts itself, since there is no fork() for the tests of the ledger and of
 * sessions that have one. */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include "audit/ledger.h"
#include "audit/verify.h"
#include "base/json.h"
#include "base/remove.h"
#include "session/registry.h"

#include <cmocka.h>

#define PROCESSES 4
#define TIMES 25
enum { MADE = 10, FOUND, FAILED };

static char data[64];

static int set_up(void **state)
{
	(void)state;
	strcpy(data, "/tmp/processes-XXXXXX");
	return mkdtemp(data) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	return remove_tree(AT_FDCWD, data);
}

/* ---- what the others do ------------------------------------------------------------------------------------------ */

static int failed(const struct cordon_error *err)
{
	fprintf(stderr, "%s: %s\n", err->subject, err->reason);
	return FAILED;
}

static int make_session(void)
{
	struct arena arena = { 0 };
	struct session_record record;
	struct cordon_error err;
	bool made = false;
	return registry_open(&arena, data, "s", NULL, &record, &made, &err) < 0 ? failed(&err) : made ? MADE : FOUND;
}

static int note_denial(struct arena *arena, struct session_record *record, void *arg, struct cordon_error *err)
{
	(void)arg, (void)err;
	struct session_denial *denials = arena_alloc(arena, (record->denial_count + 1) * sizeof(*denials));
	if (record->denial_count)
		memcpy(denials, record->denials, record->denial_count * sizeof(*denials));
	denials[record->denial_count++] = (struct session_denial){ "h", "r", "t" };
	record->denials = denials;
	return 0;
}

static int change_session(void)
{
	for (int i = 0; i < TIMES; i++) {
		struct arena arena = { 0 };
		struct session_record record;
		struct cordon_error err;
		if (registry_change(&arena, data, "s", note_denial, NULL, &record, &err) < 0)
			return failed(&err);
		arena_free(&arena);
	}
	return 0;
}

static int append_rows(bool for_ever)
{
	struct ledger *ledger;
	struct cordon_error err;
	if (ledger_open(data, false, &ledger, &err) < 0)
		return failed(&err);
	for (int i = 0; for_ever || i < TIMES; i++)
		if (ledger_append(ledger, "{\"row\":\"test\"}", 14, &err) < 0)
			return failed(&err);
	ledger_unref(ledger);
	return 0;
}

static int hold_session(void)
{
	struct arena arena = { 0 };
	struct session_record record;
	struct cordon_error err;
	bool found;
	int fd;
	if (registry_use(&arena, data, "s", NULL, &fd, &record, &found, &err) < 0)
		return failed(&err);
	putchar('.');
	fflush(stdout);
	Sleep(INFINITE);
	return 0;
}

static int play(const char *part)
{
	return !strcmp(part, "make")     ? make_session()
	       : !strcmp(part, "change") ? change_session()
	       : !strcmp(part, "append") ? append_rows(false)
	       : !strcmp(part, "flood")  ? append_rows(true)
	                                 : hold_session();
}

/* ---- starting them ----------------------------------------------------------------------------------------------- */

static HANDLE begin(const char *part, HANDLE output)
{
	wchar_t program[MAX_PATH], line[MAX_PATH + 128];
	STARTUPINFOW startup = { .cb = sizeof(startup),
		                 .dwFlags = output ? STARTF_USESTDHANDLES : 0,
		                 .hStdOutput = output };
	PROCESS_INFORMATION process;
	assert_true(GetModuleFileNameW(NULL, program, MAX_PATH) > 0);
	swprintf(line, sizeof(line) / sizeof(line[0]), L"\"%ls\" %hs %hs", program, part, data);
	assert_true(CreateProcessW(program, line, NULL, NULL, TRUE, 0, NULL, NULL, &startup, &process));
	CloseHandle(process.hThread);
	return process.hProcess;
}

static DWORD end(HANDLE process)
{
	DWORD status = FAILED;
	assert_int_equal(WaitForSingleObject(process, 60000), WAIT_OBJECT_0);
	assert_true(GetExitCodeProcess(process, &status));
	CloseHandle(process);
	return status;
}

static void all_do(const char *part)
{
	HANDLE processes[PROCESSES];
	for (int i = 0; i < PROCESSES; i++)
		processes[i] = begin(part, NULL);
	for (int i = 0; i < PROCESSES; i++)
		assert_int_equal(end(processes[i]), 0);
}

/* ---- cases ------------------------------------------------------------------------------------------------------- */

static void one_of_many_makes_a_session(void **state)
{
	(void)state;
	HANDLE processes[PROCESSES];
	int made = 0;
	for (int i = 0; i < PROCESSES; i++)
		processes[i] = begin("make", NULL);
	for (int i = 0; i < PROCESSES; i++) {
		DWORD status = end(processes[i]);
		assert_true(status == MADE || status == FOUND);
		made += status == MADE;
	}
	assert_int_equal(made, 1);
}

static void no_change_of_a_session_is_lost(void **state)
{
	(void)state;
	struct arena arena = { 0 };
	struct session_record record;
	struct cordon_error err;
	bool found = false;
	assert_int_equal(make_session(), MADE);
	all_do("change");
	assert_int_equal(registry_read(&arena, data, "s", &record, &found, &err), 0);
	assert_int_equal(record.denial_count, PROCESSES * TIMES);
	arena_free(&arena);
}

static void a_session_is_in_use_until_its_user_dies(void **state)
{
	(void)state;
	SECURITY_ATTRIBUTES inherited = { sizeof(inherited), NULL, TRUE };
	HANDLE from, to;
	struct cordon_error err;
	char byte;
	DWORD got;
	int fd = -1;
	assert_int_equal(make_session(), MADE);
	assert_true(CreatePipe(&from, &to, &inherited, 0));
	HANDLE user = begin("hold", to);
	assert_true(ReadFile(from, &byte, 1, &got, NULL) && got == 1);
	assert_int_equal(registry_exclude(data, "s", &fd, &err), -1);
	assert_int_equal(err.class, CORDON_E_SESSION_BUSY);
	assert_true(TerminateProcess(user, 1));
	end(user);
	assert_int_equal(registry_exclude(data, "s", &fd, &err), 0);
	close(fd);
	CloseHandle(from);
	CloseHandle(to);
}

static json_t *verified(void)
{
	struct json json;
	struct cordon_error err;
	bool intact;
	json_init(&json);
	assert_int_equal(verify_ledger(data, &json, &intact, &err), 0);
	char *text = json_take(&json);
	json_t *report = json_loads(text, 0, NULL);
	if (!intact)
		fail_msg("%s", text);
	free(text);
	return report;
}

static void rows_of_many_are_one_ledger(void **state)
{
	(void)state;
	all_do("append");
	json_t *report = verified();
	assert_int_equal(json_integer_value(json_object_get(report, "rows")), PROCESSES * TIMES + 1);
	json_decref(report);
}

static void a_writer_that_is_killed_harms_no_row(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++) {
		HANDLE writer = begin("flood", NULL);
		Sleep(100 + 37 * (DWORD)i);
		assert_true(TerminateProcess(writer, 1));
		end(writer);
		assert_int_equal(append_rows(false), 0);
		json_decref(verified());
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_of_many_makes_a_session, set_up, tear_down),
		cmocka_unit_test_setup_teardown(no_change_of_a_session_is_lost, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_session_is_in_use_until_its_user_dies, set_up, tear_down),
		cmocka_unit_test_setup_teardown(rows_of_many_are_one_ledger, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_writer_that_is_killed_harms_no_row, set_up, tear_down),
	};
	if (argc == 3) {
		snprintf(data, sizeof(data), "%s", argv[2]);
		return play(argv[1]);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}

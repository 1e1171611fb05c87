/* Reading the ledger: which rows, in which order, from where, and while it is being written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "audit/read.h"
#include "base/cleanup.h"
#include "ledger-clock.h"
#include "ledger-ground.h"

static int setup(void **state)
{
	*state = ground_make();
	return 0;
}

static int teardown(void **state)
{
	clock_offset = 0;
	ground_remove(*state);
	return 0;
}

/* The members `n` of the rows that were read, as text: "1 2 3"; of others their kind. */
struct seen {
	char text[65536];
	size_t length;
	int most, rows;
};

static int see(void *arg, const char *row, size_t length)
{
	struct seen *seen = arg;
	if (!length)
		return seen->most && seen->rows >= seen->most;
	json_t *parsed = json_loadb(row, length, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(parsed);
	const json_t *n = json_object_get(parsed, "n");
	const char *before = seen->length ? " " : "";
	int added = n ? sprintf(seen->text + seen->length, "%s%lld", before, (long long)json_integer_value(n))
	              : sprintf(seen->text + seen->length, "%s%s", before,
	                        json_string_value(json_object_get(parsed, "row")));
	seen->length += (size_t)added;
	seen->rows++;
	json_decref(parsed);
	return seen->most && !n ? 0 : seen->most && seen->rows >= seen->most;
}

static void must_see(const struct ground *ground, struct cordon_audit_filter filter, const char *expected)
{
	struct seen seen = { .length = 0 };
	struct cordon_error err;
	if (ledger_read(ground->data, &filter, see, &seen, &err) < 0)
		fail_msg("%s: %s", err.subject, err.reason);
	seen.text[seen.length] = '\0';
	assert_string_equal(seen.text, expected);
}

/* Two days of five rows each, n from 1 on, dated 2026-01-01 and 2026-01-02 whatever the files are called. */
static void fill(struct ground *ground)
{
	static const char *const rows[] = {
		"\"row\":\"intent\",\"id\":\"A\",\"time\":\"2026-01-01T10:00:00.000Z\",\"session\":\"one\",\"program\":"
		"\"/usr/bin/make\"",
		"\"row\":\"result\",\"id\":\"A\",\"time\":\"2026-01-01T10:00:01.500Z\",\"session\":\"one\",\"program\":"
		"\"/usr/bin/make\"",
		"\"row\":\"denial\",\"id\":\"B\",\"time\":\"2026-01-01T11:00:00.000Z\",\"session\":\"two "
		"\\\"x\\\"\",\"program\":\"make\"",
		"\"row\":\"approval\",\"id\":\"C\",\"time\":\"2026-01-01T12:00:00.000Z\",\"session\":\"one\","
		"\"outcome\":\"approved\",\"audit_id\":\"A\"",
		"\"row\":\"approval\",\"id\":\"D\",\"time\":\"2026-01-01T13:00:00.000Z\",\"session\":\"one\","
		"\"outcome\":\"timeout\",\"audit_id\":\"E\"",
		"\"row\":\"intent\",\"id\":\"E\",\"time\":\"2026-01-02T00:00:00.000Z\",\"session\":\"one\",\"program\":"
		"\"/usr/bin/cmake\"",
		"\"row\":\"result\",\"id\":\"E\",\"time\":\"2026-01-02T00:00:09.000Z\",\"session\":\"one\",\"program\":"
		"\"/usr/bin/cmake\"",
		"\"row\":\"session\",\"id\":\"F\",\"time\":\"2026-01-02T10:00:00.000Z\",\"session\":\"onex\","
		"\"change\":\"made\"",
		"\"row\":\"intent\",\"id\":\"G\",\"time\":\"2026-01-02T11:00:00.000Z\",\"session\":\"A\",\"program\":"
		"\"one\"",
		"\"row\":\"intent\",\"id\":\"H\",\"time\":\"2026-01-02T12:00:00.000Z\",\"session\":\"one\",\"nested\":{"
		"\"id\":\"A\",\"program\":\"make\"}",
	};
	char row[512];
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (i == 5)
			clock_offset += 86400;
		snprintf(row, sizeof(row), "{%s,\"n\":%zu}", rows[i], i + 1);
		ground_append(ground->ledger, row);
	}
	ground_day(ground);
}

static void conditions(void **state)
{
	static const struct {
		struct cordon_audit_filter filter;
		const char *expected;
	} rows[] = {
		{ { 0 }, "begin 1 2 3 4 5 6 7 8 9 10" },
		{ { .id = "A" }, "1 2 4" },
		{ { .id = "E" }, "5 6 7" },
		{ { .id = "a" }, "" },
		{ { .id = "" }, "" },
		{ { .session = "one" }, "1 2 4 5 6 7 10" },
		{ { .session = "two \"x\"" }, "3" },
		{ { .session = "ne" }, "" },
		{ { .program = "make" }, "1 2 3" },
		{ { .program = "/usr/bin/make" }, "1 2" },
		{ { .program = "bin/make" }, "" },
		{ { .program = "cmake" }, "6 7" },
		{ { .decision = "allowed" }, "1 6 9 10" },
		{ { .decision = "denied" }, "3 5" },
		{ { .decision = "approved" }, "4" },
		{ { .decision = "approval" }, "4 5" },
		{ { .decision = "session" }, "8" },
		{ { .decision = "begin" }, "begin" },
		{ { .decision = "damaged" }, "" },
		{ { .until = "2026-01-01T10:00:00Z" }, "" },
		{ { .until = "2026-01-01T10:00:00.001Z" }, "1" },
		{ { .until = "2026-01-02" }, "1 2 3 4 5" },
		{ { .since = "2026-01-02", .until = "2026-01-03" }, "6 7 8 9 10" },
		{ { .since = "2026-01-01T10:00:01.5Z", .until = "2026-01-01T12:00:00Z" }, "2 3" },
		{ { .last = 1 }, "10" },
		{ { .last = 5 }, "6 7 8 9 10" },
		{ { .last = 6 }, "5 6 7 8 9 10" },
		{ { .last = 11 }, "begin 1 2 3 4 5 6 7 8 9 10" },
		{ { .last = 1000 }, "begin 1 2 3 4 5 6 7 8 9 10" },
		{ { .last = 2, .session = "one" }, "7 10" },
		{ { .last = 3, .decision = "allowed" }, "6 9 10" },
		{ { .last = 100, .program = "make" }, "1 2 3" },
		{ { .last = 1, .until = "2026-01-02" }, "5" },
		{ { .session = "one", .decision = "allowed", .program = "make", .since = "2026-01-01" }, "1" },
	};
	struct ground *ground = *state;
	must_see(ground, (struct cordon_audit_filter){ 0 }, "");
	fill(ground);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		must_see(ground, rows[i].filter, rows[i].expected);
}

static void what_is_no_condition(void **state)
{
	static const struct cordon_audit_filter filters[] = {
		{ .since = "yesterday" }, { .until = "2026-02-30" }, { .decision = "denyed" },
		{ .format = "xml" },      { .since = "" },
	};
	struct ground *ground = *state;
	struct cordon_error err;
	struct seen seen = { .length = 0 };
	for (size_t i = 0; i < ARRAY_SIZE(filters); i++) {
		assert_int_equal(ledger_read(ground->data, &filters[i], see, &seen, &err), -1);
		assert_int_equal(err.class, CORDON_E_INVALID_REQUEST);
		assert_true(*err.remediation);
	}
}

static void stopping(void **state)
{
	struct ground *ground = *state;
	struct seen seen = { .most = 3 };
	struct cordon_error err;
	fill(ground);
	assert_int_equal(ledger_read(ground->data, &(struct cordon_audit_filter){ 0 }, see, &seen, &err), 0);
	assert_int_equal(seen.rows, 3);
}

static void append_bytes(const char *path, const char *bytes, size_t length)
{
	FILE *file = fopen(path, "ab");
	assert_int_equal(fwrite(bytes, 1, length, file), length);
	fclose(file);
}

/* Lines that are no rows are told of, and hide nothing else. */
static void damaged_lines(void **state)
{
	struct ground *ground = *state;
	char *large = malloc(3 * LEDGER_LINE_MAX);
	ground_append(ground->ledger, "{\"row\":\"test\",\"n\":1,\"time\":\"2026-01-01T10:00:00.000Z\"}");
	append_bytes(ground->file, "no row\n\n[1]\n{\"n\":1}x\n\0\n", 24);
	memset(large, 'x', 3 * LEDGER_LINE_MAX);
	large[3 * LEDGER_LINE_MAX - 1] = '\n';
	append_bytes(ground->file, large, 3 * LEDGER_LINE_MAX);
	ground_append(ground->ledger, "{\"row\":\"test\",\"n\":2,\"time\":\"2026-01-02T10:00:00.000Z\"}");
	append_bytes(ground->file, "{\"row\":\"to", 10);
	must_see(ground, (struct cordon_audit_filter){ 0 },
	         "begin 1 damaged damaged damaged damaged damaged damaged 2 damaged");
	must_see(ground, (struct cordon_audit_filter){ .last = 2 }, "2 damaged");
	must_see(ground, (struct cordon_audit_filter){ .decision = "damaged", .last = 3 }, "damaged damaged damaged");
	must_see(ground, (struct cordon_audit_filter){ .since = "2026-01-02", .until = "2026-01-03" }, "2 damaged");
	must_see(ground, (struct cordon_audit_filter){ .session = "x" }, "");
	must_see(ground, (struct cordon_audit_filter){ .format = "ocsf", .last = 2 }, "(null) (null)");
	free(large);
}

static void whole_rows_of_any_length(void **state)
{
	struct ground *ground = *state;
	char *row = malloc(LEDGER_LINE_MAX);
	size_t length = LEDGER_LINE_MAX - 1;
	memset(row, 'x', length);
	memcpy(row, "{\"n\":1,\"pad\":\"", 14);
	memcpy(row + length - 2, "\"}", 2);
	struct cordon_error err;
	assert_int_equal(ledger_append(ground->ledger, row, length, &err), 0);
	ground_append(ground->ledger, "{\"n\":2}");
	assert_int_equal(ledger_append(ground->ledger, row, length, &err), 0);
	must_see(ground, (struct cordon_audit_filter){ 0 }, "begin 1 2 1");
	must_see(ground, (struct cordon_audit_filter){ .last = 2 }, "2 1");
	free(row);
}

/* ---- Following --------------------------------------------------------------------------------------------------- */

struct follower {
	const struct ground *ground;
	struct cordon_audit_filter filter;
	struct seen seen;
	pthread_mutex_t mutex;
	int status;
	struct cordon_error err;
};

static int see_locked(void *arg, const char *row, size_t length)
{
	struct follower *follower = arg;
	pthread_mutex_lock(&follower->mutex);
	int stop = see(&follower->seen, row, length);
	pthread_mutex_unlock(&follower->mutex);
	return stop;
}

static void *run_follower(void *arg)
{
	struct follower *follower = arg;
	follower->status = ledger_read(follower->ground->data, &follower->filter, see_locked, follower, &follower->err);
	return NULL;
}

static void wait_for(struct follower *follower, int rows)
{
	for (int tries = 0; tries < 2000; tries++) {
		pthread_mutex_lock(&follower->mutex);
		int seen = follower->seen.rows;
		pthread_mutex_unlock(&follower->mutex);
		if (seen >= rows)
			return;
		usleep(5000);
	}
	fail_msg("%d rows are not there: %s", rows, follower->seen.text);
}

static void following(void **state)
{
	struct ground *ground = *state;
	struct follower follower = { .ground = ground,
		                     .filter = { .follow = true, .last = 2 },
		                     .seen = { .most = 10 } };
	pthread_t thread;
	pthread_mutex_init(&follower.mutex, NULL);
	for (int i = 1; i < 4; i++)
		ground_append(ground->ledger, (char[]){ '{', '"', 'n', '"', ':', (char)('0' + i), '}', '\0' });
	assert_int_equal(pthread_create(&thread, NULL, run_follower, &follower), 0);
	wait_for(&follower, 2);
	ground_append(ground->ledger, "{\"n\":4}");
	wait_for(&follower, 3);
	/* Half a line is waited for; nobody is told of it before the next row shows that it is torn. */
	append_bytes(ground->file, "{\"row\":\"to", 10);
	usleep(250000);
	wait_for(&follower, 3);
	ground_append(ground->ledger, "{\"n\":5}");
	wait_for(&follower, 6);
	/* Across midnight. */
	clock_offset += 86400;
	ground_append(ground->ledger, "{\"n\":6}");
	wait_for(&follower, 7);
	/* The ledger is removed and another begins. */
	assert_int_equal(nftw(ground->directory, ground_remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
	usleep(250000);
	ground_append(ground->ledger, "{\"n\":7}");
	wait_for(&follower, 9);
	ground_append(ground->ledger, "{\"n\":8}");
	pthread_join(thread, NULL);
	assert_int_equal(follower.status, 0);
	follower.seen.text[follower.seen.length] = '\0';
	assert_string_equal(follower.seen.text, "2 3 4 damaged repair 5 6 begin 7 8");
}

/* Many read while many write: no row is seen in half, none is missed, all in order. */
static void reading_while_writing(void **state)
{
	struct ground *ground = *state;
	ground_append(ground->ledger, "{\"row\":\"test\",\"n\":0}");
	pid_t writer = fork();
	if (!writer) {
		char *row = malloc(70000);
		for (int i = 1; i <= 300; i++) {
			int length = sprintf(row, "{\"row\":\"test\",\"n\":%d,\"pad\":\"%0*d\"}", i, i * 220, 0);
			struct cordon_error err;
			if (ledger_append(ground->ledger, row, (size_t)length, &err) < 0)
				_exit(1);
		}
		_exit(0);
	}
	int status, rows = 0;
	do {
		struct seen seen = { .length = 0 };
		struct cordon_error err;
		assert_int_equal(ledger_read(ground->data, &(struct cordon_audit_filter){ 0 }, see, &seen, &err), 0);
		seen.text[seen.length] = '\0';
		assert_null(strstr(seen.text, "damaged"));
		assert_true(seen.rows >= rows);
		rows = seen.rows;
	} while (waitpid(writer, &status, WNOHANG) == 0);
	assert_int_equal(status, 0);
	ground_intact(ground, true);
}

/* ---- OCSF -------------------------------------------------------------------------------------------------------- */

static int check_event(void *arg, const char *row, size_t length)
{
	static const char *const required[] = { "time",        "class_uid", "category_uid",
		                                "activity_id", "type_uid",  "severity_id" };
	int *events = arg;
	json_t *event = json_loadb(row, length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	assert_non_null(event);
	for (size_t i = 0; i < ARRAY_SIZE(required); i++)
		assert_true(json_is_integer(json_object_get(event, required[i])));
	json_int_t class = json_integer_value(json_object_get(event, "class_uid"));
	assert_int_equal(json_integer_value(json_object_get(event, "type_uid")),
	                 class * 100 + json_integer_value(json_object_get(event, "activity_id")));
	const json_t *metadata = json_object_get(event, "metadata"), *original = json_object_get(event, "unmapped");
	assert_true(json_is_string(json_object_get(metadata, "version")));
	assert_true(json_is_string(json_object_get(json_object_get(metadata, "product"), "name")));
	assert_true(json_is_object(original));
	const char *kind = json_string_value(json_object_get(original, "row"));
	assert_string_equal(json_string_value(json_object_get(metadata, "event_code")), kind);
	if (class == 1007)
		assert_true(json_is_object(json_object_get(event, "process")) &&
		            json_is_object(json_object_get(event, "device")));
	if (class == 6003)
		assert_true(json_is_object(json_object_get(event, "api")) &&
		            json_is_object(json_object_get(event, "src_endpoint")));
	if (!strcmp(kind, "intent") && json_integer_value(json_object_get(original, "n")) == 1) {
		assert_int_equal(json_integer_value(json_object_get(event, "time")), 1767261600000);
		assert_int_equal(json_integer_value(json_object_get(event, "type_uid")), 100701);
		assert_string_equal(json_string_value(json_object_get(json_object_get(event, "process"), "name")),
		                    "make");
	}
	++*events;
	json_decref(event);
	return 0;
}

static void as_ocsf(void **state)
{
	struct ground *ground = *state;
	struct cordon_error err;
	int events = 0;
	fill(ground);
	ground_append(ground->ledger, "{\"row\":\"unheard-of\",\"session\":\"a\\u0000b\",\"n\":11}");
	append_bytes(ground->file, "damaged\n", 8);
	assert_int_equal(ledger_read(ground->data, &(struct cordon_audit_filter){ .format = "ocsf" }, check_event,
	                             &events, &err),
	                 0);
	assert_int_equal(events, 13);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(conditions),
		CASE(what_is_no_condition),
		CASE(stopping),
		CASE(damaged_lines),
		CASE(whole_rows_of_any_length),
		CASE(following),
		CASE(reading_while_writing),
		CASE(as_ocsf),
	};
	return cmocka_run_group_tests_name("audit-read", tests, NULL, NULL);
}

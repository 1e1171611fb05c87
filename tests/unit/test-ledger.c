/* The ledger's rows: many writers, killed writers, torn lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "ledger-calls.h"
#include "system-has.h"

static void rows_are_lines_in_the_days_file(void **state)
{
	struct ground *ground = *state;
	struct stat st;
	assert_int_equal(access(ground->data, F_OK), -1);
	ground_append(ground->ledger, "{\"a\":1}");
	ground_append(ground->ledger, "{\"b\":2}");
	ground_holds(ground->file, "{\"a\":1}\n{\"b\":2}\n");
	assert_int_equal(stat(ground->data, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(stat(ground->directory, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(stat(ground->file, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	struct ledger *second;
	struct cordon_error err;
	assert_int_equal(ledger_open(ground->data, false, &second, &err), 0);
	ground_append(second, "{\"c\":3}");
	ground_append(ground->ledger, "{\"d\":4}");
	ground_holds(ground->file, "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n{\"d\":4}\n");
	ledger_unref(second);
	ledger_unref(NULL);
}

static void what_is_no_row(void **state)
{
	struct ground *ground = *state;
	struct cordon_error err;
	struct ledger *none = (struct ledger *)ground;
	char *large = malloc(LEDGER_LINE_MAX);
	static const char *const none_of_them[] = {
		"", "{", "{}", "a\nb", "{\"a\":\n1}", "{\"a\":1}\n", "[1]", "{\"a\":1", "\"a\":1}",
	};
	memset(large, 'x', LEDGER_LINE_MAX);
	memcpy(large, "{\"a\":\"", 6);
	memcpy(large + LEDGER_LINE_MAX - 2, "\"}", 2);
	for (size_t i = 0; i < ARRAY_SIZE(none_of_them); i++)
		assert_int_equal(ledger_append(ground->ledger, none_of_them[i], strlen(none_of_them[i]), &err), -1);
	assert_int_equal(ledger_append(ground->ledger, large, LEDGER_LINE_MAX, &err), -1);
	memcpy(large + LEDGER_LINE_MAX - 3, "\"}", 2);
	assert_int_equal(err.class, CORDON_E_AUDIT_UNAVAILABLE);
	assert_int_equal(access(ground->file, F_OK), -1);
	assert_int_equal(ledger_append(ground->ledger, large, LEDGER_LINE_MAX - 1, &err), 0);
	free(large);
	struct stat st;
	assert_int_equal(stat(ground->file, &st), 0);
	assert_true(st.st_size > (off_t)(LEDGER_LINE_MAX + SEAL_LENGTH));
	ground_intact(ground, true);
	assert_int_equal(ledger_open("relative", false, &none, &err), -1);
	assert_int_equal(ledger_open(NULL, false, &none, &err), -1);
	assert_ptr_equal(none, ground);
}

static void write_rows(struct ledger *ledger, int writer, int count, size_t padding)
{
	struct cordon_error err;
	char *line = malloc(padding + 128), *pad = calloc(1, padding + 1);
	memset(pad, 'p', padding);
	for (int i = 0; i < count; i++) {
		int length =
			sprintf(line, "{\"row\":\"test\",\"writer\":%d,\"number\":%d,\"pad\":\"%s\"}", writer, i, pad);
		if (ledger_append(ledger, line, (size_t)length, &err) < 0) {
			fprintf(stderr, "%s\n", err.reason);
			_exit(1);
		}
	}
	free(line);
	free(pad);
}

/* Every 64 rows. What is kept to be written to the next time may be something else by then. */
static void a_signature_frees_no_file(void **state)
{
	struct ground *ground = *state;
	char path[160], spare[160], victim[160];
	struct stat before, after;
	snprintf(path, sizeof(path), "%s/signed", ground->directory);
	snprintf(spare, sizeof(spare), "%s.new", path);
	snprintf(victim, sizeof(victim), "%s/victim", ground->root);
	write_rows(ground->ledger, 0, 64, 0);
	for (int i = 0; i < 3; i++) {
		auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
		write_rows(ground->ledger, 1, 64, 0);
		assert_int_equal(fstat(fd, &before) | stat(path, &after), 0);
		assert_true(before.st_nlink == 1 && before.st_ino != after.st_ino);
		ground_intact(ground, true);
	}
	ground_write(victim, "as it was");
	for (int i = !HAS_LINKS; i < 2; i++) {
		assert_true(unlink(spare) == 0 || errno == ENOENT);
		assert_int_equal(i ? link(victim, spare) : symlink(victim, spare), 0);
		write_rows(ground->ledger, 2, 64, 0);
		char *text = ground_slurp(victim);
		assert_string_equal(text, "as it was");
		free(text);
		assert_int_equal(lstat(path, &after), 0);
		assert_true(S_ISREG(after.st_mode) && after.st_size == SEAL_HEAD_SIZE);
		ground_intact(ground, true);
	}
}

static void many_processes(void **state)
{
	struct ground *ground = *state;
	pid_t pids[32];
	for (int i = 0; i < 32; i++) {
		pids[i] = fork();
		if (pids[i])
			continue;
		struct ledger *own = ground->ledger;
		struct cordon_error err;
		/* Half of them with the descriptor they inherited, if there were one. */
		if (i % 2 && ledger_open(ground->data, false, &own, &err) < 0)
			_exit(2);
		write_rows(own, i, 200, (size_t)(i * 97 % 3000));
		_exit(0);
	}
	for (int i = 0; i < 32; i++) {
		int status;
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	struct tally tally = ground_read_all(ground->file);
	assert_int_equal(tally.rows, 32 * 200);
	assert_int_equal(tally.torn + tally.repairs, 0);
	ground_intact(ground, true);
}

static void *thread_main(void *arg)
{
	write_rows(arg, 0, 300 / EACH, 50);
	return NULL;
}

static void many_threads(void **state)
{
	struct ground *ground = *state;
	pthread_t threads[8];
	for (int i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, thread_main, ground->ledger), 0);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	struct tally tally = ground_read_all(ground->file);
	assert_int_equal(tally.rows, 8 * 300 / EACH);
	assert_int_equal(tally.torn + tally.repairs, 0);
	ground_intact(ground, true);
}

/* After a fork the lock is no lock between the two: each must have its own. */
static void an_inherited_ledger(void **state)
{
	struct ground *ground = *state;
	ground_append(ground->ledger, "{\"row\":\"before\"}");
	for (int i = 0; i < 8; i++)
		if (!fork()) {
			write_rows(ground->ledger, i, 100, 500);
			_exit(0);
		}
	write_rows(ground->ledger, 99, 100, 500);
	for (int i = 0, status; i < 8; i++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	assert_int_equal(ground_read_all(ground->file).rows, 901);
	ground_intact(ground, true);
}

static void killed_writers(void **state)
{
	struct ground *ground = *state;
	srandom(1);
	for (int round = 0; round < 12; round++) {
		pid_t pids[4];
		for (int i = 0; i < 4; i++) {
			pids[i] = fork();
			if (!pids[i]) {
				write_rows(ground->ledger, i, 8, 500000);
				_exit(0);
			}
			assert_true(pids[i] > 0);
		}
		usleep((useconds_t)(random() % 2500));
		for (int i = 0; i < 4; i++) {
			kill(pids[i], SIGKILL);
			assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
		}
		ground_append(ground->ledger, "{\"row\":\"after\"}");
	}
	struct tally tally = ground_read_all(ground->file);
	assert_true(tally.rows >= 12);
	assert_true(tally.torn <= tally.repairs);
	ground_intact(ground, true);
}

/* ---- Torn lines -------------------------------------------------------------------------------------------------- */

static void a_torn_line_is_ended_and_noted(void **state)
{
	struct ground *ground = *state;
	char large[10001];
	ground_append(ground->ledger, "{\"a\":1}");
	for (int i = 0; i < 3; i++) {
		FILE *file = fopen(ground->file, "ab");
		memset(large, 'x', sizeof(large));
		large[i == 2 ? 10000 : i] = '\0';
		fprintf(file, "{\"torn\":\"%s", large);
		fclose(file);
		ground_append(ground->ledger, "{\"b\":2}");
	}
	struct tally tally = ground_read_all(ground->file);
	assert_int_equal(tally.rows, 4);
	assert_int_equal(tally.torn, 3);
	assert_int_equal(tally.repairs, 3);
	/* A check repairs as well, and once. */
	struct cordon_error err;
	FILE *file = fopen(ground->file, "ab");
	fputs("{\"torn", file);
	fclose(file);
	assert_int_equal(ledger_check(ground->ledger, &err), 0);
	assert_int_equal(ledger_check(ground->ledger, &err), 0);
	assert_int_equal(ground_read_all(ground->file).repairs, 4);
	ground_intact(ground, true);
	/* Nothing but half a line, where there were rows: that is not the same. */
	ground_write(ground->file, "{\"half");
	ground_append(ground->ledger, "{\"c\":3}");
	ground_intact(ground, false);
}

static void yesterdays_torn_line(void **state)
{
	struct ground *ground = *state;
	char yesterday[160];
	ground_append(ground->ledger, "{\"a\":1}");
	strcpy(yesterday, ground->file);
	FILE *file = fopen(yesterday, "ab");
	fputs("{\"torn", file);
	fclose(file);
	char *before = ground_slurp(yesterday);
	clock_offset += 86400;
	ground_day(ground);
	assert_string_not_equal(ground->file, yesterday);
	ground_append(ground->ledger, "{\"b\":2}");
	ground_append(ground->ledger, "{\"c\":3}");
	/* It is noted today: a day that is over is not written to. */
	char *text = ground_slurp(ground->file), noted[64], *after = ground_slurp(yesterday);
	snprintf(noted, sizeof(noted), "\"torn_file\":\"%s\"", strrchr(yesterday, '/') + 1);
	assert_string_equal(before, after);
	assert_non_null(strstr(text, noted));
	free(before);
	free(after);
	free(text);
	ground_intact(ground, true);
}

static void a_clock_that_is_set_back(void **state)
{
	struct ground *ground = *state;
	struct ledger *fresh;
	struct cordon_error err;
	char first[160], newest[160];
	strcpy(first, ground->file);
	ground_append(ground->ledger, "{\"a\":1}");
	clock_offset += 3 * 86400;
	ground_day(ground);
	strcpy(newest, ground->file);
	ground_append(ground->ledger, "{\"b\":2}");
	for (int days = 1; days < 40; days += 13) {
		clock_offset -= days * 86400;
		ground_append(ground->ledger, "{\"c\":3}");
	}
	assert_int_equal(ledger_open(ground->data, false, &fresh, &err), 0);
	ground_append(fresh, "{\"d\":4}");
	ledger_unref(fresh);
	ground_holds(first, "{\"a\":1}\n");
	ground_holds(newest, "{\"b\":2}\n{\"c\":3}\n{\"c\":3}\n{\"c\":3}\n{\"d\":4}\n");
	ground_intact(ground, true);
	clock_offset = 4 * 86400;
	ground_day(ground);
	ground_append(ground->ledger, "{\"e\":5}");
	ground_holds(ground->file, "{\"e\":5}\n");
	ground_intact(ground, true);
	/* A date that cannot be a file's name. */
	clock_offset = INT64_C(300000000000);
	ground_must_refuse(ground->ledger, EOVERFLOW, "date");
}

static void a_short_write_is_taken_back(void **state)
{
	struct ground *ground = *state;
	ground_append(ground->ledger, "{\"a\":1}");
	short_write = 5;
	ground_must_refuse(ground->ledger, ENOSPC, "taken back");
	ground_holds(ground->file, "{\"a\":1}\n");
	short_write = 5;
	fail_truncate = true;
	ground_must_refuse(ground->ledger, ENOSPC, "cannot be taken back");
	fail_truncate = false;
	/* The note of it comes out short as well: it is still to be made. */
	short_write = 5;
	ground_must_refuse(ground->ledger, ENOSPC, "taken back");
	ground_append(ground->ledger, "{\"b\":2}");
	struct tally tally = ground_read_all(ground->file);
	assert_true(tally.rows == 2 && tally.torn == 1 && tally.repairs == 1);
	ground_intact(ground, true);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, calls_setup, calls_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(rows_are_lines_in_the_days_file),
		CASE(what_is_no_row),
		CASE(a_signature_frees_no_file),
		CASE(many_processes),
		CASE(many_threads),
		CASE(an_inherited_ledger),
		CASE(killed_writers),
		CASE(a_torn_line_is_ended_and_noted),
		CASE(yesterdays_torn_line),
		CASE(a_short_write_is_taken_back),
		CASE(a_clock_that_is_set_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

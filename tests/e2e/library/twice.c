/* The result of a command is recorded once, however often it is asked for; and is there when it could not be
 * recorded. */
#include <sys/stat.h>
#include <unistd.h>

#include "embed.h"

static int count_row(void *arg, const char *row, size_t length)
{
	(void)row;
	*(int *)arg += length > 0;
	return 0;
}

static int count_rows(struct cordon *cordon)
{
	struct cordon_error err;
	struct cordon_audit_filter filter = { 0 };
	int count = 0;
	MUST(cordon_audit_read(cordon, &filter, count_row, &count, &err));
	return count;
}

static struct cordon_execution *run(struct cordon *cordon, const struct cordon_request *request)
{
	struct cordon_error err;
	struct cordon_execution *execution;
	bool finished = false;
	MUST(cordon_execution_start(cordon, request, &execution, &err));
	while (!finished) {
		pause_ms(1);
		MUST(cordon_execution_step(execution, &finished, &err));
	}
	return execution;
}

static void check_same(const struct cordon_result *first, const struct cordon_result *second)
{
	char *a = cordon_result_json(first), *b = cordon_result_json(second);
	CHECK(a && b && !strcmp(a, b));
	CHECK(first->exit_code == 3 && !strcmp(first->stdout_data, "out\n") && !strcmp(first->stderr_data, "err\n"));
	free(a);
	free(b);
}

static void check_twice(struct cordon *cordon, const struct cordon_request *request)
{
	struct cordon_error err;
	struct cordon_result *first = NULL, *second = NULL;
	struct cordon_execution *execution = run(cordon, request);
	MUST(cordon_execution_result(execution, &first, &err));
	int rows = count_rows(cordon);
	MUST(cordon_execution_result(execution, &second, &err));
	CHECK(count_rows(cordon) == rows && first != second && !first->error && !second->error);
	/* Each is a value of its own. */
	check_same(first, second);
	cordon_result_unref(first);
	cordon_execution_unref(execution);
	CHECK(!strcmp(second->stdout_data, "out\n"));
	cordon_result_unref(second);
}

static void move(const char *data, bool away)
{
	char ledger[4096], aside[4096];
	snprintf(ledger, sizeof(ledger), "%s/ledger", data);
	snprintf(aside, sizeof(aside), "%s/aside", data);
	if (away)
		CHECK(rename(ledger, aside) == 0 && mkfifo(ledger, 0600) == 0);
	else
		CHECK(unlink(ledger) == 0 && rename(aside, ledger) == 0);
}

static void check_error(const struct cordon_result *result, const struct cordon_error *err)
{
	CHECK(err->class == CORDON_E_AUDIT_UNAVAILABLE && err->step == CORDON_STEP_AUDIT && !err->retriable);
	CHECK(strstr(err->reason, "the command ran (exit status 3)") && !strcmp(err->audit_id, result->audit_id));
	CHECK(result->error && !strcmp(result->error->reason, err->reason) && result->error->class == err->class);
}

/* The second time says the same, also when a row could be written by then. */
static void check_unrecorded(struct cordon *cordon, const struct cordon_request *request)
{
	struct cordon_error err, again;
	struct cordon_result *first = NULL, *second = NULL;
	const char *data;
	MUST(cordon_data_dir(cordon, &data, &err));
	struct cordon_execution *execution = run(cordon, request);
	move(data, true);
	CHECK(cordon_execution_result(execution, &first, &err) < 0 && first);
	move(data, false);
	int rows = count_rows(cordon);
	CHECK(cordon_execution_result(execution, &second, &again) < 0 && second && count_rows(cordon) == rows);
	CHECK(!memcmp(&err, &again, sizeof(err)));
	check_error(first, &err);
	check_error(second, &again);
	check_same(first, second);
	cordon_execution_unref(execution);
	cordon_result_unref(first);
	cordon_result_unref(second);
}

/* With what the command writes the ledger goes away. */
static void on_output(void *arg, enum cordon_stream stream, const void *text, size_t length)
{
	(void)text, (void)length;
	bool *moved = arg;
	struct cordon_error err;
	const char *data;
	struct cordon *cordon;
	if (stream != CORDON_STDOUT || *moved)
		return;
	*moved = true;
	MUST(cordon_open(NULL, &cordon, &err));
	MUST(cordon_data_dir(cordon, &data, &err));
	move(data, true);
	cordon_unref(cordon);
}

static void check_run(struct cordon *cordon, struct cordon_request *request)
{
	struct cordon_error err;
	struct cordon_result *result = NULL;
	const char *data;
	bool moved = false;
	cordon_request_output(request, on_output, &moved);
	CHECK(cordon_result_run(cordon, request, &result, &err) < 0 && result);
	check_error(result, &err);
	check_same(result, result);
	cordon_result_unref(result);
	/* Refused before it starts: no result. */
	result = NULL;
	CHECK(cordon_result_run(cordon, request, &result, &err) < 0 && !result &&
	      err.class == CORDON_E_AUDIT_UNAVAILABLE);
	MUST(cordon_data_dir(cordon, &data, &err));
	move(data, false);
	cordon_request_output(request, NULL, NULL);
}

int main(void)
{
	struct cordon_error err;
	struct cordon *cordon;
	struct cordon_request *request = shell("echo out; echo err >&2; exit 3");
	MUST(cordon_open(NULL, &cordon, &err));
	check_twice(cordon, request);
	check_unrecorded(cordon, request);
	check_run(cordon, request);
	check_twice(cordon, request);
	cordon_request_unref(request);
	cordon_unref(cordon);
	puts("fine");
	return 0;
}

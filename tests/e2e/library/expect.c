/* A command that is expected: nothing of it runs and nothing is recorded before it is started, whether its walls are up, its
 * program is there already, or neither; and what is not started leaves nothing behind. */
#include <signal.h>
#include <unistd.h>

#include "embed.h"

#define MADE "made-as-expected"
#define ALIKE 12                /* after so many its program is there ahead */

/* Those of commands: a session has one of its own when it is made. */
static int count_row(void *arg, const char *row, size_t length)
{
	static const char *const kinds[] = { "{\"row\":\"intent\"", "{\"row\":\"result\"", "{\"row\":\"denial\"" };
	for (int i = 0; i < 3; i++)
		*(int *)arg += length > strlen(kinds[i]) && !strncmp(row, kinds[i], strlen(kinds[i]));
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

/* Has it run? If so it can again. */
static bool take_made(void)
{
	char path[4096];
	snprintf(path, sizeof(path), "%s/" MADE, getenv("WORKSPACE"));
	return unlink(path) == 0;
}

static struct cordon_request *make(bool in_session)
{
	struct cordon_error err;
	struct cordon_request *request = shell("");
	const char *const argv[] = { "/usr/bin/touch", MADE, NULL };
	MUST(cordon_request_command(request, argv, &err));
	if (in_session)
		MUST(cordon_request_set(request, "session", "expecting", &err));
	return request;
}

static void finish(struct cordon_execution *execution)
{
	struct cordon_error err;
	struct cordon_result *result;
	bool finished = false;
	while (!finished) {
		pause_ms(1);
		MUST(cordon_execution_step(execution, &finished, &err));
	}
	MUST(cordon_execution_result(execution, &result, &err));
	CHECK(result->exit_code == 0);
	cordon_result_unref(result);
	cordon_execution_unref(execution);
}

static void check(struct cordon *cordon, const struct cordon_request *request)
{
	struct cordon_error err, untouched;
	struct cordon_execution *execution;
	struct cordon_result *result = (void *)&err;
	bool finished;
	int before = count_rows(cordon);
	memset(&err, 0x5a, sizeof(err));
	untouched = err;
	MUST(cordon_expect(cordon, request, &execution, &err));
	pause_ms(50);   /* far more than it would take */
	CHECK(!take_made() && count_rows(cordon) == before && !memcmp(&err, &untouched, sizeof(err)));
	CHECK(cordon_execution_result(execution, &result, &err) < 0 && (void *)result == (void *)&err);
	CHECK(cordon_execution_fd(execution) == -1 && cordon_execution_step(execution, &finished, &err) < 0);
	CHECK(cordon_execution_kept(execution, CORDON_STDOUT) == 0);
	cordon_execution_signal(execution, SIGKILL);
	cordon_execution_resize(execution, 24, 80);
	cordon_execution_unref(execution);
	pause_ms(50);
	CHECK(!take_made() && count_rows(cordon) == before);

	MUST(cordon_expect(cordon, request, &execution, &err));
	MUST(cordon_execution_start(execution, &err));
	CHECK(cordon_execution_start(execution, &err) < 0 && err.class == CORDON_E_INVALID_REQUEST);
	CHECK(cordon_execution_kept(execution, CORDON_STDOUT) == 1 << 20 && cordon_execution_kept(execution, CORDON_STDERR) == 256 << 10);
	finish(execution);
	CHECK(take_made() && count_rows(cordon) == before + 2);
}

/* Refused and recorded once, and nothing is left to be started. */
static void check_refusal(struct cordon *cordon)
{
	struct cordon_error err;
	struct cordon_execution *execution;
	struct cordon_result *result;
	struct cordon_request *request = make(true);
	MUST(cordon_request_set(request, "cwd", "not-there", &err));
	int before = count_rows(cordon);
	MUST(cordon_expect(cordon, request, &execution, &err));
	CHECK(count_rows(cordon) == before);
	CHECK(cordon_execution_start(execution, &err) < 0 && err.step == CORDON_STEP_CWD && count_rows(cordon) == before + 1);
	CHECK(cordon_execution_start(execution, &err) < 0 && err.class == CORDON_E_INVALID_REQUEST);
	CHECK(cordon_execution_result(execution, &result, &err) < 0 && count_rows(cordon) == before + 1);
	cordon_execution_unref(execution);
	cordon_request_unref(request);
}

int main(void)
{
	struct cordon_error err;
	struct cordon *cordon;
	struct cordon_result *result;
	struct cordon_request *alone = make(false), *in_session = make(true);
	MUST(cordon_open(NULL, &cordon, &err));
	check(cordon, alone);
	check(cordon, in_session);
	for (int i = 0; i < ALIKE; i++) {
		MUST(cordon_run(cordon, in_session, &result, &err));
		CHECK(take_made());
		cordon_result_unref(result);
		pause_ms(20);
	}
	check(cordon, in_session);
	check_refusal(cordon);
	cordon_request_unref(alone);
	cordon_request_unref(in_session);
	cordon_unref(cordon);
	puts("fine");
	return 0;
}

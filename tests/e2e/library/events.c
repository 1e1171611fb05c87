/* Driven by the caller's own loop: several commands at once, signals, a timeout, and giving up. */
#include <poll.h>
#include <signal.h>
#include <time.h>

#include "embed.h"

#define COUNT 8

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Steps each that is ready until all have ended; no step blocks. */
static void follow(struct cordon_execution **executions, int count)
{
	struct cordon_error err;
	bool finished[COUNT] = { false };
	for (int left = count; left;) {
		struct pollfd ready[COUNT];
		for (int i = 0; i < count; i++)
			ready[i] = (struct pollfd){ finished[i] ? -1 : cordon_execution_fd(executions[i]), POLLIN, 0 };
		CHECK(count <= COUNT && poll(ready, (unsigned)count, 20000) > 0);
		for (int i = 0; i < count; i++) {
			if (!ready[i].revents)
				continue;
			double begun = now();
			MUST(cordon_execution_step(executions[i], &finished[i], &err));
			CHECK(now() - begun < 1);
			left -= finished[i];
		}
	}
}

static void check_many(struct cordon *cordon)
{
	struct cordon_error err;
	struct cordon_request *requests[COUNT];
	struct cordon_execution *executions[COUNT];
	double begun = now();
	for (int i = 0; i < COUNT; i++) {
		char line[80];
		snprintf(line, sizeof(line), "sleep 0.5; echo %d; exit %d", i, i);
		requests[i] = shell(line);
		MUST(cordon_start(cordon, requests[i], &executions[i], &err));
	}
	follow(executions, COUNT);
	CHECK(now() - begun < 3);
	for (int i = 0; i < COUNT; i++) {
		struct cordon_result *result;
		char text[8];
		snprintf(text, sizeof(text), "%d\n", i);
		MUST(cordon_execution_result(executions[i], &result, &err));
		CHECK(result->exit_code == i && !strcmp(result->stdout_data, text));
		cordon_execution_unref(executions[i]);
		cordon_request_unref(requests[i]);
		CHECK(!strcmp(result->stdout_data, text));
		cordon_result_unref(result);
	}
}

static void check_signal_and_misuse(struct cordon *cordon)
{
	struct cordon_error err;
	struct cordon_result *result = NULL;
	struct cordon_execution *execution;
	struct cordon_request *request = shell("trap 'exit 9' TERM; echo up; while :; do sleep 0.05; done");
	bool finished = true;
	MUST(cordon_start(cordon, request, &execution, &err));
	CHECK(cordon_execution_result(execution, &result, &err) < 0 && err.class == CORDON_E_INVALID_REQUEST && !result);
	MUST(cordon_execution_step(execution, &finished, &err));
	CHECK(!finished);
	struct timespec pause = { 0, 300000000 };
	nanosleep(&pause, NULL);
	cordon_execution_signal(execution, SIGTERM);
	follow(&execution, 1);
	MUST(cordon_execution_result(execution, &result, &err));
	CHECK(result->exit_code == 9 && !strcmp(result->stdout_data, "up\n"));
	/* After the end all of these do nothing. */
	cordon_execution_signal(execution, SIGTERM);
	cordon_execution_resize(execution, 10, 10);
	MUST(cordon_execution_step(execution, &finished, &err));
	CHECK(finished);
	cordon_result_unref(result);
	cordon_execution_unref(execution);
	cordon_request_unref(request);
}

static void check_timeout(struct cordon *cordon)
{
	struct cordon_error err;
	struct cordon_result *result;
	struct cordon_execution *execution;
	struct cordon_request *request = shell("trap '' TERM; echo before; setsid sleep 60 & sleep 60");
	MUST(cordon_request_set(request, "timeout", "400ms", &err));
	double begun = now();
	MUST(cordon_start(cordon, request, &execution, &err));
	follow(&execution, 1);
	CHECK(now() - begun < 4);
	MUST(cordon_execution_result(execution, &result, &err));
	CHECK(result->timed_out && !strcmp(result->limit_hit, "time") && !strcmp(result->stdout_data, "before\n"));
	cordon_result_unref(result);
	cordon_execution_unref(execution);
	cordon_request_unref(request);
}

/* Dropping it kills the command, at once, whatever it is doing. */
static void check_giving_up(struct cordon *cordon)
{
	struct cordon_error err;
	struct cordon_execution *execution;
	struct cordon_request *request = shell("trap '' TERM; setsid sleep 61 & sleep 61");
	double begun = now();
	for (int i = 0; i < 5; i++) {
		MUST(cordon_start(cordon, request, &execution, &err));
		cordon_execution_unref(execution);
	}
	CHECK(now() - begun < 5);
	cordon_request_unref(request);
}

int main(void)
{
	struct cordon_error err;
	struct cordon *cordon;
	MUST(cordon_open(NULL, &cordon, &err));
	check_many(cordon);
	check_signal_and_misuse(cordon);
	check_timeout(cordon);
	check_giving_up(cordon);
	cordon_unref(cordon);
	puts("fine");
	return 0;
}

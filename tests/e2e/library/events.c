/* Driven by the caller's own loop: several commands at once, signals, a timeout, and giving up. */
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

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
			CHECK(now() - begun < 10);
			left -= finished[i];
		}
	}
}

static void check_many(struct cordon *cordon)
{
	struct cordon_error err;
	struct cordon_request *requests[COUNT];
	struct cordon_execution *executions[COUNT];
	for (int i = 0; i < COUNT; i++) {
		char line[120];
		/* None ends before all have begun. */
		snprintf(line, sizeof(line),
		         ": >up-%d; until [ -e up-0 ] && [ $(ls up-* | wc -l) = %d ]; do sleep 0.02; done; "
		         "echo %d; exit %d",
		         i, COUNT, i, i);
		requests[i] = shell(line);
		MUST(cordon_execution_start(cordon, requests[i], &executions[i], &err));
	}
	follow(executions, COUNT);
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

static void on_output(void *arg, enum cordon_stream stream, const void *data, size_t length)
{
	(void)stream, (void)data;
	*(size_t *)arg += length;
}

static void check_signal_and_misuse(struct cordon *cordon)
{
	struct cordon_error err;
	struct cordon_result *result = NULL;
	struct cordon_execution *execution;
	struct cordon_request *request = shell("trap 'exit 9' TERM; echo up; while :; do sleep 0.05; done");
	bool finished = true;
	size_t seen = 0;
	cordon_request_output(request, on_output, &seen);
	MUST(cordon_execution_start(cordon, request, &execution, &err));
	CHECK(cordon_execution_result(execution, &result, &err) < 0 && err.class == CORDON_E_INVALID_REQUEST &&
	      !result);
	CHECK(cordon_execution_kept(execution, CORDON_STDOUT) == 1 << 20 &&
	      cordon_execution_kept(execution, CORDON_STDERR) == 256 << 10);
	MUST(cordon_execution_step(execution, &finished, &err));
	CHECK(!finished);
	while (!seen) {
		struct pollfd ready = { cordon_execution_fd(execution), POLLIN, 0 };
		CHECK(poll(&ready, 1, 20000) == 1);
		MUST(cordon_execution_step(execution, &finished, &err));
	}
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
	MUST(cordon_execution_start(cordon, request, &execution, &err));
	follow(&execution, 1);
	CHECK(now() - begun < 30);
	MUST(cordon_execution_result(execution, &result, &err));
	CHECK(result->timed_out && !strcmp(result->limit_hit, "time") && !strcmp(result->stdout_data, "before\n"));
	cordon_result_unref(result);
	cordon_execution_unref(execution);
	cordon_request_unref(request);
}

/* A child of our own that has our descriptors, for as long as the command runs, makes none of them ready again and
 * again after it has been closed here. */
static void check_descriptors_that_others_keep(struct cordon *cordon)
{
	struct cordon_error err;
	struct cordon_execution *execution;
	struct cordon_request *request = shell("exec >&-; sleep 0.3; echo end >&2");
	bool finished = false;
	int steps = 0;
	MUST(cordon_execution_start(cordon, request, &execution, &err));
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0)
		for (;;)
			pause();
	for (; !finished; steps++) {
		struct pollfd ready = { cordon_execution_fd(execution), POLLIN, 0 };
		CHECK(poll(&ready, 1, 20000) == 1);
		MUST(cordon_execution_step(execution, &finished, &err));
	}
	CHECK(steps < 100);
	CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
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
		MUST(cordon_execution_start(cordon, request, &execution, &err));
		cordon_execution_unref(execution);
	}
	CHECK(now() - begun < 30);
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
	check_descriptors_that_others_keep(cordon);
	check_giving_up(cordon);
	cordon_unref(cordon);
	puts("fine");
	return 0;
}

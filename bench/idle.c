/* Sessions that have run a command and do nothing, for bench/run, which looks at the machine's memory meanwhile. Lines
 * on stdin:
 *
 *     make N          until N are there; prints "make SECONDS"
 *     exec RUNS N     /bin/true in one of the first N, at random; prints "idle exec p50 p90 p99", in microseconds, each
 *                     after a rest
 *
 * They are there until stdin ends. */
#include <cordon-internal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "sample.h"

static struct cordon *cordon;
static unsigned long made, among;

static void must(int result, const struct cordon_error *err)
{
	if (result != 0)
		give_up("idle: session %lu: %s (%s)", made, err->reason, err->subject);
}

static const char *name_of(unsigned long number)
{
	static char name[40];
	snprintf(name, sizeof(name), "idle-%lu", number);
	return name;
}

static void run_in(const char *session)
{
	const char *const argv[] = { "/bin/true", NULL };
	struct cordon_request *request = NULL;
	struct cordon_result *result = NULL;
	struct cordon_error err;
	must(cordon_request_new(&request, &err), &err);
	must(cordon_request_set(request, "session", session, &err), &err);
	must(cordon_request_command(request, argv, &err), &err);
	must(cordon_result_run(cordon, request, &result, &err), &err);
	if (result->exit_code != 0)
		give_up("idle: the command ended with %d", result->exit_code);
	cordon_result_unref(result);
	cordon_request_unref(request);
}

static void make(unsigned long wanted)
{
	double start = now_us();
	for (; made < wanted; made++) {
		struct cordon_error err;
		char *json;
		must(cordon_session_new(cordon, name_of(made), NULL, &json, &err), &err);
		free(json);
		run_in(name_of(made));
	}
	printf("make\t%.3f\n", (now_us() - start) / 1e6);
}

static void run_one(const void *arg)
{
	(void)arg;
	run_in(name_of((unsigned long)rand() % among));
}

int main(void)
{
	static const struct variant exec = { .name = "exec", .run = run_one };
	struct cordon_error err;
	struct rlimit files;
	unsigned long number;
	char line[64];
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	must(cordon_open(NULL, &cordon, &err), &err);
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "make %lu", &number) == 1)
			make(number);
		else if (sscanf(line, "exec %lu %lu", &number, &among) == 2 && among && among <= made)
			interleave("idle", &exec, 1, number, 1000);
		else
			give_up("not understood: %s", line);
		fflush(stdout);
	}
	cordon_unref(cordon);
	return 0;
}

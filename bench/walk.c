/* What the walk costs without the driver: steps 1 to 4, and step 6 with a durable intent row. Links the library's own
 * parts. walk RUNS DATA_DIR WORKSPACE: prints NAME, p50 and p90 in microseconds, for the whole and for each step, once
 * for a one-off and once for a session; behind the whole its goal, and whether it is met. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "execute.h"

static const struct {
	const char *name;
	int (*take)(struct execution *execution, struct cordon_error *err);
} steps[] = {
	{ "session", session_step }, { "cwd", cwd_step }, { "capability", capability_step }, { "profile", profile_step },
	{ "audit", audit_step_intent },
};
enum { STEPS = ARRAY_SIZE(steps) };

/* The whole, p50 on tmpfs, on a machine that does nothing else. */
#define GOAL_US 150

static double now_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void print(const char *kind, const char *name, bool is_whole, double *took, size_t runs)
{
	qsort(took, runs, sizeof(*took), by_value);
	printf("%s %s\t%.1f\t%.1f", kind, name, took[runs / 2], took[runs * 9 / 10]);
	if (is_whole)
		printf("\tgoal: p50 under %d us: %s", GOAL_US, took[runs / 2] < GOAL_US ? "met" : "NOT MET");
	putchar('\n');
}

static int measure(struct cordon *cordon, const struct cordon_request *request, const char *kind, size_t runs,
                   struct cordon_error *err)
{
	double *took = calloc(runs * (STEPS + 1), sizeof(*took));
	for (size_t run = 0; took && run < runs; run++) {
		struct execution *execution;
		double begin = now_us(), at = begin;
		if (execute_new(cordon, request, false, &execution, err) < 0)
			return -1;
		for (size_t step = 0; step < STEPS; step++) {
			if (steps[step].take(execution, err) < 0)
				return -1;
			double now = now_us();
			took[(step + 1) * runs + run] = now - at;
			at = now;
		}
		took[run] = at - begin;
		execute_free(execution);
	}
	for (size_t step = 0; took && step <= STEPS; step++)
		print(kind, step ? steps[step - 1].name : "whole", !step, took + step * runs, runs);
	free(took);
	return 0;
}

static int measure_both(char **argv, struct cordon_error *err)
{
	static const char *const command[] = { "/bin/true", NULL };
	const struct cordon_options options = { .data_dir = argv[2] };
	struct cordon *cordon = NULL;
	struct cordon_request *one_off = NULL, *session = NULL;
	size_t runs = strtoul(argv[1], NULL, 10);
	int failed = cordon_open(&options, &cordon, err) < 0 || cordon_request_new(&one_off, err) < 0 ||
	             cordon_request_set(one_off, "workspace", argv[3], err) < 0 ||
	             cordon_request_command(one_off, command, err) < 0 || cordon_request_new(&session, err) < 0 ||
	             cordon_request_set(session, "session", "bench", err) < 0 ||
	             cordon_request_command(session, command, err) < 0 ||
	             measure(cordon, one_off, "one-off", runs, err) < 0 || measure(cordon, session, "session", runs, err) < 0;
	cordon_request_unref(session);
	cordon_request_unref(one_off);
	cordon_unref(cordon);
	return failed ? -1 : 0;
}

int main(int argc, char **argv)
{
	struct cordon_error err;
	if (argc != 4 || measure_both(argv, &err) < 0) {
		fprintf(stderr, "walk: %s\n", argc == 4 ? err.reason : "RUNS DATA_DIR WORKSPACE");
		return 1;
	}
	return 0;
}

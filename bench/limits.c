/* What a control group of its own adds to a command, from being made to being removed: the same command with and without,
 * interleaved, in one run.
 *
 *     limits RUNS WORKSPACE CORDON NOOP CONFIG-WITH CONFIG-WITHOUT
 *
 * Prints `variant p50-without p50-with`, tab-separated, in microseconds. Removing is part of it: the library does that while the next command runs, the program before it ends. */
#include <cordon.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { SAMPLES_MAX = 5000, WARM_UP = 10 };

static const char *workspace, *cordon_program, *noop_program, *configs[2];
static struct cordon *with, *without;

static double now_us(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static void give_up(const char *what)
{
	fprintf(stderr, "bench: %s\n", what);
	exit(1);
}

static void run_program(bool grouped)
{
	const char *const argv[] = { cordon_program, "run", "--quiet", "--workspace", workspace, "--config",
	                             configs[grouped], "--", noop_program, NULL };
	pid_t pid;
	int status;
	if (posix_spawn(&pid, argv[0], NULL, NULL, (char *const *)(uintptr_t)argv, environ) != 0 ||
	    waitpid(pid, &status, 0) < 0 || status != 0)
		give_up("the program failed");
}

static void run_library(bool grouped)
{
	struct cordon_request *request = NULL;
	struct cordon_result *result = NULL;
	struct cordon_error err;
	const char *const argv[] = { noop_program, NULL };
	if (cordon_request_new(&request, &err) < 0 || cordon_request_set(request, "workspace", workspace, &err) < 0 ||
	    cordon_request_command(request, argv, &err) < 0 ||
	    cordon_run(grouped ? with : without, request, &result, &err) < 0 || result->exit_code != 0)
		give_up(result ? "the command failed" : err.reason);
	cordon_result_unref(result);
	cordon_request_unref(request);
}

static const struct {
	const char *name;
	void (*run)(bool grouped);
} variants[] = { { "library", run_library }, { "program", run_program } };

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static double middle(double *samples, int count)
{
	qsort(samples, (size_t)count, sizeof(*samples), ascending);
	return samples[count / 2];
}

static void measure(const char *name, void (*run)(bool grouped), int runs)
{
	static double samples[2][SAMPLES_MAX];
	for (int i = -WARM_UP; i < runs; i++)
		for (int turn = 0; turn < 2; turn++) {
			/* By turns: who is second finds what the first left to do. */
			int grouped = (i + turn) & 1;
			double start = now_us();
			run(grouped);
			if (i >= 0)
				samples[grouped][i] = now_us() - start;
		}
	printf("%s\t%.0f\t%.0f\n", name, middle(samples[0], runs), middle(samples[1], runs));
}

int main(int argc, char **argv)
{
	struct cordon_error err;
	if (argc != 7)
		give_up("usage: limits RUNS WORKSPACE CORDON NOOP CONFIG-WITH CONFIG-WITHOUT");
	int runs = atoi(argv[1]);
	workspace = argv[2];
	cordon_program = argv[3];
	noop_program = argv[4];
	configs[1] = argv[5];
	configs[0] = argv[6];
	const struct cordon_options plain = { .config = configs[1] }, bare = { .config = configs[0] };
	if (runs < 1 || runs > SAMPLES_MAX || cordon_open(&plain, &with, &err) < 0 || cordon_open(&bare, &without, &err) < 0)
		give_up("cannot begin");
	for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++)
		measure(variants[i].name, variants[i].run, runs);
	cordon_unref(with);
	cordon_unref(without);
	return 0;
}

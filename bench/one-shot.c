/* What a sandboxed command costs, beside what it costs bare and under bubblewrap with equal isolation: interleaved, in
 * one run, so that ratios can be trusted where microseconds cannot.
 *
 *     one-shot RUNS WORKSPACE CORDON BWRAP NOOP
 *
 * Prints one line per variant, `name p50 p90` in microseconds, tab-separated; bench/run makes the table. */
#include <cordon.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { SAMPLES_MAX = 5000 };

static const char *workspace, *cordon_program, *bwrap_program, *noop_program;
static struct cordon *library;

static double now_us(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static void spawn(const char *const *argv)
{
	pid_t pid;
	int status;
	if (posix_spawn(&pid, argv[0], NULL, NULL, (char *const *)(uintptr_t)argv, environ) != 0 ||
	    waitpid(pid, &status, 0) < 0 || status != 0) {
		fprintf(stderr, "bench: %s failed\n", argv[0]);
		exit(1);
	}
}

static void run_floor(const char *program)
{
	spawn((const char *const[]){ program, NULL });
}

static void run_bwrap(const char *program)
{
	spawn((const char *const[]){ bwrap_program, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs",
	                             "/tmp", "--bind", workspace, workspace, "--unshare-all", "--new-session",
	                             "--die-with-parent", program, NULL });
}

static void run_cli(const char *program)
{
	spawn((const char *const[]){ cordon_program, "run", "--quiet", "--workspace", workspace, "--", program, NULL });
}

/* `net`: the network to ask for, or NULL. */
static void run_in_library(const char *program, const char *net)
{
	struct cordon_request *request = NULL;
	struct cordon_result *result = NULL;
	struct cordon_error err;
	const char *const argv[] = { program, NULL };
	if (cordon_request_new(&request, &err) < 0 || cordon_request_set(request, "workspace", workspace, &err) < 0 ||
	    (net && cordon_request_set(request, "net", net, &err) < 0) ||
	    cordon_request_command(request, argv, &err) < 0 || cordon_run(library, request, &result, &err) < 0 ||
	    result->exit_code != 0) {
		fprintf(stderr, "bench: the library failed: %s\n", result ? "exit" : err.reason);
		exit(1);
	}
	cordon_result_unref(result);
	cordon_request_unref(request);
}

static void run_library(const char *program)
{
	run_in_library(program, NULL);
}

static void run_hosts(const char *program)
{
	run_in_library(program, "listed.example:443");
}

static const struct {
	const char *name;
	void (*run)(const char *program);
} variants[] = {
	{ "floor", run_floor }, { "bwrap", run_bwrap }, { "library", run_library }, { "hosts", run_hosts },
	{ "cli", run_cli },
};
enum { VARIANTS = sizeof(variants) / sizeof(variants[0]) };

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static void measure(const char *label, const char *program, int runs)
{
	static double samples[VARIANTS][SAMPLES_MAX];
	for (int i = -10; i < runs; i++)
		for (int v = 0; v < VARIANTS; v++) {
			double start = now_us();
			variants[v].run(program);
			if (i >= 0)
				samples[v][i] = now_us() - start;
		}
	for (int v = 0; v < VARIANTS; v++) {
		qsort(samples[v], (size_t)runs, sizeof(double), ascending);
		printf("%s %s\t%.0f\t%.0f\n", label, variants[v].name, samples[v][runs / 2], samples[v][runs * 9 / 10]);
	}
}

int main(int argc, char **argv)
{
	struct cordon_error err;
	if (argc != 6) {
		fprintf(stderr, "usage: one-shot RUNS WORKSPACE CORDON BWRAP NOOP\n");
		return 2;
	}
	int runs = atoi(argv[1]);
	workspace = argv[2];
	cordon_program = argv[3];
	bwrap_program = argv[4];
	noop_program = argv[5];
	if (runs < 1 || runs > SAMPLES_MAX || cordon_open(NULL, &library, &err) < 0) {
		fprintf(stderr, "bench: cannot begin\n");
		return 1;
	}
	measure("/bin/true", "/bin/true", runs);
	measure("no-op", noop_program, runs);
	cordon_unref(library);
	return 0;
}

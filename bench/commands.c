/* What a command costs by each of the ways to run it: bare, under other sandboxes, by cordon's library and program.
 * Interleaved, in one run, so that ratios can be trusted where microseconds cannot.
 *
 *     commands times RUNS REST-US     how long each takes: a line "SUBJECT WAY p50 p90 p99", in microseconds
 *     commands rate SECONDS           one after another without a rest: a line "SUBJECT WAY N", per second
 *     commands cpu COUNT [PID…]       processor time of each: a line "SUBJECT WAY N", in microseconds. It is that of
 * the whole machine, so that init, proxy, daemon and what the kernel tidies up later are counted; the time of the
 * processes PID is not
 *
 * Read from stdin, a line each, words separated by tabs:
 *
 *     subject NAME ARGV…              what is run
 *     spawn NAME EVERY PREFIX…        a way: as a process, with these words before the subject's own
 *     request NAME EVERY KEY=VALUE…   a way: by the library, with these settings
 *
 * A setting of the library itself is config=FILE.
 * Each way is tried first; one that does not work is told by a line "SUBJECT WAY absent WHY" and left out. */
#include <cordon-internal.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sample.h"

extern char **environ;

enum { LINES_MAX = 40, WORDS_MAX = 60 };
#define SLICE_US 50000.0
#define CPU_ROUNDS 3
#define SETTLE_US 150000                /* the kernel takes network namespaces down later, in threads of its own */

/* A line of stdin. */
struct line {
	char *words[WORDS_MAX];
	size_t count;
};

struct way {
	const struct line *line, *subject;
	struct cordon *library;         /* of a request */
};

static char why[2048];

static bool is(const struct line *line, const char *kind)
{
	return strcmp(line->words[0], kind) == 0;
}

static bool spawn(const struct way *way)
{
	char *argv[2 * WORDS_MAX] = { NULL };
	size_t count = 0;
	pid_t pid;
	int status = 0;
	for (size_t i = 3; i < way->line->count; i++)
		argv[count++] = way->line->words[i];
	for (size_t i = 2; i < way->subject->count; i++)
		argv[count++] = way->subject->words[i];
	int failed = posix_spawn(&pid, argv[0], NULL, NULL, argv, environ);
	if (failed == 0 && waitpid(pid, &status, 0) == pid && status == 0)
		return true;
	snprintf(why, sizeof(why), "%s: %s", argv[0], failed ? strerror(failed) : "it ended with an error");
	return false;
}

/* Is it a setting of the library, and not of the request? */
static bool set_option(struct cordon_options *options, const char *setting)
{
	static const char key[] = "config=";
	if (strncmp(setting, key, strlen(key)) == 0)
		options->config = setting + strlen(key);
	else
		return false;
	return true;
}

static bool set(struct cordon_request *request, const char *setting, struct cordon_error *err)
{
	char key[64];
	const char *value = strchr(setting, '=');
	snprintf(key, sizeof(key), "%.*s", (int)(value - setting), setting);
	return cordon_request_set(request, key, value + 1, err) == 0;
}

static bool run_request(const struct way *way)
{
	struct cordon_request *request = NULL;
	struct cordon_result *result = NULL;
	struct cordon_error err = { .reason = "" };
	const char *argv[WORDS_MAX] = { NULL };
	bool fine = cordon_request_new(&request, &err) == 0;
	for (size_t i = 2; i < way->subject->count; i++)
		argv[i - 2] = way->subject->words[i];
	for (size_t i = 3; fine && i < way->line->count; i++)
		fine = set_option(&(struct cordon_options){ 0 }, way->line->words[i]) ||
		       set(request, way->line->words[i], &err);
	fine = fine && cordon_request_command(request, argv, &err) == 0 &&
	       cordon_result_run(way->library, request, &result, &err) == 0;
	if (!fine)
		snprintf(why, sizeof(why), "%s: %s", err.subject, err.reason);
	else if (result->exit_code != 0) {
		snprintf(why, sizeof(why), "it ended with %d", result->exit_code);
		fine = false;
	}
	cordon_result_unref(result);
	cordon_request_unref(request);
	return fine;
}

static bool try(const struct way *way)
{
	return is(way->line, "spawn") ? spawn(way) : run_request(way);
}

static void run(const void *arg)
{
	const struct way *way = arg;
	if (!try(way))
		give_up("%s by %s: %s", way->subject->words[1], way->line->words[1], why);
}

/* By turns, too, for a moment each. */
static void measure_rate(const char *label, const struct variant *variants, size_t count, double seconds)
{
	double ran[LINES_MAX] = { 0 }, took[LINES_MAX] = { 0 };
	for (double slice = 0; slice < seconds * 1e6; slice += SLICE_US)
		for (size_t i = 0; i < count; i++) {
			double start = now_us(), now = start;
			do {
				variants[i].run(variants[i].arg);
				ran[i]++;
			} while ((now = now_us()) - start < SLICE_US);
			took[i] += now - start;
		}
	for (size_t i = 0; i < count; i++)
		printf("%s %s\t%.0f\n", label, variants[i].name, ran[i] / took[i] * 1e6);
	fflush(stdout);
}

/* Processor time of the whole machine in clock ticks: user, nice, system, irq, softirq. */
static double machine_ticks(void)
{
	unsigned long long user, nice, system, idle, wait, irq, softirq;
	FILE *file = fopen("/proc/stat", "re");
	if (!file || fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle, &wait, &irq,
	                    &softirq) != 7)
		give_up("/proc/stat cannot be read");
	fclose(file);
	return (double)(user + nice + system + irq + softirq);
}

static double process_ticks(const char *pid)
{
	char path[64], text[1024] = "";
	unsigned long long user = 0, system = 0;
	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	FILE *file = fopen(path, "re");
	const char *rest = file && fgets(text, sizeof(text), file) ? strrchr(text, ')') : NULL;
	if (!rest || sscanf(rest, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user, &system) != 2)
		give_up("%s cannot be read", path);
	fclose(file);
	return (double)(user + system);
}

static double ticks_without(char **pids)
{
	double ticks = machine_ticks();
	for (; *pids; pids++)
		ticks -= process_ticks(*pids);
	return ticks;
}

static void measure_cpu(const char *label, const struct variant *variants, size_t count, size_t commands, char **pids)
{
	double ticks[LINES_MAX] = { 0 };
	for (int round = 0; round < CPU_ROUNDS; round++)
		for (size_t i = 0; i < count; i++) {
			double start = ticks_without(pids);
			for (size_t ran = 0; ran < commands; ran++)
				variants[i].run(variants[i].arg);
			usleep(SETTLE_US);
			ticks[i] += ticks_without(pids) - start;
		}
	for (size_t i = 0; i < count; i++)
		printf("%s %s\t%.0f\n", label, variants[i].name,
		       ticks[i] / (double)sysconf(_SC_CLK_TCK) * 1e6 / (double)(CPU_ROUNDS * commands));
	fflush(stdout);
}

static bool read_line(struct line *line)
{
	static char text[65536];
	if (!fgets(text, sizeof(text), stdin))
		return false;
	text[strcspn(text, "\n")] = '\0';
	char *rest = strdup(text);
	if (!rest)
		give_up("no memory");
	for (line->count = 0; rest && line->count < WORDS_MAX - 1;)
		line->words[line->count++] = strsep(&rest, "\t");
	if (rest || line->count < 2 || (!is(line, "subject") && line->count < 3))
		give_up("not understood: %s", text);
	return true;
}

static void end_way(const struct way *way)
{
	cordon_unref(way->library);
}

/* Whether it works at all. */
static bool make_way(struct way *way, const struct line *line, const struct line *subject)
{
	struct cordon_error err;
	struct cordon_options options = { 0 };
	*way = (struct way){ .line = line, .subject = subject };
	for (size_t i = 3; is(line, "request") && i < line->count; i++)
		set_option(&options, line->words[i]);
	if (is(line, "request") && cordon_open(&options, &way->library, &err) < 0)
		give_up("%s", err.reason);
	if (try(way))
		return true;
	printf("%s %s\tabsent\t%s\n", subject->words[1], line->words[1], why);
	end_way(way);
	return false;
}

static void measure(const struct line *lines, size_t count, const struct line *subject, char **argv)
{
	struct way ways[LINES_MAX];
	struct variant variants[LINES_MAX];
	size_t found = 0;
	for (size_t i = 0; i < count; i++) {
		if (is(&lines[i], "subject") || !make_way(&ways[found], &lines[i], subject))
			continue;
		variants[found] =
			(struct variant){ lines[i].words[1], run, &ways[found], strtoul(lines[i].words[2], NULL, 10) };
		found++;
	}
	if (strcmp(argv[1], "times") == 0)
		interleave(subject->words[1], variants, found, strtoul(argv[2], NULL, 10), (unsigned)atoi(argv[3]));
	else if (strcmp(argv[1], "cpu") == 0)
		measure_cpu(subject->words[1], variants, found, strtoul(argv[2], NULL, 10), argv + 3);
	else
		measure_rate(subject->words[1], variants, found, atof(argv[2]));
	for (size_t i = 0; i < found; i++)
		end_way(&ways[i]);
}

/* Nothing comes from the commands, and their complaints are no part of the table; spawning has nothing to redirect. */
static void keep_streams_apart(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), output = fcntl(1, F_DUPFD_CLOEXEC, 3),
	    errors = fcntl(2, F_DUPFD_CLOEXEC, 3);
	stdout = fdopen(output, "we");
	stderr = fdopen(errors, "we");
	if (!stdout || !stderr || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
		_exit(1);
	setvbuf(stderr, NULL, _IONBF, 0);
}

int main(int argc, char **argv)
{
	static struct line lines[LINES_MAX];
	size_t count = 0;
	bool is_times = argc == 4 && strcmp(argv[1], "times") == 0, is_rate = argc == 3 && strcmp(argv[1], "rate") == 0;
	if ((!is_times && !is_rate && !(argc >= 3 && strcmp(argv[1], "cpu") == 0)) || atoi(argv[2]) < 1)
		give_up("usage: commands times RUNS REST-US | rate SECONDS | cpu COUNT [PID...]");
	while (count < LINES_MAX && read_line(&lines[count]))
		count++;
	keep_streams_apart();
	for (size_t i = 0; i < count; i++)
		if (is(&lines[i], "subject"))
			measure(lines, count, &lines[i], argv);
	return 0;
}

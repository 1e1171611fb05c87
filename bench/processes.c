/* How long a caller with an event loop is held up by one call: many processes at once, some of which ask a human.
 *
 *     processes COUNT ASKING          a line "CALL p50 p99 max", in microseconds, for cordon_start, cordon_process_next
 * and the rest
 *
 * Each process writes, waits a moment, and ends; those that ask are answered once all others have ended. The status is
 * 0 only if all ran. */
#include <cordon-internal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

enum { START, NEXT, ANSWER, UNREF, CALLS };
static const char *const names[CALLS] = { "start", "next", "answer", "unref" };
static double *times[CALLS];
static size_t counts[CALLS], room;
static struct cordon_error *err;

static double now_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void note(int call, double begun)
{
	if (counts[call] < room)
		times[call][counts[call]++] = now_us() - begun;
}

static void must(int result)
{
	if (result >= 0)
		return;
	fprintf(stderr, "%s\n", cordon_error_text(err, "reason"));
	exit(1);
}

static struct cordon_process *start(struct cordon *cordon, bool asks)
{
	const char *const argv[] = { "sh", "-c", "echo up; sleep 0.2; echo down", NULL };
	struct cordon_request *request;
	struct cordon_process *process;
	must(cordon_request_new(&request, err));
	must(cordon_request_set(request, "session", asks ? "asking" : "plain", err));
	must(cordon_request_set(request, "ask", "true", err));
	if (asks)
		must(cordon_request_set(request, "read", "/var/tmp", err));
	must(cordon_request_command(request, argv, err));
	double begun = now_us();
	must(cordon_start(cordon, request, &process, err));
	note(START, begun);
	cordon_request_unref(request);
	return process;
}

static struct cordon_value *next(struct cordon_process *process)
{
	struct cordon_value *event;
	double begun = now_us();
	must(cordon_process_next(process, &event, err));
	note(NEXT, begun);
	return event;
}

struct asked {
	struct cordon_process *process;
	struct cordon_value *event;
};

static void answer(const struct asked *asked)
{
	double begun = now_us();
	must(cordon_process_answer(asked->process, cordon_value_text(asked->event, "card", NULL), NULL,
	                           CORDON_APPROVED_ONCE, NULL, err));
	note(ANSWER, begun);
	cordon_value_unref(asked->event);
}

static int compare(const void *a, const void *b)
{
	double first = *(const double *)a, second = *(const double *)b;
	return (first > second) - (first < second);
}

int main(int argc, char **argv)
{
	size_t count = argc == 3 ? strtoul(argv[1], NULL, 10) : 500,
	       asking = argc == 3 ? strtoul(argv[2], NULL, 10) : 10;
	size_t left = count, ran = 0, waiting = 0;
	struct asked *asked = calloc(asking + 1, sizeof(*asked));
	struct cordon *cordon;
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	room = count * 40;
	for (int call = 0; call < CALLS; call++)
		times[call] = calloc(room, sizeof(double));
	err = cordon_error_new();
	must(cordon_open(NULL, &cordon, err));
	for (size_t i = 0; i < count; i++) {
		struct cordon_process *process = start(cordon, i < asking);
		struct epoll_event event = { .events = EPOLLIN, .data.ptr = process };
		epoll_ctl(epoll_fd, EPOLL_CTL_ADD, cordon_process_fd(process), &event);
	}
	while (left) {
		struct epoll_event ready[64];
		int many = epoll_wait(epoll_fd, ready, 64, 60000);
		if (many == 0)
			return fprintf(stderr, "%zu do not end, %zu ask\n", left, waiting), 1;
		for (int i = 0; i < many; i++) {
			struct cordon_process *process = ready[i].data.ptr;
			struct cordon_value *event = next(process);
			const char *kind = cordon_value_text(event, "event", NULL);
			if (kind && !strcmp(kind, "asks") && waiting < asking) {
				asked[waiting++] = (struct asked){ process, event };
				continue;
			}
			if (kind && !strcmp(kind, "ended")) {
				ran += cordon_value_type(event, "result.exit_code") == CORDON_INT &&
				       !cordon_value_int(event, "result.exit_code");
				if (cordon_value_type(event, "error.reason") == CORDON_TEXT)
					fprintf(stderr, "%s\n", cordon_value_text(event, "error.reason", NULL));
				double begun = now_us();
				cordon_process_unref(process);
				note(UNREF, begun);
				left--;
			}
			cordon_value_unref(event);
		}
		for (size_t i = 0; left && left == waiting && i < asking; i++)
			if (asked[i].event) {
				answer(&asked[i]);
				asked[i].event = NULL;
			}
		if (left == waiting)
			waiting = 0;
	}
	for (int call = 0; call < CALLS; call++) {
		qsort(times[call], counts[call], sizeof(double), compare);
		if (counts[call])
			printf("%s %.0f %.0f %.0f\n", names[call], times[call][counts[call] / 2],
			       times[call][counts[call] * 99 / 100], times[call][counts[call] - 1]);
	}
	cordon_unref(cordon);
	return ran == count ? 0 : 1;
}

/* An agent's loop: two processes, one descriptor each; a question that is answered; one that is cancelled. No call
 * waits.
 *
 *     cc agent.c -o agent $(pkg-config --cflags --libs cordon) && ./agent
 *
 * Prints what the one wrote, once it was approved, and what ended the other:
 *
 *     asked for more than session agent-c has
 *     ran
 *     cancel
 */
#include <cordon.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

static struct cordon_error *err;

static void must(int result)
{
	if (result >= 0)
		return;
	fprintf(stderr, "%s: %s\n", cordon_error_text(err, "reason"), cordon_error_text(err, "remediation"));
	exit(1);
}

static struct cordon_process *start(struct cordon *cordon, int epoll_fd, const char *line, const char *read)
{
	const char *const argv[] = { "sh", "-c", line, NULL };
	struct cordon_request *request;
	struct cordon_process *process;
	must(cordon_request_new(&request, err));
	must(cordon_request_set(request, "session", "agent-c", err));
	must(cordon_request_set(request, "ask", "true", err));
	if (read)
		must(cordon_request_set(request, "read", read, err));
	must(cordon_request_command(request, argv, err));
	must(cordon_start(cordon, request, &process, err));
	cordon_request_unref(request);
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = process };
	epoll_ctl(epoll_fd, EPOLL_CTL_ADD, cordon_process_fd(process), &event);
	return process;
}

/* A real agent would show the question to a person, and answer later. */
static void approve(struct cordon_process *process, const struct cordon_value *event)
{
	printf("asked for more than session %s has\n", cordon_value_text(event, "question.session", NULL));
	must(cordon_process_answer(process, cordon_value_text(event, "card", NULL),
	                           cordon_value_text(event, "hash", NULL), CORDON_APPROVED_ONCE, NULL, err));
}

/* True: it was the last event. */
static bool handle(struct cordon_process *process, const struct cordon_value *event)
{
	const char *kind = cordon_value_text(event, "event", NULL);
	if (!strcmp(kind, "asks")) {
		approve(process, event);
	} else if (!strcmp(kind, "output")) {
		size_t length;
		const char *data = cordon_value_text(event, "data", &length);
		if (length == 9 && !memcmp(data, "sleeping\n", 9))
			must(cordon_process_cancel(process, 2000, err));
		else
			fwrite(data, 1, length, stdout);
	} else if (!strcmp(kind, "ended")) {
		const char *by = cordon_value_text(event, "result.ended_by", NULL);
		if (!by)
			printf("refused: %s\n", cordon_value_text(event, "error.reason", NULL));
		else if (strcmp(by, "exit") != 0)
			printf("%s\n", by);
		return true;
	}
	return false;
}

/* All there is to be taken now. */
static bool take(struct cordon_process *process)
{
	for (struct cordon_value *event;;) {
		must(cordon_process_next(process, &event, err));
		if (!event)
			return false;
		bool ended = handle(process, event);
		cordon_value_unref(event);
		if (ended)
			return true;
	}
}

int main(void)
{
	struct cordon *cordon;
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC), left = 2;
	if (!(err = cordon_error_new()) || epoll_fd < 0)
		return 1;
	must(cordon_open(NULL, &cordon, err));
	start(cordon, epoll_fd, "echo ran", "/var/tmp");
	for (bool second = false; left;) {
		struct epoll_event ready;
		int count = epoll_wait(epoll_fd, &ready, 1, -1);
		if (count < 0 && errno != EINTR)
			return 1;
		if (count > 0 && take(ready.data.ptr)) {
			cordon_process_unref(ready.data.ptr); /* its descriptor leaves the loop with it */
			left--;
			if (!second)
				start(cordon, epoll_fd, "echo sleeping; exec sleep 1000", NULL);
			second = true;
		}
	}
	cordon_unref(cordon);
	cordon_error_free(err);
	return 0;
}

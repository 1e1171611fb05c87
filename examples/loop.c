/* Several commands at once, in an event loop of one's own: each process is one descriptor to poll.
 *
 *     cc loop.c -o loop $(pkg-config --cflags --libs cordon) && ./loop
 *
 * Prints what each command wrote as soon as that command has ended, the slow one last:
 *
 *     1: quick
 *     2: exit code 3
 *     0: slow
 */
#include <cordon.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMMANDS 3
static const char *const lines[COMMANDS] = { "sleep 1; echo slow", "echo quick", "sleep 0.3; exit 3" };
static struct cordon_error *err;
static void must(int result)
{
	if (result < 0) {
		fprintf(stderr, "%s\n", cordon_error_text(err, "reason"));
		exit(1);
	}
}

static void show(int number, struct cordon_process *process)
{
	struct cordon_value *result = NULL;
	must(cordon_process_wait(process, 0, &result, err));
	int code = (int)cordon_value_int(result, "exit_code");
	if (code == 0)
		printf("%d: %s", number, cordon_value_text(result, "stdout", NULL));
	else
		printf("%d: exit code %d\n", number, code);
	cordon_value_unref(result);
}

/* True: it has ended, which is its last event. */
static bool take(struct cordon_process *process)
{
	struct cordon_value *event;
	bool ended = false;
	while (cordon_process_next(process, &event, err) == 0 && event) {
		ended = !strcmp(cordon_value_text(event, "event", NULL), "ended");
		cordon_value_unref(event);
	}
	return ended;
}

int main(void)
{
	struct cordon *cordon;
	struct cordon_request *request;
	struct cordon_process *processes[COMMANDS];
	struct pollfd polled[COMMANDS];
	must(cordon_open(NULL, &cordon, err = cordon_error_new()));
	for (int i = 0; i < COMMANDS; i++) {
		const char *const argv[] = { "sh", "-c", lines[i], NULL };
		must(cordon_request_new(&request, err));
		must(cordon_request_command(request, argv, err));
		must(cordon_start(cordon, request, &processes[i], err));
		cordon_request_unref(request);
		polled[i] = (struct pollfd){ .fd = cordon_process_fd(processes[i]), .events = POLLIN };
	}
	for (int running = COMMANDS; running > 0 && poll(polled, COMMANDS, -1) > 0;) {
		for (int i = 0; i < COMMANDS; i++) {
			if (!polled[i].revents || !take(processes[i]))
				continue;
			show(i, processes[i]);
			cordon_process_unref(processes[i]);
			polled[i].fd = -1; /* poll() passes it over */
			running--;
		}
	}
	cordon_unref(cordon);
	return 0;
}

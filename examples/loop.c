/* Several commands at once, in an event loop of one's own: each execution is one descriptor to poll.
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
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define COMMANDS 3
static const char *const lines[COMMANDS] = { "sleep 1; echo slow", "echo quick", "sleep 0.3; exit 3" };

static void end(const struct cordon_error *err)
{
	fprintf(stderr, "%s: %s (%s)\n", cordon_class_name(err->class), err->reason, err->subject);
	exit(1);
}

static void show(int number, struct cordon_execution *execution)
{
	struct cordon_result *result;
	struct cordon_error err;
	if (cordon_execution_result(execution, &result, &err) < 0)
		end(&err);
	if (result->exit_code == 0)
		printf("%d: %s", number, result->stdout_data);
	else
		printf("%d: exit code %d\n", number, result->exit_code);
	cordon_result_unref(result);
}

int main(void)
{
	struct cordon *cordon;
	struct cordon_request *requests[COMMANDS];
	struct cordon_execution *executions[COMMANDS];
	struct cordon_error err;
	struct pollfd polled[COMMANDS];
	char here[4096];

	if (!getcwd(here, sizeof(here)))
		return 1;
	if (cordon_open(NULL, &cordon, &err) < 0)
		end(&err);
	for (int i = 0; i < COMMANDS; i++) {
		const char *const argv[] = { "sh", "-c", lines[i], NULL };
		if (cordon_request_new(&requests[i], &err) < 0 ||
		    cordon_request_set(requests[i], "workspace", here, &err) < 0 ||
		    cordon_request_command(requests[i], argv, &err) < 0 ||
		    cordon_start(cordon, requests[i], &executions[i], &err) < 0)
			end(&err);
		polled[i] = (struct pollfd){ .fd = cordon_execution_fd(executions[i]), .events = POLLIN };
	}
	for (int running = COMMANDS; running > 0;) {
		poll(polled, COMMANDS, -1);
		for (int i = 0; i < COMMANDS; i++) {
			bool finished = false;
			if (!polled[i].revents)
				continue;
			if (cordon_execution_step(executions[i], &finished, &err) < 0)
				end(&err);
			if (!finished)
				continue;
			show(i, executions[i]);
			polled[i] = (struct pollfd){ .fd = -1 }; /* poll() passes it over */
			running--;
			cordon_execution_unref(executions[i]);
			cordon_request_unref(requests[i]);
		}
	}
	cordon_unref(cordon);
	return 0;
}

/* The current session of a thread: a tool deep in a call chain runs its command in it without being told which it is.
 *
 *     cc current.c -o current -pthread $(pkg-config --cflags --libs cordon) && ./current
 *
 * Two threads work in two sessions, each with a workspace of its own. Prints:
 *
 *     ada: I am ada
 *     bob: I am bob
 *     no session: invalid_request
 */
#include <cordon.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

struct conversation {
	const char *name;
	struct cordon *cordon;
	char output[128];
	pthread_t thread;
};

/* Deep in the call chain. Without a current session this is an error, never a run without one. */
static int some_tool(const char *line, char *output, size_t size)
{
	const char *const argv[] = { "sh", "-c", line, NULL };
	struct cordon_result *result = NULL;
	struct cordon_error err;
	if (cordon_run_current(argv, &result, &err) < 0) {
		snprintf(output, size, "%s", cordon_class_name(err.class));
		cordon_result_unref(result);
		return -1;
	}
	snprintf(output, size, "%.*s", (int)strcspn(result->stdout_data, "\n"), result->stdout_data);
	cordon_result_unref(result);
	return 0;
}

static void *converse(void *arg)
{
	struct conversation *conversation = arg;
	struct cordon_error err;
	char line[128];
	if (cordon_session_enter(conversation->cordon, conversation->name, &err) < 0) {
		snprintf(conversation->output, sizeof(conversation->output), "%.100s", err.reason);
		return NULL;
	}
	/* Written by one command, read by the next: both in the session that this thread is in. */
	snprintf(line, sizeof(line), "echo I am %s >name", cordon_session_current());
	if (some_tool(line, conversation->output, sizeof(conversation->output)) == 0)
		some_tool("cat name", conversation->output, sizeof(conversation->output));
	cordon_session_leave();
	return NULL;
}

int main(void)
{
	struct conversation conversations[] = { { .name = "ada" }, { .name = "bob" } };
	struct cordon *cordon;
	struct cordon_error err;
	char output[128];
	if (cordon_open(NULL, &cordon, &err) < 0)
		return 1;
	for (int i = 0; i < 2; i++) {
		conversations[i].cordon = cordon;
		if (pthread_create(&conversations[i].thread, NULL, converse, &conversations[i]) != 0)
			return 1;
	}
	for (int i = 0; i < 2; i++) {
		pthread_join(conversations[i].thread, NULL);
		printf("%s: %s\n", conversations[i].name, conversations[i].output);
	}
	/* This thread never entered one. */
	some_tool("true", output, sizeof(output));
	printf("no session: %s\n", output);
	cordon_unref(cordon);
	return 0;
}

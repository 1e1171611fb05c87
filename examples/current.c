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
	struct cordon_value *result = NULL;
	struct cordon_error *err = cordon_error_new();
	int status = cordon_run_current(argv, &result, err);
	const char *text = status < 0 ? cordon_error_text(err, "class") : cordon_value_text(result, "stdout", NULL);
	snprintf(output, size, "%.*s", (int)strcspn(text, "\n"), text);
	cordon_value_unref(result);
	cordon_error_free(err);
	return status;
}

static void *converse(void *arg)
{
	struct conversation *conversation = arg;
	char line[128];
	if (cordon_session_enter(conversation->cordon, conversation->name, NULL) < 0)
		return NULL;
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
	char output[128];
	if (cordon_open(NULL, &cordon, NULL) < 0)
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

/* A session: a workspace that stays between commands, and a ceiling that it was given when it was made.
 *
 *     cc session.c -o session $(pkg-config --cflags --libs cordon) && ./session
 *
 * Makes notes.txt in the current directory, lets a session read that directory without asking, runs two commands in it
 * and ends it. Prints:
 *
 *     first: 1 line
 *     second: buy milk
 *     third: session_ended
 */
#include <cordon.h>
#include <stdio.h>
#include <unistd.h>

static struct cordon *cordon;
static struct cordon_error *err;
static char id[64];

static int failed(void)
{
	fprintf(stderr, "%s: %s\n", cordon_error_text(err, "class"), cordon_error_text(err, "reason"));
	return 1;
}

/* Each command gets what the session has; nothing has to be granted again. */
static int run(const char *line, struct cordon_value **ret_result)
{
	const char *const argv[] = { "sh", "-c", line, NULL };
	struct cordon_request *request = NULL;
	int status = cordon_request_new(&request, err) < 0 || cordon_request_set(request, "session", id, err) < 0 ||
	             cordon_request_command(request, argv, err) < 0 ? -1 : cordon_run(cordon, request, ret_result, err);
	cordon_request_unref(request);
	return status;
}

/* A method that takes the session's id, and more. */
static int call(const char *method, const char *more)
{
	struct cordon_value *told = NULL;
	char params[5000];
	snprintf(params, sizeof(params), "{\"id\": \"%s\"%s}", id, more);
	int status = cordon_call(cordon, method, params, &told, err);
	cordon_value_unref(told);
	return status;
}

int main(void)
{
	struct cordon_value *first = NULL, *second = NULL, *third = NULL;
	char here[4000], line[4096], settings[4096];
	FILE *notes = fopen("notes.txt", "w");

	if (!notes || fputs("buy milk\n", notes) < 0 || fclose(notes) != 0 || !getcwd(here, sizeof(here)))
		return 1;
	snprintf(id, sizeof(id), "example-%d", getpid());
	snprintf(line, sizeof(line), "cp '%s/notes.txt' copy && echo $(wc -l <copy) line", here);
	snprintf(settings, sizeof(settings), ", \"settings\": {\"read\": \"%s\"}", here);

	if (!(err = cordon_error_new()) || cordon_open(NULL, &cordon, err) < 0 || call("session.new", settings) < 0 ||
	    run(line, &first) < 0 || run("cat copy", &second) < 0)
		return failed();
	printf("first: %s", cordon_value_text(first, "stdout", NULL));
	printf("second: %s", cordon_value_text(second, "stdout", NULL));

	/* Its workspace goes with it; the ledger keeps what it did. */
	if (call("session.end", ", \"remove_workspace\": true") < 0)
		return failed();
	if (run("true", &third) < 0)
		printf("third: %s\n", cordon_error_text(err, "class"));
	if (call("session.remove", "") < 0)
		return failed();

	cordon_value_unref(first);
	cordon_value_unref(second);
	cordon_unref(cordon);
	cordon_error_free(err);
	return 0;
}

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
#include <stdlib.h>
#include <unistd.h>

static struct cordon *cordon;
static char id[64];

static int failed(const struct cordon_error *err)
{
	fprintf(stderr, "%s: %s (%s)\n", cordon_class_name(err->class), err->reason, err->subject);
	return 1;
}

/* Each command gets what the session has; nothing has to be granted again. */
static int run(const char *line, struct cordon_result **ret_result, struct cordon_error *err)
{
	const char *const argv[] = { "sh", "-c", line, NULL };
	struct cordon_request *request = NULL;
	int status = cordon_request_new(&request, err) < 0 || cordon_request_set(request, "session", id, err) < 0 ||
	             cordon_request_command(request, argv, err) < 0 ? -1 : cordon_run(cordon, request, ret_result, err);
	cordon_request_unref(request);
	return status;
}

int main(void)
{
	struct cordon_request *settings = NULL;
	struct cordon_result *first = NULL, *second = NULL, *third = NULL;
	struct cordon_error err;
	char here[4000], line[4096], *json = NULL;
	FILE *notes = fopen("notes.txt", "w");

	if (!notes || fputs("buy milk\n", notes) < 0 || fclose(notes) != 0 || !getcwd(here, sizeof(here)))
		return 1;
	snprintf(id, sizeof(id), "example-%d", getpid());
	snprintf(line, sizeof(line), "cp '%s/notes.txt' copy && echo $(wc -l <copy) line", here);

	if (cordon_open(NULL, &cordon, &err) < 0 || cordon_request_new(&settings, &err) < 0 ||
	    cordon_request_set(settings, "read", here, &err) < 0 ||
	    cordon_session_new(cordon, id, settings, &json, &err) < 0)
		return failed(&err);
	if (run(line, &first, &err) < 0 || run("cat copy", &second, &err) < 0)
		return failed(&err);
	printf("first: %s", first->stdout_data);
	printf("second: %s", second->stdout_data);

	/* Its workspace goes with it; the ledger keeps what it did. */
	if (cordon_session_end(cordon, id, true, &err) < 0)
		return failed(&err);
	if (run("true", &third, &err) < 0)
		printf("third: %s\n", cordon_class_name(err.class));
	if (cordon_session_remove(cordon, id, &err) < 0)
		return failed(&err);

	free(json);
	cordon_result_unref(first);
	cordon_result_unref(second);
	cordon_result_unref(third);
	cordon_request_unref(settings);
	cordon_unref(cordon);
	return 0;
}

/* `cordon run` in a session that has run a command before: session-run run OPTION… -- PROGRAM WORD…
 *
 * The options are the library's settings; --json, --quiet and --config are as in `cordon run`. A session is made that
 * has what they ask for, and in it a first command runs: PROGRAM hello, or the words in FIRST, one in each line. Then
 * PROGRAM WORD… runs, in the same process. With --fresh there is no session, and both commands share nothing.
 *
 * For root and for others; able to leave a wall out. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "walk.h"

#define WORDS_MAX 64

static struct cordon *cordon;
static struct cordon_error err;
static bool json, fresh;
static char session[64];
static const char *keys[WORDS_MAX], *values[WORDS_MAX];
static int setting_count;

static int refused(void)
{
	char *text = cordon_error_json(&err);
	if (json)
		printf("%s\n", text);
	else
		fprintf(stderr, "session-run: %s\n", text);
	free(text);
	return err.class == CORDON_E_PROGRAM_NOT_ALLOWED ? 126 : 125;
}

/* The words of the command; NULL where they are none. */
static char **parse(char **argv, struct cordon_options *options)
{
	static const char *const flags[] = { "--no-spawn", "--spawn" };
	for (argv += 2; *argv; argv++) {
		bool flag = false;
		for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
			flag |= !strcmp(*argv, flags[i]);
		if (!strcmp(*argv, "--"))
			return argv + 1;
		if (!strcmp(*argv, "--json")) {
			json = true;
		} else if (!strcmp(*argv, "--fresh")) {
			fresh = true;
		} else if (!strcmp(*argv, "--config")) {
			options->config = *++argv;
		} else if (strcmp(*argv, "--quiet") && setting_count < WORDS_MAX) {
			keys[setting_count] = *argv + 2;
			values[setting_count++] = flag ? "true" : *++argv;
		}
	}
	return NULL;
}

static struct cordon_request *make_request(bool of_session)
{
	struct cordon_request *request;
	if (cordon_request_new(&request, &err) < 0)
		return NULL;
	for (int i = 0; i < setting_count; i++) {
		/* A session's commands have the session's workspace, and the configuration's driver. */
		bool own = !fresh && (!strcmp(keys[i], "driver") || (of_session && !strcmp(keys[i], "workspace")));
		if (!own && cordon_request_set(request, keys[i], values[i], &err) < 0)
			return NULL;
	}
	if (of_session && cordon_request_set(request, fresh ? "fresh" : "session", fresh ? "true" : session, &err) < 0)
		return NULL;
	return request;
}

static int make_session(void)
{
	char *text;
	struct cordon_request *settings = fresh ? NULL : make_request(false);
	if (fresh)
		return 0;
	if (!settings || cordon_session_new(cordon, session, settings, &text, &err) < 0)
		return -1;
	free(text);
	cordon_request_unref(settings);
	return 0;
}

static void pass_on(void *arg, enum cordon_stream stream, const void *data, size_t length)
{
	(void)arg;
	if (write((int)stream, data, length) < 0)
		exit(98);
}

static int finish(struct cordon_execution *execution)
{
	bool finished = false;
	while (!finished) {
		struct pollfd ready = { .fd = cordon_execution_fd(execution), .events = POLLIN };
		poll(&ready, 1, -1);
		if (cordon_execution_step(execution, &finished, &err) < 0)
			return -1;
	}
	return 0;
}

static int run_first(const char *const *words)
{
	struct cordon_request *request = make_request(true);
	struct cordon_execution *execution;
	struct cordon_result *result;
	if (!request || cordon_request_command(request, words, &err) < 0 ||
	    cordon_execution_start(cordon, request, &execution, &err) < 0)
		return refused();
	if (finish(execution) < 0)
		return refused();
	if (cordon_execution_result(execution, &result, &err) < 0)
		return refused();
	cordon_result_unref(result);
	cordon_execution_unref(execution);
	cordon_request_unref(request);
	return 0;
}

static int run_second(char **words)
{
	struct cordon_request *request = make_request(true);
	struct cordon_execution *execution;
	struct cordon_result *result;
	if (!request || cordon_request_command(request, (const char *const *)words, &err) < 0)
		return refused();
	if (!isatty(STDIN_FILENO))
		cordon_request_stdin(request, STDIN_FILENO);
	if (!json)
		cordon_request_output(request, pass_on, NULL);
	if (cordon_execution_start(cordon, request, &execution, &err) < 0)
		return refused();
	if (finish(execution) < 0 || cordon_execution_result(execution, &result, &err) < 0)
		return refused();
	int status = result->signal ? 128 + result->signal : result->timed_out ? 124 : result->exit_code;
	char *text = json ? cordon_result_json(result) : NULL;
	if (text)
		printf("%s\n", text);
	free(text);
	cordon_result_unref(result);
	cordon_execution_unref(execution);
	cordon_request_unref(request);
	return status;
}

int main(int argc, char **argv)
{
	struct cordon_options options = { 0 };
	char **words = argc > 2 ? parse(argv, &options) : NULL;
	if (!words || !words[0])
		return 2;
	const char *first[WORDS_MAX + 2] = { words[0], "hello" };
	char *given = getenv("FIRST");
	int count = 1;
	for (char *line = given ? strtok(given, "\n") : NULL; line && count <= WORDS_MAX; line = strtok(NULL, "\n"))
		first[count++] = line;
	snprintf(session, sizeof(session), "walls/%d-%lx", (int)getpid(), (long)time(NULL));
	if (cordon_open(&options, &cordon, &err) < 0 || make_session() < 0)
		return refused();
	int status = run_first(first);
	if (!status)
		status = run_second(words);
	cordon_unref(cordon);
	return status;
}

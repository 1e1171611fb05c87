/* Many commands in many sessions at once, for bench/soak:
 *
 *     soak library SESSIONS           by the library, in this process
 *     soak program SESSIONS CORDON    each by `cordon run --json --session`, which uses the daemon if there is one
 *
 * For each line "COMMANDS SECONDS" on stdin that many are run, all sessions together, or until the time is up,
 * whichever is first; 0 is no bound. Each prints "ran AUDIT-ID" or "lost WHY", and in the end "done". A session has one
 * thread, and one command at a time. */
#include <cordon-internal.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sample.h"

extern char **environ;

enum { SESSIONS_MAX = 2000, ANSWER_MAX = 65536 };

static const char *cordon_program;
static struct cordon *library;
static atomic_long left;
static double end_us;

static void name_session(char name[32], size_t number)
{
	snprintf(name, 32, "soak-%zu", number);
}

/* ---- one command: its audit id, or why there is none ---------------------------------------------------------------
 */

static bool run_library(const char *session, char *answer, size_t size)
{
	static const char *const argv[] = { "/bin/true", NULL };
	struct cordon_request *request = NULL;
	struct cordon_result *result = NULL;
	struct cordon_error err = { .reason = "" };
	bool ran = cordon_request_new(&request, &err) == 0 &&
	           cordon_request_set(request, "session", session, &err) == 0 &&
	           cordon_request_command(request, argv, &err) == 0 &&
	           cordon_result_run(library, request, &result, &err) == 0 && result->exit_code == 0;
	snprintf(answer, size, "%s", ran ? result->audit_id : result ? "it ended with an error" : err.reason);
	cordon_result_unref(result);
	cordon_request_unref(request);
	return ran;
}

/* Standard output of a program, all of it. */
static bool ask(char *const *argv, char *text, size_t size)
{
	int ends[2], status = -1;
	posix_spawn_file_actions_t actions;
	size_t used = 0;
	pid_t pid;
	if (pipe2(ends, O_CLOEXEC) < 0)
		give_up("no pipe");
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
	posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	int failed = posix_spawn(&pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	for (ssize_t got; !failed && used < size - 1 && (got = read(ends[0], text + used, size - 1 - used)) > 0;)
		used += (size_t)got;
	close(ends[0]);
	text[used] = '\0';
	return !failed && waitpid(pid, &status, 0) == pid && status == 0;
}

static bool run_program(const char *session, char *answer, size_t size)
{
	static const char key[] = "\"audit_id\":\"";
	const char *const argv[] = { cordon_program, "run", "--json", "--session", session, "--", "/bin/true", NULL };
	char text[ANSWER_MAX];
	bool ran = ask((char *const *)(uintptr_t)argv, text, sizeof(text));
	const char *id = strstr(text, key);
	text[strcspn(text, "\n")] = '\0';
	if (ran && id)
		snprintf(answer, size, "%.*s", (int)strcspn(id + strlen(key), "\""), id + strlen(key));
	else
		snprintf(answer, size, "%s", *text ? text : "no answer");
	return ran && id;
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static void *work(void *arg)
{
	char session[32], answer[ANSWER_MAX];
	name_session(session, (size_t)(uintptr_t)arg);
	while (atomic_fetch_sub(&left, 1) > 0 && now_us() < end_us) {
		bool ran = cordon_program ? run_program(session, answer, sizeof(answer))
		                          : run_library(session, answer, sizeof(answer));
		printf("%s %s\n", ran ? "ran" : "lost", answer);
	}
	return NULL;
}

static void run_all(size_t sessions)
{
	static pthread_t threads[SESSIONS_MAX];
	pthread_attr_t attributes;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 512 * 1024);
	for (size_t i = 0; i < sessions; i++)
		if (pthread_create(&threads[i], &attributes, work, (void *)(uintptr_t)i) != 0)
			give_up("no thread");
	for (size_t i = 0; i < sessions; i++)
		pthread_join(threads[i], NULL);
	pthread_attr_destroy(&attributes);
}

static void make_sessions(size_t sessions)
{
	struct cordon_error err;
	if (cordon_open(NULL, &library, &err) < 0)
		give_up("%s", err.reason);
	for (size_t i = 0; i < sessions; i++) {
		char session[32], *json;
		name_session(session, i);
		if (cordon_session_new(library, session, NULL, &json, &err) < 0)
			give_up("%s", err.reason);
		free(json);
	}
}

int main(int argc, char **argv)
{
	struct rlimit files;
	size_t sessions = argc >= 3 ? strtoul(argv[2], NULL, 10) : 0;
	char line[128];
	cordon_program = argc == 4 ? argv[3] : NULL;
	if (!sessions || sessions > SESSIONS_MAX || strcmp(argv[1], cordon_program ? "program" : "library") != 0)
		give_up("usage: soak library SESSIONS | program SESSIONS CORDON");
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	make_sessions(sessions);
	while (fgets(line, sizeof(line), stdin)) {
		long commands = 0;
		double seconds = 0;
		if (sscanf(line, "%ld %lf", &commands, &seconds) != 2)
			give_up("not understood: %s", line);
		left = commands ? commands : INT64_MAX;
		end_us = seconds > 0 ? now_us() + seconds * 1e6 : 1e300;
		run_all(sessions);
		printf("done\n");
		fflush(stdout);
	}
	cordon_unref(library);
	return 0;
}

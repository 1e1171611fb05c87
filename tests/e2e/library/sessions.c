/* Sessions from a program with threads: each thread has its own current session, entered and left in any depth; and
 * without one nothing runs. */
#include <pthread.h>

#include "embed.h"

#define THREADS 8
#define TURNS 6
#define DEEP 64

static struct cordon *cordon;

static void *allowed_only_inside(void *arg)
{
	struct cordon_error err;
	struct cordon_result *result = (void *)&err;
	const char *const argv[] = { "true", NULL };
	(void)arg;
	CHECK(!cordon_session_current());
	memset(&err, 0, sizeof(err));
	CHECK(cordon_result_run_current(argv, &result, &err) < 0 && (void *)result == (void *)&err);
	CHECK(err.class == CORDON_E_INVALID_REQUEST && strstr(err.reason, "not configured"));
	/* Leaving what was not entered is nothing. */
	cordon_session_leave();
	CHECK(!cordon_session_current());
	return NULL;
}

static void run_in(const char *id)
{
	struct cordon_error err;
	struct cordon_result *result;
	const char *const argv[] = { "/bin/sh", "-c", "echo \"$CORDON_SESSION_ID\"", NULL };
	char wanted[80];
	snprintf(wanted, sizeof(wanted), "%s\n", id);
	MUST(cordon_result_run_current(argv, &result, &err));
	CHECK(!strcmp(result->stdout_data, wanted));
	cordon_result_unref(result);
}

static void *a_session_each(void *arg)
{
	struct cordon_error err;
	char outer[32], inner[32];
	snprintf(outer, sizeof(outer), "outer %ld", (long)arg);
	snprintf(inner, sizeof(inner), "inner %ld", (long)arg);
	for (int i = 0; i < TURNS; i++) {
		MUST(cordon_session_enter(cordon, outer, &err));
		run_in(outer);
		MUST(cordon_session_enter(cordon, inner, &err));
		CHECK(!strcmp(cordon_session_current(), inner));
		run_in(inner);
		cordon_session_leave();
		CHECK(!strcmp(cordon_session_current(), outer));
		run_in(outer);
		cordon_session_leave();
		allowed_only_inside(NULL);
	}
	return NULL;
}

static void check_depth(void)
{
	struct cordon_error err;
	char id[] = "level 00", *copy = id;
	for (int i = 0; i < DEEP; i++) {
		snprintf(id, sizeof(id), "level %02d", i);
		MUST(cordon_session_enter(cordon, copy, &err));
	}
	CHECK(cordon_session_enter(cordon, "one more", &err) < 0 && err.class == CORDON_E_LIMIT_EXCEEDED);
	CHECK(cordon_session_enter(cordon, "", &err) < 0 && err.class == CORDON_E_INVALID_REQUEST);
	for (int i = DEEP - 1; i >= 0; i--) {
		snprintf(id, sizeof(id), "level %02d", i);
		CHECK(!strcmp(cordon_session_current(), id));
		cordon_session_leave();
	}
	CHECK(!cordon_session_current());
}

/* The calls that the command line is made of, and what they leave untouched. */
static void check_calls(void)
{
	struct cordon_error err, untouched;
	struct cordon_request *settings;
	const char *const argv[] = { "true", NULL };
	char *json = (void *)&err;
	CHECK(cordon_session_show(cordon, "s", &json, &err) < 0 && err.class == CORDON_E_NOT_FOUND);
	CHECK(cordon_session_new(cordon, "a\nb", NULL, &json, &err) < 0 && err.class == CORDON_E_INVALID_REQUEST);
	CHECK((void *)json == (void *)&err);
	MUST(cordon_request_new(&settings, &err));
	MUST(cordon_request_set(settings, "no-spawn", "true", &err));
	memset(&err, 0x5a, sizeof(err));
	untouched = err;
	CHECK(cordon_session_new(cordon, "s", settings, &json, &err) == 0 && strstr(json, "\"spawn\":false"));
	free(json);
	CHECK(cordon_session_pause(cordon, "s", NULL, &err) == 0 && cordon_session_resume(cordon, "s", &err) == 0);
	CHECK(cordon_session_list(cordon, &json, &err) == 0 && strstr(json, "\"id\":\"s\""));
	free(json);
	CHECK(cordon_session_end(cordon, "s", true, &err) == 0 && cordon_session_remove(cordon, "s", &err) == 0);
	CHECK(!memcmp(&err, &untouched, sizeof(err)));
	/* What belongs to a command is not lost in a session. */
	MUST(cordon_request_command(settings, argv, &err));
	CHECK(cordon_session_new(cordon, "t", settings, &json, &err) < 0 && err.class == CORDON_E_INVALID_REQUEST);
	cordon_request_unref(settings);
	struct cordon_request *other = shell("true");
	CHECK(cordon_session_new(cordon, "t", other, &json, &err) < 0 && err.class == CORDON_E_INVALID_REQUEST);
	cordon_request_unref(other);
}

int main(void)
{
	struct cordon_error err;
	pthread_t threads[THREADS + 1];
	MUST(cordon_open(NULL, &cordon, &err));
	check_calls();
	check_depth();
	/* What this thread is in, no other is. */
	MUST(cordon_session_enter(cordon, "main", &err));
	for (long i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, a_session_each, (void *)i) == 0);
	CHECK(pthread_create(&threads[THREADS], NULL, allowed_only_inside, NULL) == 0);
	for (int i = 0; i <= THREADS; i++)
		pthread_join(threads[i], NULL);
	run_in("main");
	cordon_session_leave();
	cordon_unref(cordon);
	puts("fine");
	return 0;
}

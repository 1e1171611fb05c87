/* Jobs in an embedding program: nothing of the request is needed once
 * one runs, threads race for the places, and what still runs goes with the library's state. */
#include <pthread.h>
#include <unistd.h>

#include "embed.h"

#define STARTERS 12
#define PLACES 8

static struct cordon *cordon;

static struct cordon_request *in_session(const char *session, const char *line)
{
	struct cordon_error err;
	struct cordon_request *request = shell(line);
	MUST(cordon_request_set(request, "session", session, &err));
	return request;
}

static bool says(const char *json, const char *what)
{
	return strstr(json, what) != NULL;
}

static void start(const char *session, const char *line, char id[32])
{
	struct cordon_error err;
	struct cordon_request *request = in_session(session, line);
	char *json;
	MUST(cordon_job_start(cordon, request, &json, &err));
	CHECK(says(json, "\"state\":\"running\"") || says(json, "\"state\":\"ended\""));
	/* It may be changed and released at once. */
	MUST(cordon_request_set(request, "env", "LATER=yes", &err));
	MUST(cordon_request_command(request, (const char *const[]){ "another", NULL }, &err));
	cordon_request_unref(request);
	snprintf(id, 32, "%.26s", strstr(json, "\"id\":\"") + 6);
	free(json);
}

static void wait_for_line(const char *id)
{
	struct cordon_error err;
	struct cordon_job_output output;
	char buffer[64];
	MUST(cordon_job_read(cordon, id, CORDON_STDOUT, 0, buffer, sizeof(buffer), 60000, &output, &err));
	CHECK(output.length && !output.from && !output.ended);
}

/* What runs is there while its session is paused, and not beyond its end. */
static void a_session(void)
{
	struct cordon_error err;
	char id[32], *json;
	start("s", "echo ready; exec sleep 600", id);
	wait_for_line(id);
	MUST(cordon_session_pause(cordon, "s", NULL, &err));
	struct cordon_request *request = in_session("s", "true");
	CHECK(cordon_job_start(cordon, request, &json, &err) < 0 && err.class == CORDON_E_SESSION_PAUSED);
	cordon_request_unref(request);
	MUST(cordon_job_wait(cordon, id, 0, &json, &err));
	CHECK(says(json, "\"state\":\"running\""));
	free(json);
	MUST(cordon_session_resume(cordon, "s", &err));
	MUST(cordon_job_kill(cordon, id, 19, &err));
	MUST(cordon_session_end(cordon, "s", true, &err));
	MUST(cordon_job_wait(cordon, id, 0, &json, &err));
	CHECK(says(json, "\"state\":\"ended\"") && says(json, "\"killed\":true"));
	free(json);
	MUST(cordon_session_remove(cordon, "s", &err));
	CHECK(cordon_job_wait(cordon, id, 0, &json, &err) < 0 && err.class == CORDON_E_NOT_FOUND);
}

static void *race(void *arg)
{
	struct cordon_error err;
	struct cordon_request *request = in_session("crowd", "exec sleep 600");
	char *json;
	(void)arg;
	if (cordon_job_start(cordon, request, &json, &err) == 0) {
		cordon_request_unref(request);
		free(json);
		return cordon;
	}
	CHECK(err.class == CORDON_E_SESSION_BUSY);
	cordon_request_unref(request);
	return NULL;
}

static void a_crowd(void)
{
	pthread_t threads[STARTERS];
	int started = 0;
	void *result;
	for (int i = 0; i < STARTERS; i++)
		CHECK(pthread_create(&threads[i], NULL, race, NULL) == 0);
	for (int i = 0; i < STARTERS; i++) {
		pthread_join(threads[i], &result);
		started += result != NULL;
	}
	CHECK(started == PLACES);
}

static int count(const char *json, const char *what)
{
	int found = 0;
	for (const char *at = json; (at = strstr(at, what)); at++)
		found++;
	return found;
}

int main(void)
{
	struct cordon_error err;
	char *json;
	MUST(cordon_open(NULL, &cordon, &err));
	a_session();
	a_crowd();
	MUST(cordon_job_list(cordon, NULL, &json, &err));
	CHECK(count(json, "\"state\":\"running\"") == PLACES);
	free(json);
	cordon_unref(cordon);
	MUST(cordon_open(NULL, &cordon, &err));
	MUST(cordon_job_list(cordon, "crowd", &json, &err));
	CHECK(count(json, "\"state\":\"ended\"") == PLACES && count(json, "\"killed\":true") == PLACES);
	free(json);
	MUST(cordon_session_end(cordon, "crowd", true, &err));
	cordon_unref(cordon);
	puts("fine");
	return 0;
}

/* A time limit holds while the caller does not step its execution: the command ends a few seconds later at most, and
 * the result says why. The command writes down each tenth of a second that it lives. */
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "embed.h"

#define LIVES_S 8                       /* a limit of 1 s, 5 s of grace, and room for a busy machine */

static void check_unstepped(struct cordon *cordon, const char *session)
{
	struct cordon_error err;
	struct cordon_execution *execution;
	struct cordon_result *result = NULL;
	bool finished = false;
	char path[4096];
	struct stat before, after;
	struct cordon_request *request = shell("trap '' TERM; (while :; do echo >>alive; sleep 0.1; done) & while :; "
	                                       "do echo >>alive; sleep 0.1; done");
	snprintf(path, sizeof(path), "%s/alive", getenv("WORKSPACE"));
	MUST(cordon_request_set(request, "timeout", "1s", &err));
	if (session)
		MUST(cordon_request_set(request, "session", session, &err));
	MUST(cordon_execution_start(cordon, request, &execution, &err));
	sleep(LIVES_S);
	CHECK(stat(path, &before) == 0);
	sleep(1);
	CHECK(stat(path, &after) == 0 && after.st_size == before.st_size);
	while (!finished) {
		struct pollfd ready = { cordon_execution_fd(execution), POLLIN, 0 };
		CHECK(poll(&ready, 1, PATIENCE_MS) == 1);
		MUST(cordon_execution_step(execution, &finished, &err));
	}
	MUST(cordon_execution_result(execution, &result, &err));
	CHECK(result->timed_out && result->limit_hit && !strcmp(result->limit_hit, "time"));
	CHECK(result->duration_ms >= 1000 && result->duration_ms < LIVES_S * 1000);
	cordon_result_unref(result);
	cordon_execution_unref(execution);
	cordon_request_unref(request);
}

int main(void)
{
	struct cordon_error err;
	struct cordon *cordon;
	MUST(cordon_open(NULL, &cordon, &err));
	check_unstepped(cordon, NULL);
	/* The second one of a session may find walls that are up. */
	if (!getenv("DRIVER"))
		for (int i = 0; i < 2; i++)
			check_unstepped(cordon, "unstepped");
	cordon_unref(cordon);
	puts("fine");
	return 0;
}

/* One library, many sessions: eight threads with a session each run their commands at once, while another thread
 * allocates and signals arrive. Each sees its own files alone; nothing is left of it afterwards, neither descriptor nor
 * child. */
#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "embed.h"
#include "signals.h"

#define THREADS 8
#define RUNS 20

static struct cordon *cordon;

static struct cordon_result *run(const char *session, const char *line)
{
	struct cordon_error err;
	struct cordon_request *request;
	struct cordon_result *result;
	const char *const argv[] = { "/bin/sh", "-c", line, NULL };
	MUST(cordon_request_new(&request, &err));
	if (session)
		MUST(cordon_request_set(request, "session", session, &err));
	MUST(cordon_request_command(request, argv, &err));
	MUST(cordon_result_run(cordon, request, &result, &err));
	cordon_request_unref(request);
	return result;
}

/* Every command adds a line to a file and counts them: another session's would be counted, too. Half of them name the
 * session, half are in it because their thread is. */
static void *converse(void *arg)
{
	struct cordon_error err;
	char id[32], line[128], wanted[32];
	snprintf(id, sizeof(id), "thread/%ld", (long)arg);
	for (int i = 1; i <= RUNS; i++) {
		bool named = i % 2;
		snprintf(line, sizeof(line), "echo %ld >>lines; echo $(sort -u lines) $(wc -l <lines)", (long)arg);
		snprintf(wanted, sizeof(wanted), "%ld %d\n", (long)arg, i);
		if (!named)
			MUST(cordon_session_enter(cordon, id, &err));
		struct cordon_result *result = run(named ? id : NULL, line);
		if (!named)
			cordon_session_leave();
		CHECK(result->exit_code == 0 && !strcmp(result->stdout_data, wanted) && result->stderr_length == 0);
		cordon_result_unref(result);
	}
	CHECK(cordon_session_current() == NULL);
	return arg;
}

static void *allocate(void *arg)
{
	static char *blocks[64];
	for (unsigned i = 0; !stop; i++) {
		free(blocks[i % 64]);
		blocks[i % 64] = malloc(1 + i * 7919u % 200000);
		CHECK(blocks[i % 64]);
		memset(blocks[i % 64], 1, 1);
		usleep(20); /* the others have work to do */
	}
	for (int i = 0; i < 64; i++)
		free(blocks[i]);
	return arg;
}

int main(void)
{
	struct cordon_error err;
	pthread_t threads[THREADS], others[2];
	/* Without SA_RESTART: calls that wait are interrupted. */
	struct sigaction action = { .sa_handler = on_signal }, now;
	sigaction(SIGUSR1, &action, NULL);
	/* What the process keeps for good is there after the first command; what a command leaves for a moment is gone
	 * with the library's state. */
	MUST(cordon_open(NULL, &cordon, &err));
	cordon_result_unref(run("first", "true"));
	cordon_unref(cordon);
	int descriptors = open_descriptors();
	MUST(cordon_open(NULL, &cordon, &err));

	CHECK(pthread_create(&others[0], NULL, allocate, NULL) == 0 &&
	      pthread_create(&others[1], NULL, send_signals, NULL) == 0);
	for (long i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, converse, (void *)i) == 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	stop = true;
	for (int i = 0; i < 2; i++)
		pthread_join(others[i], NULL);

	CHECK(signals > 0 && sigaction(SIGUSR1, NULL, &now) == 0 && now.sa_handler == on_signal);
	cordon_unref(cordon);
	CHECK(open_descriptors() == descriptors);
	/* Its own child may be on its way out for a moment. */
	while (waitpid(-1, NULL, 0) > 0)
		;
	CHECK(errno == ECHILD);
	puts("fine");
	return 0;
}

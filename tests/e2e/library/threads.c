/* From programs with threads: a thread that ends right after it started a command, and many that run at once while
 * others allocate, take signals, and wait for children of their own. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "embed.h"
#include "signals.h"

#define THREADS 16
#define RUNS 8

static struct cordon *cordon;

static void *start_and_leave(void *arg)
{
	struct cordon_error err;
	struct cordon_execution **execution = arg;
	MUST(cordon_execution_start(cordon, shell("sleep 0.4; echo survived"), execution, &err));
	return NULL;
}

/* The parent-death signal of Linux is sent when the *thread* that made a child ends. */
static void check_a_thread_that_ends(void)
{
	struct cordon_error err;
	struct cordon_execution *execution = NULL;
	struct cordon_result *result;
	pthread_t thread;
	bool finished = false;
	CHECK(pthread_create(&thread, NULL, start_and_leave, &execution) == 0 && pthread_join(thread, NULL) == 0);
	while (!finished) {
		MUST(cordon_execution_step(execution, &finished, &err));
		usleep(1000);
	}
	MUST(cordon_execution_result(execution, &result, &err));
	CHECK(result->exit_code == 0 && !strcmp(result->stdout_data, "survived\n"));
	cordon_result_unref(result);
	cordon_execution_unref(execution);
}

static void *run_some(void *arg)
{
	struct cordon_error err;
	long self = (long)arg;
	for (int i = 0; i < RUNS; i++) {
		struct cordon_result *result;
		char line[80], wanted[32];
		snprintf(line, sizeof(line), "echo %ld-%d; exit %ld", self, i, self);
		snprintf(wanted, sizeof(wanted), "%ld-%d\n", self, i);
		struct cordon_request *request = shell(line);
		MUST(cordon_result_run(cordon, request, &result, &err));
		CHECK(result->exit_code == self && !strcmp(result->stdout_data, wanted));
		cordon_result_unref(result);
		cordon_request_unref(request);
	}
	return NULL;
}

static void *allocate(void *arg)
{
	while (!stop) {
		char *block = malloc(100000);
		memset(block, 1, 100000);
		free(block);
		usleep(20); /* the others have work to do */
	}
	return arg;
}

/* Children of the embedding program's own come and go. */
static void *have_children(void *arg)
{
	while (!stop) {
		pid_t pid = fork();
		CHECK(pid >= 0);
		if (pid == 0)
			_exit(7);
		int status;
		CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 7);
		usleep(500);
	}
	return arg;
}

static void check_a_crowd(void)
{
	pthread_t threads[THREADS], others[3];
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	sigaction(SIGUSR1, &action, NULL);
	CHECK(pthread_create(&others[0], NULL, allocate, NULL) == 0);
	CHECK(pthread_create(&others[1], NULL, have_children, NULL) == 0);
	CHECK(pthread_create(&others[2], NULL, send_signals, NULL) == 0);
	for (long i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, run_some, (void *)i) == 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	stop = true;
	for (int i = 0; i < 3; i++)
		pthread_join(others[i], NULL);
	CHECK(signals > 0);
}

int main(void)
{
	struct cordon_error err;
	MUST(cordon_open(NULL, &cordon, &err));
	check_a_thread_that_ends();
	check_a_crowd();
	cordon_unref(cordon);
	puts("fine");
	return 0;
}

/* Commands that may reach listed hosts, in a program with signal handlers and a loop of its own: who is asked, in which
 * thread, and that nothing is left waiting. The environment names a server (PORT), which is a.test and b.test. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "embed.h"

static pthread_t main_thread;
static volatile sig_atomic_t signals, elsewhere;

struct asked {
	int count, other_threads, unblocked;
	enum cordon_answer answer;
	bool waits;             /* until it is no longer wanted */
	int begun[2];           /* a pipe that tells of it */
};

static void on_signal(int signal)
{
	(void)signal;
	signals++;
	elsewhere += !pthread_equal(pthread_self(), main_thread);
}

static enum cordon_answer approve(void *arg, const struct cordon_card *card, char reason[256])
{
	struct asked *asked = arg;
	sigset_t mask;
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	asked->count++;
	asked->other_threads += !pthread_equal(pthread_self(), main_thread);
	for (int signal = 1; signal < 32; signal++)
		asked->unblocked += signal != SIGKILL && signal != SIGSTOP && !sigismember(&mask, signal);
	CHECK(strstr(card->text, "connect to b.test:") && card->settled_fd >= 0);
	CHECK(write(asked->begun[1], "x", 1) == 1);
	if (asked->waits) {
		struct pollfd over = { .fd = card->settled_fd, .events = POLLIN };
		CHECK(poll(&over, 1, 60000) == 1);
		return CORDON_UNANSWERED;
	}
	snprintf(reason, 256, "because");
	return asked->answer;
}

static struct cordon_request *get(const char *host)
{
	struct cordon_error err;
	char url[128];
	snprintf(url, sizeof(url), "http://%s:%s/", host, getenv("PORT"));
	const char *const argv[] = { "/usr/bin/python3", "client.py", "get", url, NULL };
	struct cordon_request *request = shell("");
	MUST(cordon_request_set(request, "session", "s", &err));
	MUST(cordon_request_command(request, argv, &err));
	return request;
}

/* With signals in between. */
static struct cordon_result *follow(struct cordon_execution *execution)
{
	struct cordon_error err;
	struct cordon_result *result;
	for (bool finished = false; !finished;) {
		struct pollfd ready = { cordon_execution_fd(execution), POLLIN, 0 };
		int count = poll(&ready, 1, 10);
		CHECK(count >= 0 || signals);
		if (count == 0)
			CHECK(kill(getpid(), SIGUSR1) == 0);
		MUST(cordon_execution_step(execution, &finished, &err));
	}
	MUST(cordon_execution_result(execution, &result, &err));
	cordon_execution_unref(execution);
	return result;
}

static void check_answer(struct cordon *cordon, struct asked *asked, const char *output, int calls)
{
	struct cordon_error err;
	struct cordon_execution *execution;
	struct cordon_request *request = get("b.test");
	asked->count = asked->other_threads = 0;
	MUST(cordon_execution_start(cordon, request, &execution, &err));
	struct cordon_result *result = follow(execution);
	if (strcmp(result->stdout_data, output) || asked->count != calls) {
		fprintf(stderr, "%d calls, %s%s", asked->count, result->stdout_data, result->stderr_data);
		exit(1);
	}
	CHECK(result->has_network && result->connections + result->connections_denied == 1);
	CHECK(asked->other_threads == asked->count && asked->unblocked == 0);
	cordon_result_unref(result);
	cordon_request_unref(request);
}

/* The command is given up while its question stands. */
static void check_giving_up(struct cordon *cordon, struct asked *asked)
{
	struct cordon_error err;
	struct cordon_execution *execution;
	struct cordon_request *request = get("b.test");
	char byte, *waiting;
	asked->waits = true;
	while (poll(&(struct pollfd){ asked->begun[0], POLLIN, 0 }, 1, 0) == 1)
		CHECK(read(asked->begun[0], &byte, 1) == 1);
	MUST(cordon_execution_start(cordon, request, &execution, &err));
	while (read(asked->begun[0], &byte, 1) < 0)
		;
	cordon_execution_unref(execution);
	cordon_request_unref(request);
	MUST(cordon_approvals_list(cordon, &waiting, &err));
	CHECK(!strcmp(waiting, "{\"approvals\":[]}"));
	free(waiting);
}

int main(void)
{
	struct cordon_error err;
	struct cordon *cordon;
	struct asked asked = { .answer = CORDON_APPROVED_ONCE };
	struct sigaction action = { .sa_handler = on_signal };
	main_thread = pthread_self();
	sigaction(SIGUSR1, &action, NULL);
	CHECK(pipe(asked.begun) == 0);
	MUST(cordon_open(NULL, &cordon, &err));
	cordon_approver(cordon, approve, &asked);
	check_answer(cordon, &asked, "200 hello\n", 1);
	check_giving_up(cordon, &asked);
	asked.waits = false;
	asked.answer = CORDON_DENIED;
	check_answer(cordon, &asked, "403\n", 1);
	check_answer(cordon, &asked, "403\n", 0);
	CHECK(signals > 0 && elsewhere == 0);
	cordon_unref(cordon);
	puts("fine");
	return 0;
}

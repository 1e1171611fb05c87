/* A process with threads that stays: commands of the same session, its first ones too, and of others at a time,
 * sessions that end meanwhile, and two thousand commands after which there are as many descriptors, and as much memory,
 * as before. */
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "embed.h"

#define THREADS 6
#define ROUNDS 25
#define MEETINGS 4
#define COMMANDS 2000
#define BEFORE 200              /* until everything is there that is kept */
#define QUIET_MS 1500           /* for what has just ended */

static struct cordon *cordon;
static atomic_int left_to_do;

static struct cordon_request *request_in(const char *session, const char *program, const char *word, bool fresh)
{
	struct cordon_error err;
	struct cordon_request *request;
	const char *const argv[] = { program, word, NULL };
	MUST(cordon_request_new(&request, &err));
	MUST(cordon_request_set(request, "session", session, &err));
	if (fresh)
		MUST(cordon_request_set(request, "fresh", "true", &err));
	MUST(cordon_request_command(request, argv, &err));
	return request;
}

static void echo(const char *session, const char *word, bool fresh)
{
	struct cordon_error err;
	struct cordon_result *result;
	struct cordon_request *request = request_in(session, "/bin/echo", word, fresh);
	MUST(cordon_result_run(cordon, request, &result, &err));
	CHECK(result->exit_code == 0 && result->stdout_length == strlen(word) + 1 &&
	      !memcmp(result->stdout_data, word, strlen(word)));
	cordon_result_unref(result);
	cordon_request_unref(request);
}

/* In a session of its own, in the one of all, and with nothing shared; its own ends now and then, with its walls up. */
static void *work(void *argument)
{
	struct cordon_error err;
	long number = (long)argument;
	for (int i = 0; i < ROUNDS; i++) {
		char own[32], word[32];
		snprintf(own, sizeof(own), "own/%ld-%d", number, i / 5);
		snprintf(word, sizeof(word), "%ld.%d", number, i);
		echo(own, word, false);
		echo("all", word, i % 3 == 0);
		if (i % 5 == 4) {
			MUST(cordon_session_end(cordon, own, true, &err));
			MUST(cordon_session_remove(cordon, own, &err));
		}
	}
	return NULL;
}

/* The first commands of a session, all at a time. */
static pthread_barrier_t together;
static char meeting[32];

static void *meet(void *argument)
{
	struct cordon_error err;
	struct cordon_result *result;
	struct cordon_request *request = request_in(meeting, "/bin/echo", "met", false);
	pthread_barrier_wait(&together);
	MUST(cordon_result_run(cordon, request, &result, &err));
	CHECK(result->exit_code == 0);
	cordon_result_unref(result);
	cordon_request_unref(request);
	return argument;
}

static void *go_on(void *argument)
{
	while (atomic_fetch_sub(&left_to_do, 1) > 0)
		echo("all", "x", false);
	return argument;
}

static void in_threads(void *(*function)(void *), int count)
{
	pthread_t threads[THREADS];
	for (long i = 0; i < count; i++)
		CHECK(pthread_create(&threads[i], NULL, function, (void *)i) == 0);
	for (int i = 0; i < count; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
}

/* How many there are once that does not change any more. Of commands that have just ended up to sixteen are not tidied
 * up yet, each of which has a pidfd and, as root, what its control group is held by: more than a leak would have to be.
 */
static int settled_descriptors(void)
{
	int count = open_descriptors();
	for (uint64_t since = now_ms(), deadline = since + PATIENCE_MS;
	     now_ms() - since < QUIET_MS && now_ms() < deadline;) {
		pause_ms(50);
		int now = open_descriptors();
		if (now != count)
			since = now_ms();
		count = now;
	}
	return count;
}

int main(void)
{
	struct cordon_error err;
	MUST(cordon_open(NULL, &cordon, &err));
	echo("all", "first", false);
	CHECK(pthread_barrier_init(&together, NULL, THREADS) == 0);
	for (int i = 0; i < MEETINGS; i++) {
		snprintf(meeting, sizeof(meeting), "meeting/%d", i);
		in_threads(meet, THREADS);
	}
	in_threads(work, THREADS);
	atomic_store(&left_to_do, BEFORE);
	in_threads(go_on, 2);
	int descriptors_before = settled_descriptors();
	size_t memory_before = mallinfo2().uordblks;
	atomic_store(&left_to_do, COMMANDS);
	in_threads(go_on, 2);
	CHECK(settled_descriptors() <= descriptors_before + 16);
	CHECK(mallinfo2().uordblks <= memory_before + 128 * 1024);
	cordon_unref(cordon);
	printf("fine\n");
	return 0;
}

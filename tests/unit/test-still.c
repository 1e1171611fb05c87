/* Processes that stand still, and go on afterwards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "process-state.h"
#include "run/processes.h"
#include "run/still.h"

/* Shared with all of them. */
static struct {
	_Atomic unsigned long by_process, by_thread, by_children, wakes;
} *counts;

static void *count_in_thread(void *arg)
{
	for (;; usleep(100))
		counts->by_thread++;
	return arg;
}

static void count_in_children(void)
{
	for (;; usleep(100)) {
		if (fork() == 0) {
			counts->by_children++;
			_exit(0);
		}
		wait(NULL);
	}
}

static void fork_to(void (*run)(void))
{
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		run();
		_exit(0);
	}
}

/* The first thread ends, the other goes on. */
static void count_in_last_thread(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, count_in_thread, NULL);
	pthread_exit(NULL);
}

static void count_alone(void)
{
	for (;;)
		counts->by_process++;
}

static void stop_for_good(void)
{
	for (;; counts->wakes++)
		raise(SIGSTOP);
}

static pid_t start(void)
{
	counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t first = fork();
	if (first == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fork_to(count_alone);
		fork_to(count_in_last_thread);
		fork_to(count_in_children);
		fork_to(stop_for_good);
		for (;;)
			pause();
	}
	return first;
}

static unsigned long sum(void)
{
	return counts->by_process + counts->by_thread + counts->by_children;
}

/* All of them have counted on. */
static void wait_for_all(void)
{
	unsigned long process = counts->by_process, thread = counts->by_thread, children = counts->by_children;
	while (counts->by_process == process || counts->by_thread == thread || counts->by_children == children)
		usleep(1000);
}

static void all_but_the_first(void **state)
{
	(void)state;
	pid_t first = start();
	struct processes processes;
	struct still still;
	wait_for_all();
	int held = 0;
	for (int i = 0; i < 300 && held < 10; i++) {
		/* On a busy machine it may take longer than it may; that is told. */
		if (still_begin(&still, first)) {
			unsigned long before = sum();
			usleep(5000);
			assert_int_equal(sum(), before);
			assert_int_not_equal(process_state(first), 'T');
			held++;
		}
		still_end(&still);
		wait_for_all();
	}
	assert_true(held > 0);
	/* The one that was stopped before was left alone. */
	assert_int_equal(counts->wakes, 0);
	processes_look(first, &processes);
	for (size_t i = processes.count; i-- > 0;)
		kill(processes.pids[i], SIGKILL);
	processes_free(&processes);
	waitpid(first, NULL, 0);
	munmap(counts, 4096);
}

static void nothing_to_hold(void **state)
{
	(void)state;
	struct still still;
	pid_t first = fork();
	if (first == 0)
		for (;;)
			pause();
	assert_true(still_begin(&still, first));
	assert_int_equal(still.count, 0);
	still_end(&still);
	kill(first, SIGKILL);
	waitpid(first, NULL, 0);
	assert_true(still_begin(&still, first));
	still_end(&still);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_but_the_first),
		cmocka_unit_test(nothing_to_hold),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Processes that stand still, and go on afterwards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "process-state.h"
#include "run/processes.h"
#include "run/still.h"

/* For so long parents are stopped first, however many they are. */
#define ORDERLY_AT_LEAST_US 40000
/* One for each process that is stopped, two to look. */
#define STARTED 4
#define NEEDED (STARTED + 2)
#define DESCRIPTORS (NEEDED + 6)

/* Generations that take longer than that. */
#define ROW 200

/* Shared with all of them. */
static struct {
	_Atomic unsigned long by_process, by_thread, by_children, wakes, stops;
} *counts;
/* That are killed after each test, however it ended, with what they started. */
static pid_t first, beside;
static int depth;
static cpu_set_t cpus;

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

static void count_slowly(void)
{
	for (;; usleep(100))
		counts->by_process++;
}

/* As a shell that has job control waits for its job. */
static void wait_for(void (*run)(void))
{
	int status;
	fork_to(run);
	while (waitpid(-1, &status, WUNTRACED) > 0)
		counts->stops += WIFSTOPPED(status);
}

static void wait_for_job(void)
{
	wait_for(count_slowly);
}

static void wait_for_shell(void)
{
	wait_for(wait_for_job);
}

/* NULL after the last, where there are fewer. */
static void start(void (*const run[4])(void))
{
	first = fork();
	if (first == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (int i = 0; i < 4 && run[i]; i++)
			fork_to(run[i]);
		for (;;)
			pause();
	}
	assert_true(first > 0);
}

static cpu_set_t this_cpu(void)
{
	cpu_set_t cpu;
	CPU_ZERO(&cpu);
	CPU_SET((unsigned)sched_getcpu(), &cpu);
	return cpu;
}

static int set_up(void **state)
{
	(void)state;
	counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	first = beside = 0;
	return counts == MAP_FAILED || sched_getaffinity(0, sizeof(cpus), &cpus) < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0;
}

static int tear_down(void **state)
{
	(void)state;
	struct processes processes = { 0 };
	if (first > 0)
		processes_look(first, &processes);
	for (size_t i = processes.count; i-- > 0;)
		kill(processes.pids[i], SIGKILL);
	processes_free(&processes);
	if (beside > 0)
		kill(beside, SIGKILL);
	while (waitpid(-1, NULL, 0) > 0)
		;
	return sched_setaffinity(0, sizeof(cpus), &cpus) < 0 || munmap(counts, 4096);
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
	struct still still;
	start((void (*const[4])(void)){ count_alone, count_in_last_thread, count_in_children, stop_for_good });
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
}

static uint64_t now_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void wait_for_count(const _Atomic unsigned long *count)
{
	for (unsigned long before = *count; *count == before;)
		usleep(100);
}

/* Parents that wait for a processor are not told before they are still either. */
static void parents_are_not_told(void **state)
{
	(void)state;
	struct still still;
	start((void (*const[4])(void)){ wait_for_shell });
	wait_for_count(&counts->by_process);
	struct processes processes;
	processes_look(first, &processes);
	assert_int_equal(processes.count, 4);
	cpu_set_t cpu = this_cpu();
	for (size_t i = 1; i < 3; i++)
		assert_int_equal(sched_setaffinity(processes.pids[i], sizeof(cpu), &cpu), 0);
	processes_free(&processes);
	beside = fork();
	if (beside == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		sched_setaffinity(0, sizeof(cpu), &cpu);
		for (;;)
			;
	}
	int held = 0;
	for (int i = 0; i < 300 && held < 30; i++) {
		unsigned long before = counts->stops;
		uint64_t begun_us = now_us();
		bool all = still_begin(&still, first);
		bool in_time = now_us() - begun_us < ORDERLY_AT_LEAST_US;
		still_end(&still);
		wait_for_count(&counts->by_process);
		/* On a busy machine they may have been stopped in no order. */
		if (all && in_time) {
			assert_int_equal(counts->stops, before);
			held++;
		}
	}
	assert_true(held > 0);
}

static void wait_in_a_row(void)
{
	sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){ 0 });
	if (++depth < ROW)
		wait_for(wait_in_a_row);
	else
		count_slowly();
}

/* So many generations that each cannot be waited for stand still all the same. */
static void a_long_row(void **state)
{
	(void)state;
	struct still still;
	/* None of them gets to stop while others are looked at. */
	cpu_set_t cpu = this_cpu();
	assert_int_equal(sched_setaffinity(0, sizeof(cpu), &cpu), 0);
	start((void (*const[4])(void)){ wait_in_a_row });
	wait_for_count(&counts->by_process);
	bool all = false;
	for (int i = 0; i < 20 && !all; i++) {
		all = still_begin(&still, first);
		unsigned long before = sum();
		usleep(2000);
		if (all)
			assert_int_equal(sum(), before);
		still_end(&still);
	}
	assert_true(all);
}

/* With each number of descriptors that may be too few. */
static void what_cannot_be_looked_at_goes_on(void **state)
{
	(void)state;
	struct still still;
	struct processes processes;
	struct rlimit before, few;
	start((void (*const[4])(void)){ wait_for_shell, count_slowly });
	for (processes_look(first, &processes); processes.count < 1 + STARTED; processes_look(first, &processes)) {
		processes_free(&processes);
		usleep(1000);
	}
	processes_free(&processes);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	auto_close int lowest = open("/dev/null", O_RDONLY | O_CLOEXEC);
	few = before;
	bool all = false;
	for (rlim_t more = 0; more < 300 && !all; more++) {
		few.rlim_cur = (rlim_t)lowest + 1 + (more < DESCRIPTORS ? more : DESCRIPTORS);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		processes_look(first, &processes);
		all = still_begin(&still, first);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
		assert_true(processes.partial || processes.count == 1 + STARTED);
		processes_free(&processes);
		unsigned long counted = sum();
		usleep(2000);
		if (all)
			assert_int_equal(sum(), counted);
		still_end(&still);
		assert_true(!all || more >= NEEDED);
		wait_for_count(&counts->by_process);
	}
	assert_true(all);
}

static void nothing_to_hold(void **state)
{
	(void)state;
	struct still still;
	start((void (*const[4])(void)){ NULL });
	assert_true(still_begin(&still, first));
	assert_int_equal(still.count, 0);
	still_end(&still);
	kill(first, SIGKILL);
	waitpid(first, NULL, 0);
	assert_true(still_begin(&still, first));
	still_end(&still);
	first = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_but_the_first, set_up, tear_down),
		cmocka_unit_test_setup_teardown(parents_are_not_told, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_long_row, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_cannot_be_looked_at_goes_on, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nothing_to_hold, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Of step 5: what the walls of most commands need is begun before it is decided on them. That takes the kernel about as long, and
 * asks nothing of the decision: it waits for it. A refusal, and another decision than was expected, is the end of it.
 *
 * A program that runs one command and ends knows nothing of the host, so that deciding takes it longest: there a thread begins with
 * it before the first step, on another processor; before there is so much as a handle, where that is opened for the command. Else it
 * is begun without one, which takes less: before the first step where nothing stays up and commands came before, or else before the
 * fourth, which is still in time. */
#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "execute.h"
#include "run/aside.h"
#include "run/processors.h"
#include "warm.h"

#define STACK_SIZE (128 * 1024)

struct expectation {
	const struct driver *driver;
	enum network_mode network;
	struct supervise_options options;
	struct launch known;
	struct supervision supervision;         /* the execution's, once it has it */
	bool prepared;
	struct launch *ahead;
	pthread_t thread;
	atomic_flag begun;                      /* by the thread, or instead: */
	bool given_up;                          /* it had no turn in time */
	sem_t done;
	bool adopted;
};

static void begin(struct expectation *expected)
{
	struct launch *known = &expected->known;
	struct cordon_error ignored;
	if ((known->init_fd = launch_init_fd(&ignored)) < 0)
		return;
	expected->prepared = supervise_prepare(&expected->supervision, &expected->options, known, &ignored) == 0;
	if (expected->prepared)
		expected->ahead = launch_ahead(known);
	else
		supervise_free(&expected->supervision);
}

/* Where there is a control group, `first` is to be born in it. */
static void *begin_aside(void *argument)
{
	struct expectation *expected = argument;
	const struct cgroup_search search = { .directory = NULL };
	if (!atomic_flag_test_and_set(&expected->begun)) {
		if (cgroup_is_missing(&search, true))
			begin(expected);
		sem_post(&expected->done);
		/* What it has cloned waits for this processor, and ending takes a thread a while. */
		sched_yield();
	}
	return NULL;
}

static bool can_be_expected(struct arena *arena, const struct cordon_request *request, const struct driver *driver,
                            enum network_mode network, struct expectation *ret_expected)
{
	*ret_expected = (struct expectation){
		.driver = driver,
		.network = network,
		.options = { .stdin_fd = request->stdin_fd, .tty = request->tty, .control_fd = -1 },
	};
	/* What is begun ahead is in the way where it has to take turns with us. */
	return driver && driver->expect && driver->expect(arena, network, &ret_expected->known) && processors_one_is_free();
}

static void adopt(struct execution *execution, struct expectation *expected)
{
	struct launch *launch = &execution->run.launch;
	execution->run.prepared = expected->prepared;
	if (!expected->prepared)
		return;
	supervise_move(&execution->run.supervision, &expected->supervision);
	memcpy(launch->stdio, expected->known.stdio, sizeof(launch->stdio));
	launch->control_fd = expected->known.control_fd;
	launch->heard_fd = expected->known.heard_fd;
	launch->tty = expected->known.tty;
	launch->ahead = expected->ahead;
}

static const struct driver *asked_driver(const struct cordon_request *request)
{
	return driver_find(request->driver ? request->driver : DRIVER_DEFAULT);
}

struct expectation *expect_aside(struct arena *arena, const struct cordon_request *request)
{
	struct expectation *expected = malloc(sizeof(*expected));
	if (!expected)
		return NULL;
	if (!can_be_expected(arena, request, asked_driver(request), request->granted.network, expected)) {
		free(expected);
		return NULL;
	}
	launch_note_processors(&expected->known);
	atomic_flag_clear(&expected->begun);
	sem_init(&expected->done, 0, 0);
	if (aside_start(&expected->thread, STACK_SIZE, begin_aside, expected) == 0)
		return expected;
	sem_destroy(&expected->done);
	free(expected);
	return NULL;
}

/* The request may have changed since the handle was opened for it, or be another one. */
static bool is_for(const struct expectation *expected, const struct cordon_request *request)
{
	return expected->driver == asked_driver(request) && expected->network == request->granted.network &&
	       expected->options.tty == request->tty;
}

void run_step_expect_aside(struct execution *execution)
{
	struct cordon *cordon = execution->cordon;
	if (!execution->only || execution->probe)
		return;
	struct expectation *expected = cordon->opened_for ? atomic_exchange(&cordon->expected, NULL)
	                                                  : expect_aside(&execution->arena, execution->request);
	if (expected && !is_for(expected, execution->request)) {
		expect_end(expected);
		expected = NULL;
	}
	execution->run.expected = expected;
}

/* If it has not, it will not any more: it would have to wait until somebody else has had enough of that processor. */
static bool has_begun(struct expectation *expected)
{
	if (!expected || expected->given_up)
		return false;
	expected->given_up = !atomic_flag_test_and_set(&expected->begun);
	return !expected->given_up;
}

static void begin_here(struct execution *execution, const struct driver *driver, enum network_mode network)
{
	struct expectation expected;
	if (!can_be_expected(&execution->arena, execution->request, driver, network, &expected))
		return;
	begin(&expected);
	adopt(execution, &expected);
}

/* An earlier command has found out that there is no control group. Of a handle that keeps walls up some have those. */
void run_step_expect_soon(struct execution *execution)
{
	const struct cordon *cordon = execution->cordon;
	const struct cordon_request *request = execution->request;
	const struct cgroup_search search = { .directory = NULL };
	if (!cordon->warm && !execution->only && !execution->probe && !atomic_load(&cordon->surprised) && cgroup_is_missing(&search, false))
		begin_here(execution, asked_driver(request), request->granted.network);
}

static void end_ahead(struct launch *launch)
{
	launch_ahead_end(launch->ahead);
	launch->ahead = NULL;
}

/* What was begun soon is of no use where the configuration, or a grant, says something else than the request. It will the next time. */
static void check_soon(struct execution *execution)
{
	struct launch *launch = &execution->run.launch;
	const struct cordon_request *request = execution->request;
	if (!launch->ahead || (execution->session.driver == asked_driver(request) &&
	                       execution->capability.set.network == request->granted.network))
		return;
	end_ahead(launch);
	atomic_store(&execution->cordon->surprised, true);
}

void run_step_expect(struct execution *execution)
{
	assert(execution->done == CORDON_STEP_CAPABILITY);
	bool stays = execution->cordon->warm && (warm_is_fresh(execution) || !execution->session.one_off);
	check_soon(execution);
	if (!stays && !execution->run.prepared && !execution->run.ahead && !has_begun(execution->run.expected))
		begin_here(execution, execution->session.driver, execution->capability.set.network);
}

static void await(struct expectation *expected)
{
	while (sem_wait(&expected->done) < 0 && errno == EINTR)
		;
}

void run_step_await_expected(struct execution *execution)
{
	struct expectation *expected = execution->run.expected;
	if (!has_begun(expected) || expected->adopted)
		return;
	await(expected);
	expected->adopted = true;
	adopt(execution, expected);
}

void run_step_unexpect(struct execution *execution)
{
	run_step_await_expected(execution);
	end_ahead(&execution->run.launch);
}

void expect_end(struct expectation *expected)
{
	if (!expected)
		return;
	if (has_begun(expected) && !expected->adopted) {
		await(expected);
		launch_ahead_end(expected->ahead);
		if (expected->prepared)
			supervise_free(&expected->supervision);
	}
	pthread_join(expected->thread, NULL);
	sem_destroy(&expected->done);
	free(expected);
}

void run_step_free_expected(struct execution *execution)
{
	run_step_await_expected(execution);
	launch_ahead_end(execution->run.launch.ahead);
	expect_end(execution->run.expected);
}

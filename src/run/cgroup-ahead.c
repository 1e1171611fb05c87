/* A leaf that is made while something else is done. The kernel takes about as long to make one as cordon to decide what the
 * command may do, and neither has to wait for the other. Whoever comes first to it makes it, a thread for this alone or
 * the caller: so nobody waits for a thread that had no turn. */
#include "run/cgroup-ahead.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "run/linger.h"

#define STACK_SIZE (256 * 1024)

struct cgroup_ahead {
	struct cgroup_search search;
	struct cgroup_bounds bounds;
	pthread_t thread;
	atomic_flag begun;
	sem_t made;                     /* by the thread, if it begins */
	struct cgroup group;
};

/* What there is to tidy up is done here, too, where nobody waits for it. */
static void *work(void *argument)
{
	struct cgroup_ahead *ahead = argument;
	if (!atomic_flag_test_and_set(&ahead->begun)) {
		cgroup_make(&ahead->search, &ahead->bounds, &ahead->group);
		sem_post(&ahead->made);
	}
	cgroup_sweep();
	linger_sweep();
	return NULL;
}

/* The kernel may leave a new thread on this processor and the others halted: it would have no turn before it is too late. */
static void set_aside(pthread_attr_t *attributes)
{
	cpu_set_t processors;
	int here = sched_getcpu();
	if (here < 0 || sched_getaffinity(0, sizeof(processors), &processors) < 0)
		return;
	CPU_CLR(here, &processors);
	if (CPU_COUNT(&processors))
		pthread_attr_setaffinity_np(attributes, sizeof(processors), &processors);
}

static int start(struct cgroup_ahead *ahead)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	if (pthread_attr_init(&attributes) != 0)
		return -1;
	/* The caller's handlers are for the caller's threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	set_aside(&attributes);
	int result = pthread_attr_setstacksize(&attributes, STACK_SIZE);
	if (result == 0)
		result = pthread_create(&ahead->thread, &attributes, work, ahead);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return result ? -1 : 0;
}

struct cgroup_ahead *cgroup_ahead_begin(const struct cgroup_search *search, const struct cgroup_bounds *bounds)
{
	struct cgroup_ahead *ahead = calloc(1, sizeof(*ahead));
	if (!ahead)
		return NULL;
	ahead->search = *search;
	ahead->bounds = *bounds;
	atomic_flag_clear(&ahead->begun);
	sem_init(&ahead->made, 0, 0);
	if (start(ahead) == 0)
		return ahead;
	sem_destroy(&ahead->made);
	free(ahead);
	return NULL;
}

/* Where it is made by the thread, waits for it. */
static bool is_made(struct cgroup_ahead *ahead)
{
	if (!atomic_flag_test_and_set(&ahead->begun))
		return false;
	while (sem_wait(&ahead->made) < 0 && errno == EINTR)
		;
	return true;
}

static bool is_for(const struct cgroup_ahead *ahead, const struct cgroup_search *search, const struct cgroup_bounds *bounds)
{
	return ahead->search.directory == search->directory && ahead->bounds.memory_bytes == bounds->memory_bytes &&
	       ahead->bounds.cpu_percent == bounds->cpu_percent && ahead->bounds.processes == bounds->processes;
}

void cgroup_ahead_take(struct cgroup_ahead *ahead, const struct cgroup_search *search, const struct cgroup_bounds *bounds,
                       struct cgroup *ret_group)
{
	if (!ahead || !is_for(ahead, search, bounds) || !is_made(ahead)) {
		cgroup_make(search, bounds, ret_group);
		return;
	}
	*ret_group = ahead->group;
	ahead->group.ops = NULL;
}

void cgroup_ahead_end(struct cgroup_ahead *ahead)
{
	if (!ahead)
		return;
	/* If it has not begun, it has not to. */
	(void)atomic_flag_test_and_set(&ahead->begun);
	pthread_join(ahead->thread, NULL);
	cgroup_remove(&ahead->group);
	sem_destroy(&ahead->made);
	free(ahead);
}

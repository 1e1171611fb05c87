/* A leaf that is made while something else is done, and removed so, too. The kernel takes about as long to make one as cordon to
 * decide what the command may do, and to remove it as to write down what became of that; neither has to wait for the other. Whoever
 * comes first to it does it, a thread for this alone or the caller: so nobody waits for a thread that had no turn. */
#include "run/cgroup-ahead.h"

#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "run/aside.h"
#include "run/linger.h"

#define STACK_SIZE (256 * 1024)

struct cgroup_ahead {
	struct cgroup_search search;
	struct cgroup_bounds bounds;
	pthread_t thread;
	bool stays;                     /* the thread, until what was made is left to it, or nothing will be */
	bool taken, is_left;
	atomic_flag begun, removing;    /* somebody is at it, or was */
	sem_t made;                     /* by the thread, if it begins */
	sem_t left;
	struct cgroup group;
};

static void wait_for(sem_t *sem)
{
	while (sem_wait(sem) < 0 && errno == EINTR)
		;
}

static void remove_left(struct cgroup_ahead *ahead)
{
	if (!atomic_flag_test_and_set(&ahead->removing))
		cgroup_remove(&ahead->group);
}

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
	if (ahead->stays) {
		wait_for(&ahead->left);
		remove_left(ahead);
	}
	return NULL;
}

struct cgroup_ahead *cgroup_ahead_begin(const struct cgroup_search *search, const struct cgroup_bounds *bounds, bool stays)
{
	struct cgroup_ahead *ahead = calloc(1, sizeof(*ahead));
	if (!ahead)
		return NULL;
	ahead->search = *search;
	ahead->bounds = *bounds;
	ahead->stays = stays;
	atomic_flag_clear(&ahead->begun);
	atomic_flag_clear(&ahead->removing);
	sem_init(&ahead->made, 0, 0);
	sem_init(&ahead->left, 0, 0);
	if (aside_start(&ahead->thread, STACK_SIZE, work, ahead) == 0)
		return ahead;
	sem_destroy(&ahead->made);
	sem_destroy(&ahead->left);
	free(ahead);
	return NULL;
}

/* Where it is made by the thread, waits for it. */
static bool is_made(struct cgroup_ahead *ahead)
{
	if (!atomic_flag_test_and_set(&ahead->begun))
		return false;
	wait_for(&ahead->made);
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
	ahead->taken = true;
}

void cgroup_ahead_leave(struct cgroup_ahead *ahead, struct cgroup *group)
{
	if (!ahead || !ahead->taken || !ahead->stays || !group->ops || !group->ops->outside)
		return;
	ahead->group = *group;
	group->ops = NULL;
	ahead->is_left = true;
	aside_keep_off(ahead->thread);
	sem_post(&ahead->left);
}

void cgroup_ahead_end(struct cgroup_ahead *ahead)
{
	if (!ahead)
		return;
	/* If it has not begun, it has not to. */
	(void)atomic_flag_test_and_set(&ahead->begun);
	if (ahead->is_left)
		remove_left(ahead);
	else
		sem_post(&ahead->left);
	pthread_join(ahead->thread, NULL);
	cgroup_remove(&ahead->group);
	sem_destroy(&ahead->made);
	sem_destroy(&ahead->left);
	free(ahead);
}

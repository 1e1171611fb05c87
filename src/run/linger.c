/* A small ring of pidfds, each with its group: see linger.h. */
#include "run/linger.h"

#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

#include "run/await.h"
#include "run/cgroup.h"

#define BACKLOG 16

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct leaving {
	int pidfd;
	struct cgroup group;
} ring[BACKLOG];
static unsigned count;

static bool reap(struct leaving *leaving, bool wait)
{
	if (!await_gone(leaving->pidfd, wait))
		return false;
	close(leaving->pidfd);
	cgroup_remove(&leaving->group);
	return true;
}

static void sweep(bool wait)
{
	unsigned kept = 0;
	for (unsigned i = 0; i < count; i++)
		if (!reap(&ring[i], wait))
			ring[kept++] = ring[i];
	count = kept;
}

void linger_add(int pidfd, struct cgroup *group)
{
	pthread_mutex_lock(&lock);
	if (count == BACKLOG) {
		reap(&ring[0], true);
		for (unsigned i = 1; i < count; i++)
			ring[i - 1] = ring[i];
		count--;
	}
	ring[count++] = (struct leaving){ pidfd, *group };
	group->ops = NULL;
	pthread_mutex_unlock(&lock);
}

void linger_sweep(void)
{
	/* Else somebody is at it. */
	if (pthread_mutex_trylock(&lock) != 0)
		return;
	sweep(false);
	pthread_mutex_unlock(&lock);
}

void linger_settle(void)
{
	pthread_mutex_lock(&lock);
	sweep(true);
	pthread_mutex_unlock(&lock);
}

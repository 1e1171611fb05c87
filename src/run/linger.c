/* A small ring of pidfds, each with its group: see linger.h. */
#include "run/linger.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/cgroup.h"

#define BACKLOG 16

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct leaving {
	int pidfd;
	struct cgroup group;
} ring[BACKLOG];
static unsigned count;

static bool reap(struct leaving *leaving, int options)
{
	siginfo_t info = { 0 };
	if (waitid(P_PIDFD, (id_t)leaving->pidfd, &info, WEXITED | __WALL | options) == 0 && info.si_pid == 0)
		return false;
	close(leaving->pidfd);
	cgroup_remove(&leaving->group);
	return true;
}

static void sweep(int options)
{
	unsigned kept = 0;
	for (unsigned i = 0; i < count; i++)
		if (!reap(&ring[i], options))
			ring[kept++] = ring[i];
	count = kept;
}

void linger_add(int pidfd, struct cgroup *group)
{
	pthread_mutex_lock(&lock);
	if (count == BACKLOG) {
		reap(&ring[0], 0);
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
	pthread_mutex_lock(&lock);
	sweep(WNOHANG);
	pthread_mutex_unlock(&lock);
}

void linger_settle(void)
{
	pthread_mutex_lock(&lock);
	sweep(0);
	pthread_mutex_unlock(&lock);
}

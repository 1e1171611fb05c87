/* A small ring of pidfds, each with its group, and a heap of descriptors: see linger.h. */
#include "driver/linux/linger.h"

#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/after-fork.h"
#include "base/cleanup.h"
#include "driver/linux/await.h"
#include "driver/linux/cgroup.h"

#define BACKLOG 16
#define DESCRIPTORS 16                  /* a command leaves fewer */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct leaving {
	int pidfd;
	struct cgroup group;
} ring[BACKLOG];
static unsigned count;
static int heap[DESCRIPTORS];
static unsigned heap_count;

static void begin_anew(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	count = heap_count = 0;
}
AFTER_FORK(begin_anew);

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
	while (heap_count)
		close(heap[--heap_count]);
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

void linger_close(int *const fds[], size_t size)
{
	/* The owner may be waiting for the end of another command: then they are closed now. */
	if (pthread_mutex_trylock(&lock) == 0) {
		for (size_t i = 0; i < size; i++)
			if (*fds[i] >= 0 && heap_count < DESCRIPTORS)
				heap[heap_count++] = take_fd(fds[i]);
		pthread_mutex_unlock(&lock);
	}
	for (size_t i = 0; i < size; i++)
		close_fd(fds[i]);
}

void linger_sweep(void)
{
	/* Otherwise another thread is doing it. */
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

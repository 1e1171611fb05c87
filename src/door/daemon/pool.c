/* The pool: see pool.h. */
#include "door/daemon/pool.h"

#include <signal.h>
#include <time.h>

#define IDLE_S 10

/* With the lock held. */
static struct task *wait_for_task(struct pool *pool)
{
	/* From now on, each thread that leaves wakes all the others. */
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += IDLE_S;
	while (!pool->handed && !pool->first && !pool->is_ending) {
		bool spare = pool->threads > pool->few;
		pool->idle++;
		int waited = spare ? pthread_cond_timedwait(&pool->changed, &pool->lock, &until)
		                   : pthread_cond_wait(&pool->changed, &pool->lock);
		pool->idle--;
		if (waited && !pool->handed && !pool->first)
			return NULL;
	}
	struct task *task = pool->handed;
	pool->handed = NULL;
	if (task || !(task = pool->first))
		return task;
	pool->first = task->next;
	pool->last = pool->first ? pool->last : &pool->first;
	pool->waiting--;
	pool->taken++;
	return task;
}

static void *work(void *arg)
{
	struct pool *pool = arg;
	pthread_mutex_lock(&pool->lock);
	for (struct task *task; (task = wait_for_task(pool));) {
		pthread_mutex_unlock(&pool->lock);
		task->act(task);
		pthread_mutex_lock(&pool->lock);
	}
	pool->threads--;
	pthread_cond_broadcast(&pool->changed);
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

/* With the lock held. Where no thread can be made, those that are there have to do. */
static void add_thread(struct pool *pool)
{
	sigset_t all, before;
	pthread_t thread;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&thread, NULL, work, pool) == 0) {
		pthread_detach(thread);
		pool->threads++;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void pool_open(struct pool *pool, size_t few, size_t most)
{
	*pool = (struct pool){
		.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .few = few, .most = most
	};
	pool->last = &pool->first;
}

void pool_add(struct pool *pool, struct task *task)
{
	pthread_mutex_lock(&pool->lock);
	task->next = NULL;
	*pool->last = task;
	pool->last = &task->next;
	pool->waiting++;
	if (pool->idle < pool->waiting && pool->threads < pool->few)
		add_thread(pool);
	bool wake = pool->idle > 0;
	pthread_mutex_unlock(&pool->lock);
	if (wake)
		pthread_cond_signal(&pool->changed);
}

bool pool_hand(struct pool *pool, struct task *task)
{
	pthread_mutex_lock(&pool->lock);
	/* Those that were woken and have not come yet are among the idle. */
	bool handed = pool->idle > pool->waiting && !pool->handed;
	if (handed)
		pool->handed = task;
	pthread_mutex_unlock(&pool->lock);
	if (handed)
		pthread_cond_signal(&pool->changed);
	return handed;
}

bool pool_has_threads(struct pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	bool has = pool->threads > 0;
	pthread_mutex_unlock(&pool->lock);
	return has;
}

bool pool_is_pressed(struct pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	bool pressed = pool->waiting > 0;
	pthread_mutex_unlock(&pool->lock);
	return pressed;
}

void pool_relieve(struct pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	if (pool->waiting && pool->taken == pool->taken_before && pool->threads < pool->most)
		add_thread(pool);
	pool->taken_before = pool->taken;
	pthread_mutex_unlock(&pool->lock);
}

void pool_close(struct pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	pool->is_ending = true;
	pthread_cond_broadcast(&pool->changed);
	while (pool->threads)
		pthread_cond_wait(&pool->changed, &pool->lock);
	pthread_mutex_unlock(&pool->lock);
	pthread_mutex_destroy(&pool->lock);
	pthread_cond_destroy(&pool->changed);
}

/* Threads for tasks that may wait: for a disk, a lock, a human. A few always exist; more are created only when no task
 * makes progress, so that many short tasks do not compete for the processors, and tasks that wait for humans do not
 * block the others. */
#pragma once
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct task {
	struct task *next;
	void (*act)(struct task *task); /* in a thread of the pool, every signal blocked; may free the task */
};

struct pool {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct task *first, **last;
	struct task *handed;            /* comes before these */
	size_t few, most;
	size_t threads, idle, waiting;
	uint64_t taken, taken_before;
	bool is_ending;
};

void pool_open(struct pool *pool, size_t few, size_t most);
void pool_add(struct pool *pool, struct task *task);
/* Where a thread is idle it takes this one at once, before all others. False: none is, and nothing was done. */
bool pool_hand(struct pool *pool, struct task *task);
/* False: no thread could be made, and what was added is not run. */
bool pool_has_threads(struct pool *pool);
/* Is there something that no thread has taken yet? From any thread. */
bool pool_is_pressed(struct pool *pool);
/* To be called every now and then while it is pressed: one thread more where none took anything since. */
void pool_relieve(struct pool *pool);
/* Waits until everything is done. */
void pool_close(struct pool *pool);

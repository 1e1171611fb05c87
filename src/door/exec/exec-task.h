/* What may wait for a human, in a thread of its own, so that all else goes on. */
#pragma once
#include <pthread.h>
#include <stdbool.h>

#include "base/cleanup.h"
#include "cordon-internal.h"

/* So long the loop waits for a task itself: what asks nobody is done by then, and answered in its turn. */
#define EXEC_PATIENCE_MS 200

struct exec_task {
	void (*act)(struct exec_task *task);
	int done_fd;                    /* readable when it is done */
	bool begun;
	pthread_t thread;
};

int exec_task_begin(struct exec_task *task, struct cordon_error *err) must_check;
/* Waits for so long at most. */
bool exec_task_is_done(const struct exec_task *task, int timeout_ms);
/* Waits; may be called again. What it did is then seen by the caller. */
void exec_task_join(struct exec_task *task);

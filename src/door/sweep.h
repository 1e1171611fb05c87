/* For a door that stays and waits in poll(): when to call cordon_sweep(), which lowers sandboxes that are idle and
 * brings what was granted to those that are up. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "cordon.h"

#define SWEEP_MS 5000

struct sweep {
	int64_t due_ms;                         /* 0: nothing can be up */
};

/* Something may have been started. */
static inline void sweep_begin(struct sweep *sweep)
{
	if (!sweep->due_ms)
		sweep->due_ms = clock_ms() + SWEEP_MS;
}

/* For poll(), which would wait for so long otherwise; -1 is for ever. */
static inline int sweep_wait_ms(const struct sweep *sweep, int most_ms)
{
	int64_t left_ms = sweep->due_ms - clock_ms();
	if (!sweep->due_ms || (most_ms >= 0 && most_ms < left_ms))
		return most_ms;
	return left_ms > 0 ? (int)left_ms : 0;
}

/* After it. `is_busy`: what was asked for is still being worked on. */
static inline void sweep_step(struct sweep *sweep, struct cordon *cordon, bool is_busy)
{
	if (!sweep->due_ms || clock_ms() < sweep->due_ms)
		return;
	int again_ms = cordon_sweep(cordon);
	sweep->due_ms = again_ms >= 0 || is_busy ? clock_ms() + SWEEP_MS : 0;
}

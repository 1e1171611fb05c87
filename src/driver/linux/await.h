/* Waiting: for processes known by a pidfd, whether they are our children or not, and until when. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* Is it gone, and reaped if that is ours to do? With `wait`: not before it is. */
bool await_gone(int pidfd, bool wait);
uint64_t await_now_us(void);              /* of CLOCK_MONOTONIC */
/* Until this time of it, as poll() takes it: 0 once it is over, -1 where it is 0 and never comes. Of a time far away it
 * is a part. */
int await_left_ms(uint64_t deadline_us);

/* How long somebody waits for what may never come. */
struct patience {
	uint64_t deadline_us;           /* as above */
	int interrupt_fd;               /* readable: no longer, if it is not there within a moment; -1: it is not interrupted */
};
/* To be waited before that is asked; -1: for ever. NULL is allowed. */
int await_moment_ms(const struct patience *patience);
bool await_is_over(const struct patience *patience);

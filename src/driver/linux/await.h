/* Waiting: for processes known by a pidfd, whether they are our children or not, and until when. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* Has it ended, and been reaped if it is our child? With `wait`: waits until it has. */
bool await_gone(int pidfd, bool wait);
uint64_t await_now_us(void);              /* of CLOCK_MONOTONIC */
/* Until this time of it, as poll() takes it: 0 once it is over, -1 where it is 0 and never comes. Of a time far away it
 * is a part. */
int await_left_ms(uint64_t deadline_us);

/* How long to wait for an event that may never come. */
struct patience {
	uint64_t deadline_us;           /* as above */
	int interrupt_fd;               /* readable: no longer, if it is not there within a moment; -1: it is not
	                                   interrupted */
};
/* To wait before that is checked; -1: without a limit. NULL is allowed. */
int await_moment_ms(const struct patience *patience);
bool await_is_over(const struct patience *patience);
/* Waits for a message at `fd`, or the end of a process; false: neither came. Below 0: without one of them, or for any
 * time. */
bool await_message(int fd, int pidfd, int most_ms);

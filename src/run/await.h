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

/* See await.h. */
#include "driver/linux/await.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/wait.h>
#include <time.h>

#define MOMENT_MS 200

bool await_gone(int pidfd, bool wait)
{
	siginfo_t info = { 0 };
	int result;
	do
		result = waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | __WALL | (wait ? 0 : WNOHANG));
	while (result < 0 && errno == EINTR);
	if (result == 0)
		return info.si_pid != 0;
	/* Another process's child, or reaped already: then it is gone as well. */
	struct pollfd gone = { .fd = pidfd, .events = POLLIN };
	while ((result = poll(&gone, 1, wait ? -1 : 0)) < 0 && errno == EINTR)
		;
	return result > 0;
}

uint64_t await_now_us(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000;
}

int await_left_ms(uint64_t deadline_us)
{
	if (!deadline_us)
		return -1;
	uint64_t now_us = await_now_us(), left_ms = deadline_us > now_us ? (deadline_us - now_us + 999) / 1000 : 0;
	return left_ms < INT_MAX ? (int)left_ms : INT_MAX;
}

int await_moment_ms(const struct patience *patience)
{
	if (!patience)
		return -1;
	int left_ms = await_left_ms(patience->deadline_us);
	/* What is over is waited for, too, if it has not ended: others have to run for that. */
	return left_ms < 0 || left_ms > MOMENT_MS ? MOMENT_MS : left_ms ? left_ms : 1;
}

bool await_is_over(const struct patience *patience)
{
	struct pollfd interrupt = { .fd = patience ? patience->interrupt_fd : -1, .events = POLLIN };
	return patience && (await_left_ms(patience->deadline_us) == 0 ||
	                    (poll(&interrupt, 1, 0) > 0 && interrupt.revents & POLLIN));
}

bool await_message(int fd, int pidfd, int most_ms)
{
	struct pollfd ready[2] = { { .fd = fd, .events = POLLIN }, { .fd = pidfd, .events = POLLIN } };
	int found;
	do
		found = poll(ready, 2, most_ms);
	while (found < 0 && errno == EINTR);
	return found > 0;
}

/* Waits for the lock of a file for a bounded time: a stopped process that holds it must not block all others. */
#pragma once
#include "base/cleanup.h"
#include "base/error.h"

#define LOCK_PATIENCE_MS 10000

/* flock() with LOCK_SH or LOCK_EX. 0, or -1 with errno: EWOULDBLOCK if the lock was not available in time. */
int lock_wait(int fd, int operation, int patience_ms) must_check;
/* Lets it go and closes it, if there is one. A process that another thread is starting has a copy for a moment: closing
 * alone would leave it locked until then. */
void lock_release(int *fd);
#define auto_unlock __attribute__((cleanup(lock_release)))
/* The error where lock_wait() has failed for another reason than that somebody else has the lock. -1. */
int lock_refused(int number, const char *path, struct cordon_error *err);

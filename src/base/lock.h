/* Waiting for a file's lock, but not for ever: a stopped process that holds it must not stop all others. */
#pragma once
#include "base/cleanup.h"

#define LOCK_PATIENCE_MS 10000

/* flock() with LOCK_SH or LOCK_EX. 0, or -1 with errno: EWOULDBLOCK where it was not to be had in time. */
int lock_wait(int fd, int operation, int patience_ms) must_check;
/* Lets it go and closes it, if there is one. A process that another thread is starting has a copy for a moment: closing
 * alone would leave it locked until then. */
void lock_release(int *fd);
#define auto_unlock __attribute__((cleanup(lock_release)))

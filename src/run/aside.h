/* A thread for something that need not wait for its caller, nor the caller for it. */
#pragma once
#include <pthread.h>
#include <stddef.h>

/* It runs on other processors than the one that this is called on, where there are any, and no handler of a signal runs in it.
 * 0, or -1: there is none. */
int aside_start(pthread_t *ret_thread, size_t stack_size, void *(*work)(void *argument), void *argument);
/* Of one that waits: the caller may have been moved since. */
void aside_keep_off(pthread_t thread);

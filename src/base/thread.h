/* A thread of the library's own. It takes no signal: those are for the program that calls. */
#pragma once
#include <pthread.h>
#include <signal.h>
#include <stddef.h>

/* With so large a stack; 0: with the usual one. Returns 0, or an error number. */
static inline int thread_start(pthread_t *ret_thread, size_t stack, void *(*work)(void *), void *arg)
{
	sigset_t all, before;
	pthread_attr_t attributes;
	pthread_attr_init(&attributes);
	if (stack)
		pthread_attr_setstacksize(&attributes, stack);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int result = pthread_create(ret_thread, &attributes, work, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return result;
}

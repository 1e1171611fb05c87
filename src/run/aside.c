/* Threads beside the caller: see aside.h. */
#include "run/aside.h"

#include <sched.h>
#include <signal.h>

/* The kernel may leave a new thread on this processor and the others halted: it would have no turn before it is too late. */
static void set_aside(pthread_attr_t *attributes)
{
	cpu_set_t processors;
	int here = sched_getcpu();
	if (here < 0 || sched_getaffinity(0, sizeof(processors), &processors) < 0)
		return;
	CPU_CLR(here, &processors);
	if (CPU_COUNT(&processors))
		pthread_attr_setaffinity_np(attributes, sizeof(processors), &processors);
}

int aside_start(pthread_t *ret_thread, size_t stack_size, void *(*work)(void *argument), void *argument)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	if (pthread_attr_init(&attributes) != 0)
		return -1;
	/* The caller's handlers are for the caller's threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	set_aside(&attributes);
	int result = pthread_attr_setstacksize(&attributes, stack_size);
	if (result == 0)
		result = pthread_create(ret_thread, &attributes, work, argument);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return result ? -1 : 0;
}

/* Threads beside the caller: see aside.h. */
#include "run/aside.h"

#include <sched.h>
#include <signal.h>
#include <stdbool.h>

/* The kernel may leave a thread that begins or wakes on this processor and the others halted: it would have no turn before it is
 * too late. False where there are no others. */
static bool find_others(cpu_set_t *processors)
{
	int here = sched_getcpu();
	if (here < 0 || sched_getaffinity(0, sizeof(*processors), processors) < 0)
		return false;
	CPU_CLR(here, processors);
	return CPU_COUNT(processors);
}

int aside_start(pthread_t *ret_thread, size_t stack_size, void *(*work)(void *argument), void *argument)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	cpu_set_t others;
	if (pthread_attr_init(&attributes) != 0)
		return -1;
	/* The caller's handlers are for the caller's threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (find_others(&others))
		pthread_attr_setaffinity_np(&attributes, sizeof(others), &others);
	int result = pthread_attr_setstacksize(&attributes, stack_size);
	if (result == 0)
		result = pthread_create(ret_thread, &attributes, work, argument);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return result ? -1 : 0;
}

void aside_keep_off(pthread_t thread)
{
	cpu_set_t others;
	if (find_others(&others))
		pthread_setaffinity_np(thread, sizeof(others), &others);
}

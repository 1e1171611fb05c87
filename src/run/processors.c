#include "run/processors.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

static pthread_once_t load_once = PTHREAD_ONCE_INIT;
static int load_fd = -1;

static void open_load(void)
{
	load_fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
}

#define OFTEN 8

/* How many want to run at this moment, who asks among them, and on how many processors. */
static bool look(int *ret_running, int *ret_count)
{
	char text[80];
	cpu_set_t cpus;
	pthread_once(&load_once, open_load);
	ssize_t length = load_fd < 0 ? -1 : pread(load_fd, text, sizeof(text) - 1, 0);
	if (length <= 0 || sched_getaffinity(0, sizeof(cpus), &cpus) < 0)
		return false;
	text[length] = '\0';
	*ret_count = CPU_COUNT(&cpus);
	/* After three averages. */
	return sscanf(text, "%*s %*s %*s %d/", ret_running) == 1;
}

/* So many times, one after another, all were taken when somebody looked. Who begins to look believes it the second time. */
static unsigned taken = OFTEN - 1;

bool processors_one_is_free(void)
{
	int running, count;
	if (!look(&running, &count) || count < 2)
		return false;
	/* The kernel itself may do something for a moment, such as tidy up after the last command: one for each is too many when it
	 * is so again and again. */
	unsigned before = running < count ? 0 : __atomic_load_n(&taken, __ATOMIC_RELAXED);
	__atomic_store_n(&taken, running < count ? 0 : before < OFTEN ? before + 1 : OFTEN, __ATOMIC_RELAXED);
	return running < count || (running == count && before < OFTEN);
}

bool processors_one_is_idle(void)
{
	int running, count;
	return look(&running, &count) && running < count;
}

bool processors_are_short(void)
{
	int running, count;
	return look(&running, &count) && running > count;
}

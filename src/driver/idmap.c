/* The user namespace whose maps id-mapped mounts use: see idmap.h. It needs a process to be born in it, which lives
 * just long enough for the maps to be written and the namespace to be held by a descriptor. */
#include "driver/idmap.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "run/launch.h"
#include "run/sys.h"

#define STACK_SIZE (16 * 1024)

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int namespace_fd = -1;

static int write_map(long pid, const char *file)
{
	char path[64], map[32];
	snprintf(path, sizeof(path), "/proc/%ld/%s", pid, file);
	int length = snprintf(map, sizeof(map), "0 %u 1\n", IDMAP_OUTSIDE);
	auto_close int fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd >= 0 && write(fd, map, (size_t)length) == length ? 0 : -1;
}

static void make(void)
{
	char *stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (stack == MAP_FAILED)
		return;
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	long pid = sys_clone(CLONE_VM | CLONE_NEWUSER, stack + STACK_SIZE, NULL, launch_wait, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (pid > 0) {
		char path[64];
		snprintf(path, sizeof(path), "/proc/%ld/ns/user", pid);
		if (write_map(pid, "uid_map") == 0 && write_map(pid, "gid_map") == 0)
			namespace_fd = open(path, O_RDONLY | O_CLOEXEC);
		kill((pid_t)pid, SIGKILL);
		waitpid((pid_t)pid, NULL, __WALL);
	}
	munmap(stack, STACK_SIZE);
}

int idmap_namespace(void)
{
	pthread_once(&once, make);
	return namespace_fd;
}

/* The user namespace whose maps id-mapped mounts use: see idmap.h. It needs a process to be born in it, which lives
 * just long enough for the maps to be written and the namespace to be held by a descriptor. */
#include "driver/linux/idmap.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/after-fork.h"
#include "base/cleanup.h"
#include "driver/linux/cgroup.h"
#include "driver/linux/launch.h"
#include "driver/linux/linger.h"
#include "driver/linux/sys.h"

#define STACK_SIZE (16 * 1024)

static struct kept {
	uid_t uid;
	gid_t gid;
	int fd;
} *kept;
static size_t kept_count;
static char stack[STACK_SIZE] __attribute__((aligned(16)));
static int on_stack;                    /* whose child is on it; the kernel clears that when the child is gone */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void begin_anew(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	kept = NULL;
	kept_count = 0;
}
AFTER_FORK(begin_anew);

static int write_map(long pid, const char *file, unsigned owner)
{
	char path[64], map[48];
	snprintf(path, sizeof(path), "/proc/%ld/%s", pid, file);
	int length = snprintf(map, sizeof(map), "%u %u 1\n", owner, IDMAP_OUTSIDE);
	auto_close int fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd >= 0 && write(fd, map, (size_t)length) == length ? 0 : -1;
}

/* It shares our descriptor table: what we close is closed for it, though it may take a while to end. */
static long start_process(int *ret_pidfd)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	__atomic_store_n(&on_stack, getpid(), __ATOMIC_RELEASE);
	long pid = sys_clone(CLONE_VM | CLONE_FILES | CLONE_NEWUSER | CLONE_PIDFD | CLONE_CHILD_CLEARTID,
	                     stack + STACK_SIZE, ret_pidfd, &on_stack, launch_wait, (void *)(intptr_t)getpid());
	if (pid < 0)
		on_stack = 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return pid;
}

static int make(uid_t uid, gid_t gid)
{
	int fd = -1, pidfd = -1;
	/* In a copy of the process its copy of the stack is unused. */
	while (__atomic_load_n(&on_stack, __ATOMIC_ACQUIRE) == getpid())
		sys_4(SYS_futex, &on_stack, FUTEX_WAIT, getpid(), NULL);
	long pid = start_process(&pidfd);
	if (pid < 0)
		return -1;
	char path[64];
	snprintf(path, sizeof(path), "/proc/%ld/ns/user", pid);
	if (write_map(pid, "uid_map", uid) == 0 && write_map(pid, "gid_map", gid) == 0)
		fd = open(path, O_RDONLY | O_CLOEXEC);
	/* It may not have been scheduled yet; it must be gone only before the stack is used again. */
	kill((pid_t)pid, SIGKILL);
	linger_add(pidfd, &(struct cgroup){ .ops = NULL });
	return fd;
}

static int find(uid_t uid, gid_t gid)
{
	for (size_t i = 0; i < kept_count; i++)
		if (kept[i].uid == uid && kept[i].gid == gid)
			return kept[i].fd;
	return -1;
}

int idmap_namespace(uid_t uid, gid_t gid)
{
	pthread_mutex_lock(&lock);
	int fd = find(uid, gid);
	struct kept *more = fd < 0 ? reallocarray(kept, kept_count + 1, sizeof(*kept)) : NULL;
	kept = more ? more : kept;
	if (more && (fd = make(uid, gid)) >= 0)
		kept[kept_count++] = (struct kept){ uid, gid, fd };
	pthread_mutex_unlock(&lock);
	return fd;
}

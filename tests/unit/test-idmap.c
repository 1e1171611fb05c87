/* User namespaces for the owners of workspaces, however many; and the stack that those have in turn who are born in
 * them. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "driver/linux/idmap.h"
#include "driver/linux/linger.h"
#include "skip.h"

#include <cmocka.h> /* has a macro that is called fail */

#define OWNERS 20
#define FIRST_OWNER 70000u

static atomic_bool spares;              /* who is to be killed is not, for now */
static atomic_int killed, last;         /* how many were to be, and the last of them */

int kill(pid_t pid, int signal)
{
	atomic_store(&last, pid);
	atomic_fetch_add(&killed, 1);
	return atomic_load(&spares) ? 0 : (int)syscall(SYS_kill, pid, signal);
}

void linger_add(int pidfd, struct cgroup *group)
{
	(void)group;
	close(pidfd);
}

static void reap_all(void)
{
	while (waitpid(-1, NULL, __WALL) > 0)
		;
}

/* In a process of its own: what is this owner there? */
static bool maps(int fd, unsigned owner, const char *file)
{
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		unsigned inside = 0, outside = 0, count = 0;
		FILE *map = setns(fd, CLONE_NEWUSER) == 0 ? fopen(file, "re") : NULL;
		_exit(map && fscanf(map, "%u %u %u", &inside, &outside, &count) == 3 && inside == owner && count == 1
		              ? 0
		              : 1);
	}
	return waitpid(pid, &status, 0) == pid && status == 0;
}

static void test_many_owners(void **state)
{
	(void)state;
	int fds[OWNERS];
	if (geteuid() != 0)
		skip_cannot("root", "maps are root's to write");
	for (unsigned i = 0; i < OWNERS; i++) {
		fds[i] = idmap_namespace(FIRST_OWNER + i, FIRST_OWNER + 2 * i);
		assert_true(fds[i] >= 0);
	}
	reap_all();
	for (unsigned i = 0; i < OWNERS; i++) {
		/* Kept: nobody is started for it again. */
		assert_int_equal(idmap_namespace(FIRST_OWNER + i, FIRST_OWNER + 2 * i), fds[i]);
		assert_true(maps(fds[i], FIRST_OWNER + i, "/proc/self/uid_map"));
		assert_true(maps(fds[i], FIRST_OWNER + 2 * i, "/proc/self/gid_map"));
	}
	assert_int_equal(atomic_load(&killed), OWNERS);
}

static void *ask_for_another(void *fd)
{
	*(int *)fd = idmap_namespace(FIRST_OWNER - 2, FIRST_OWNER);
	return NULL;
}

static void test_one_at_a_time_is_on_the_stack(void **state)
{
	(void)state;
	int fd = -1;
	pthread_t thread;
	if (geteuid() != 0)
		skip_cannot("root", "maps are root's to write");
	atomic_store(&spares, true);
	assert_true(idmap_namespace(FIRST_OWNER - 1, FIRST_OWNER) >= 0);
	int first = atomic_load(&last), before = atomic_load(&killed);
	atomic_store(&spares, false);
	assert_int_equal(pthread_create(&thread, NULL, ask_for_another, &fd), 0);
	nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
	assert_int_equal(atomic_load(&killed), before);
	assert_int_equal(syscall(SYS_kill, first, SIGKILL), 0);
	pthread_join(thread, NULL);
	assert_true(fd >= 0);
	assert_int_equal(atomic_load(&killed), before + 1);
	reap_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many_owners),
		cmocka_unit_test(test_one_at_a_time_is_on_the_stack),
	};
	return cmocka_run_group_tests_name("idmap", tests, NULL, NULL);
}

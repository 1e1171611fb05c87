/* What is begun before there is a plan: that it waits for one, and is gone with whoever was to tell it, however that ends. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/compat.h"
#include "run/control.h"
#include "run/init-blob.h"
#include "run/launch.h"
#include "skip.h"

#include <cmocka.h> /* has a macro that is called fail */

#define PATIENCE_MS 30000

/* None of these comes so far. */
const unsigned char cordon_init_blob[1];
const unsigned cordon_init_blob_size;

static struct launch *begin(const int control[2])
{
	static char uid_map[32], gid_map[32];
	snprintf(uid_map, sizeof(uid_map), "%u %u 1\n", (unsigned)geteuid(), (unsigned)geteuid());
	snprintf(gid_map, sizeof(gid_map), "%u %u 1\n", (unsigned)getegid(), (unsigned)getegid());
	const struct launch known = {
		.namespaces = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWUTS, .uid_map = uid_map, .gid_map = gid_map,
		.hostname = "cordon", .init_mode = INIT_PID_NAMESPACE, .group_fd = -1, .slot_fd = -1, .stdio = { -1, -1, -1 },
		.heard_fd = control[0], .control_fd = control[1],
	};
	return launch_ahead(&known);
}

static void make_control(int control[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control), 0);
}

static bool is_gone_soon(int pidfd, int wait_ms)
{
	struct pollfd gone = { .fd = pidfd, .events = POLLIN };
	return poll(&gone, 1, wait_ms) == 1;
}

static bool made_soon(const struct launch *ahead)
{
	struct timespec pause = { .tv_nsec = 1000000 };
	for (int waited_ms = 0; waited_ms < PATIENCE_MS; waited_ms++) {
		if (__atomic_load_n(&ahead->late_made, __ATOMIC_ACQUIRE))
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

/* With one processor there is nothing to be gained, and nothing is begun. */
static bool is_alone(void)
{
	cpu_set_t cpus;
	return sched_getaffinity(0, sizeof(cpus), &cpus) == 0 && CPU_COUNT(&cpus) == 1;
}

static bool is_possible(void)
{
	int control[2];
	make_control(control);
	struct launch *ahead = begin(control);
	launch_ahead_end(ahead);
	close(control[0]);
	close(control[1]);
	return ahead;
}

static void test_it_waits_and_can_be_ended(void **state)
{
	(void)state;
	int control[2];
	if (!is_possible()) {
		if (!is_alone())
			skip_cannot("userns", "nothing can be begun ahead");
		return;
	}
	make_control(control);
	struct launch *ahead = begin(control);
	assert_non_null(ahead);
	pid_t pid = (pid_t)ahead->pid;
	/* The network is there, and nothing goes on without a plan. */
	assert_true(made_soon(ahead));
	assert_false(is_gone_soon(ahead->pidfd, 50));
	assert_int_equal(ahead->walls, 0);
	launch_ahead_end(ahead);
	assert_int_equal(kill(pid, 0), -1);
	assert_int_equal(errno, ESRCH);
	assert_int_equal(waitpid(-1, NULL, __WALL), -1);
	assert_int_equal(errno, ECHILD);
	close(control[0]);
	close(control[1]);
}

/* The caller goes on meanwhile: what it closes ends a pipe, or gives a lock back. */
static void test_it_keeps_nothing_of_its_caller_open(void **state)
{
	(void)state;
	int control[2], ends[2];
	if (!is_possible()) {
		if (!is_alone())
			skip_cannot("userns", "nothing can be begun ahead");
		return;
	}
	make_control(control);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	struct launch *ahead = begin(control);
	assert_non_null(ahead);
	close(ends[1]);
	struct pollfd ended = { .fd = ends[0] };
	assert_int_equal(poll(&ended, 1, PATIENCE_MS), 1);
	/* What it needs it has. */
	assert_true(made_soon(ahead));
	assert_false(is_gone_soon(ahead->pidfd, 50));
	launch_ahead_end(ahead);
	close(ends[0]);
	close(control[0]);
	close(control[1]);
}

/* A caller of its own tells us what it began, and then pauses or becomes a program that does. */
static void play_caller(int tell, const int control[2], bool becomes)
{
	const struct launch *ahead = begin(control);
	if (!ahead || !made_soon(ahead) || write(tell, &ahead->pid, sizeof(ahead->pid)) != sizeof(ahead->pid))
		_exit(1);
	if (becomes)
		execl("/bin/sleep", "sleep", "60", NULL);
	pause();
	_exit(1);
}

static void end_of_caller(bool becomes)
{
	int tell[2], control[2] = { -1, -1 };
	int pid;
	if (!is_possible()) {
		if (!is_alone())
			skip_cannot("userns", "nothing can be begun ahead");
		return;
	}
	/* Orphans become ours. */
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	assert_int_equal(pipe(tell), 0);
	/* Where it is killed, somebody else has its end of the socket as well: of that nothing is heard. */
	if (!becomes)
		make_control(control);
	pid_t caller = fork();
	if (caller == 0) {
		if (becomes)
			make_control(control);
		play_caller(tell[1], control, becomes);
	}
	assert_true(caller > 0);
	assert_int_equal(read(tell[0], &pid, sizeof(pid)), sizeof(pid));
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	assert_true(pidfd >= 0 || (errno == ESRCH && becomes));
	if (!becomes)
		assert_int_equal(kill(caller, SIGKILL), 0);
	assert_true(pidfd < 0 || is_gone_soon(pidfd, PATIENCE_MS));
	if (becomes)
		assert_int_equal(kill(caller, SIGKILL), 0);
	assert_int_equal(waitpid(caller, NULL, 0), caller);
	while (waitpid(-1, NULL, __WALL) > 0)
		;
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
	for (int i = 0; i < 2; i++) {
		close(tell[i]);
		if (control[i] >= 0)
			close(control[i]);
	}
	if (pidfd >= 0)
		close(pidfd);
}

static void test_it_ends_with_its_caller(void **state)
{
	(void)state;
	end_of_caller(false);
}

static void test_it_ends_when_its_caller_becomes_another_program(void **state)
{
	(void)state;
	end_of_caller(true);
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		_exit(2);
	close(fd);
}

/* In namespaces of its own, where it may mount: 0 where only the mount made the difference. */
static void play_mounter(void)
{
	char uid_map[32], gid_map[32];
	int control[2];
	snprintf(uid_map, sizeof(uid_map), "0 %u 1\n", (unsigned)geteuid());
	snprintf(gid_map, sizeof(gid_map), "0 %u 1\n", (unsigned)getegid());
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		_exit(2);
	put("/proc/self/setgroups", "deny");
	put("/proc/self/uid_map", uid_map);
	put("/proc/self/gid_map", gid_map);
	make_control(control);
	struct launch *ahead = begin(control);
	bool stood = ahead && launch_ahead_stands(ahead);
	if (!ahead || mount("/usr", "/tmp", NULL, MS_BIND, NULL) < 0)
		_exit(2);
	bool stands = launch_ahead_stands(ahead);
	launch_ahead_end(ahead);
	_exit(!stood || stands);
}

static void test_a_mount_of_the_host_makes_it_useless(void **state)
{
	(void)state;
	int status;
	if (!is_possible()) {
		if (!is_alone())
			skip_cannot("userns", "nothing can be begun ahead");
		return;
	}
	pid_t mounter = fork();
	if (mounter == 0)
		play_mounter();
	assert_true(mounter > 0);
	assert_int_equal(waitpid(mounter, &status, 0), mounter);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_it_waits_and_can_be_ended),
		cmocka_unit_test(test_it_keeps_nothing_of_its_caller_open),
		cmocka_unit_test(test_it_ends_with_its_caller),
		cmocka_unit_test(test_it_ends_when_its_caller_becomes_another_program),
		cmocka_unit_test(test_a_mount_of_the_host_makes_it_useless),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

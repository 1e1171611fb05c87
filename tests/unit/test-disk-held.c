/* Files that have no name any more, and the processes that hold them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "driver/linux/disk.h"
#include "driver/linux/pidfd.h"
#include "disk-ground.h"
#include "process-state.h"

enum hiding { IDLE, HOLDING, THREAD, LAST_THREAD, MAPPING, PRIVATE, SENDING, WRITING };

static void send_descriptor(int socket, int fd)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { .header = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	char byte = 0;
	struct iovec part = { &byte, 1 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
	                          .msg_controllen = sizeof(control) };
	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	sendmsg(socket, &message, 0);
}

struct thread_task {
	bool own_table;
	_Atomic bool ready;
};

static void *keep_open(void *arg)
{
	struct thread_task *task = arg;
	if (task->own_table)
		unshare(CLONE_FILES);
	task->ready = true;
	while (pause())
		;
	return NULL;
}

/* Takes 4 MiB in a file without a name. */
static void hide(int tree, enum hiding how)
{
	int sockets[2];
	if (how == IDLE)
		return;
	int fd = openat(tree, "nameless", O_RDWR | O_CREAT, 0600);
	unlinkat(tree, "nameless", 0);
	(void)!ftruncate(fd, 4 * MiB);
	if (how == MAPPING || how == PRIVATE) {
		int kind = how == MAPPING ? MAP_SHARED : MAP_PRIVATE;
		char *mapped = mmap(NULL, 4 * MiB, PROT_READ | PROT_WRITE, kind, fd, 0);
		close(fd);
		memset(mapped, 'x', 4 * MiB);
		return;
	}
	posix_fallocate(fd, 0, 4 * MiB);
	if (how == THREAD || how == LAST_THREAD) {
		pthread_t thread;
		static struct thread_task task;
		task = (struct thread_task){ .own_table = how == THREAD };
		pthread_create(&thread, NULL, keep_open, &task);
		while (how == THREAD && !task.ready)
			usleep(1000);
		if (how == THREAD)
			close(fd);
	}
	if (how == SENDING && socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0) {
		send_descriptor(sockets[0], fd);
		close(fd);
	}
}

static bool sleeps(pid_t pid)
{
	char state = process_state(pid);
	return state == 'S' || state == 'Z';
}

/* Until both do, for good. */
static void wait_for_sleep(pid_t first)
{
	for (bool asleep = false; !asleep;) {
		struct processes now;
		usleep(1000);
		processes_look(first, &now);
		asleep = now.count == 2 && sleeps(now.pids[0]) && sleeps(now.pids[1]);
		processes_free(&now);
	}
}

/* A child of a child, as a command's is; both wait to be killed. */
static pid_t start(int tree, enum hiding how, int *ret_pidfd)
{
	int ready[2];
	char byte;
	assert_int_equal(pipe(ready), 0);
	pid_t first = fork();
	if (first == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			hide(tree, how);
			int fd = openat(tree, "written", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
			(void)!write(ready[1], "", 1);
			if (how == LAST_THREAD)
				pthread_exit(NULL);
			while (how == WRITING) {
				static const char part[16 * 1024];
				(void)!pwrite(fd, part, sizeof(part), 0);
				usleep(1000);
			}
		}
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	*ret_pidfd = (int)syscall(SYS_pidfd_open, first, 0);
	assert_true(*ret_pidfd >= 0);
	assert_int_equal(pidfd_number(*ret_pidfd), first);
	if (how != WRITING)
		wait_for_sleep(first);
	return first;
}

static void end(pid_t first, int pidfd)
{
	struct processes processes;
	processes_look(first, &processes);
	assert_true(processes.count >= 2);
	for (size_t i = processes.count; i-- > 0;)
		kill(processes.pids[i], SIGKILL);
	processes_free(&processes);
	waitpid(first, NULL, 0);
	close(pidfd);
}

static void files_without_a_name(void **state)
{
	int tree = ((struct ground *)*state)->tree;
	for (int how = IDLE; how <= SENDING; how++) {
		struct disk_watch watch;
		int pidfd;
		ground_fill(tree, "before", 2 * MiB);
		ground_watch(&watch, tree, MiB, true);
		pid_t first = start(tree, how, &pidfd);
		volume.bytes += 4 * MiB;
		/* What is missing is held against one that hides something, and nobody else. */
		if (how == IDLE)
			ground_look_first(&watch, pidfd);
		else
			assert_true(ground_look_for(&watch, pidfd, 5000) && watch.used >= 4 * MiB);
		end(first, pidfd);
		disk_watch_end(&watch);
	}
}

static void one_that_sleeps_is_not_counted(void **state)
{
	int tree = ((struct ground *)*state)->tree, pidfd;
	struct disk_watch watch;
	ground_fill(tree, "before", 2 * MiB);
	ground_watch(&watch, tree, MiB, true);
	pid_t first = start(tree, IDLE, &pidfd);
	volume.bytes += 300 * KiB;
	ground_look_first(&watch, pidfd);
	uint64_t ended_us = watch.ended_us;
	for (int i = 0; i < 10; i++) {
		volume.bytes += 100 * MiB;
		assert_false(ground_look_for(&watch, pidfd, 40));
	}
	assert_int_equal(watch.ended_us, ended_us);
	assert_int_equal(watch.state, DISK_WATCHING);
	end(first, pidfd);
	disk_watch_end(&watch);
	first = start(tree, WRITING, &pidfd);
	ground_watch(&watch, tree, MiB, true);
	volume.bytes += 4 * MiB;
	assert_false(ground_look_for(&watch, pidfd, 300));
	ended_us = watch.ended_us;
	volume.bytes += 4 * MiB;
	assert_false(ground_look_for(&watch, pidfd, 300));
	assert_true(watch.ended_us > ended_us);
	end(first, pidfd);
	disk_watch_end(&watch);
}

/* A count that found less than is missing is repeated while the command does something, whether or not more is taken.
 */
static void what_a_count_missed_is_found_later(void **state)
{
	int tree = ((struct ground *)*state)->tree, pidfd;
	struct disk_watch watch;
	pid_t first = start(tree, WRITING, &pidfd);
	ground_watch(&watch, tree, MiB, true);
	volume.bytes += 4 * MiB;
	assert_false(ground_look_for(&watch, pidfd, 300));
	assert_true(watch.suspect);
	ground_fill(tree, "late", 4 * MiB);
	volume.bytes -= 4 * MiB;
	assert_true(ground_look_for(&watch, pidfd, 5000));
	end(first, pidfd);
	disk_watch_end(&watch);
}

/* All of a large workspace is not counted because others write. */
static void one_that_does_not_write(void **state)
{
	int tree = ((struct ground *)*state)->tree, pidfd;
	struct disk_watch watch;
	for (int how = IDLE; how <= WRITING; how += WRITING) {
		ground_watch(&watch, tree, 128 * MiB, false);
		pid_t first = start(tree, how, &pidfd);
		volume.bytes += MiB + 100 * KiB;
		for (int i = 0; i < (how == IDLE ? 10 : 500) && !watch.counted; i++)
			assert_false(ground_look_for(&watch, pidfd, 10));
		assert_int_equal(watch.counted, how == WRITING);
		end(first, pidfd);
		disk_watch_end(&watch);
	}
}

static void what_processes_do_is_seen(void **state)
{
	int tree = ((struct ground *)*state)->tree, pidfd;
	struct processes one, other;
	for (int how = IDLE; how <= WRITING; how += WRITING) {
		pid_t first = start(tree, how, &pidfd);
		processes_look(first, &one);
		usleep(20000);
		processes_look(first, &other);
		assert_int_equal(one.count, 2);
		assert_int_equal(one.pids[0], first);
		assert_false(one.partial);
		assert_int_equal(one.ran == other.ran, how == IDLE);
		assert_int_equal(one.wrote == other.wrote, how == IDLE);
		processes_free(&one);
		processes_free(&other);
		end(first, pidfd);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, ground_setup, ground_teardown)
		TEST(files_without_a_name),
		TEST(one_that_sleeps_is_not_counted),
		TEST(what_a_count_missed_is_found_later),
		TEST(one_that_does_not_write),
		TEST(what_processes_do_is_seen),
#undef TEST
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The end of a command as init tells it. Init is played here: what it does in which order is then no matter of luck. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#undef fail
#include "driver/linux/control.h"
#include "driver/linux/processes.h"
#include "driver/linux/supervise.h"
#include "skip.h"

#define PATIENCE_MS 30000

/* There is neither a group nor a limit of the disk. */
bool cgroup_kill(struct cgroup *group)
{
	assert_null(group);
	return false;
}

void cgroup_give_way(const struct cgroup *group)
{
	assert_null(group);
}

void cgroup_remove(struct cgroup *group)
{
	assert_null(group);
}

bool cgroup_freeze(struct cgroup *group, pid_t init)
{
	(void)group;
	(void)init;
	return false;
}

bool cgroup_thaw(struct cgroup *group, pid_t init)
{
	(void)init;
	assert_null(group);
	return true;
}

void processes_kill_below(pid_t first)
{
	(void)first;
}

int memory_watch_look(struct memory_watch *watch, pid_t first)
{
	(void)watch;
	(void)first;
	return 10;
}

int disk_watch_look(struct disk_watch *watch, int pidfd)
{
	(void)watch;
	(void)pidfd;
	return 0;
}

/* Of a command without output: the status that is told once it was sent these signals, and init, which reads `reads` of
 * them, has told its own, if any, and is gone. */
static int status_told(const int *signals, size_t count, size_t reads, const int *told)
{
	struct supervision supervision;
	struct launch launch = { .pidfd = -1 };
	struct cordon_error err;
	struct control_message message;
	int init, theirs[3];
	bool finished = false;
	const struct supervise_options options = { .stdin_fd = -1 };
	assert_int_equal(supervise_prepare(&supervision, &options, &launch, &err), 0);
	assert_true((init = dup(launch.control_fd)) >= 0);
	for (size_t i = 0; i < 3; i++)
		assert_true((theirs[i] = dup(launch.stdio[i])) >= 0);
	assert_int_equal(supervise_begin(&supervision, &launch, &err), 0);
	for (size_t i = 0; i < count; i++)
		supervise_signal(&supervision, signals[i]);
	for (size_t i = 0; i < reads; i++) {
		assert_int_equal(recv(init, &message, sizeof(message), 0), sizeof(message));
		assert_int_equal(message.kind, CONTROL_SIGNAL);
		assert_int_equal(message.value, signals[i]);
	}
	if (told) {
		message = (struct control_message){ .kind = CONTROL_REPORT, .value = *told };
		assert_int_equal(send(init, &message, sizeof(message), MSG_NOSIGNAL), sizeof(message));
	}
	close(init);
	for (size_t i = 0; i < 3; i++)
		close(theirs[i]);
	for (int steps = 0; !finished && steps < 100; steps++)
		assert_int_equal(supervise_step(&supervision, PATIENCE_MS, &finished, &err), 0);
	assert_true(finished);
	assert_int_equal(supervision.reported, told != NULL);
	int status = supervision.status;
	supervise_free(&supervision);
	return status;
}

static const int signals[] = { SIGTERM, SIGCONT };

static void test_all_was_read(void **state)
{
	(void)state;
	const int told = SIGTERM, fine = 0;
	assert_int_equal(status_told(signals, 2, 2, &told), SIGTERM);
	assert_int_equal(status_told(signals, 0, 0, &fine), 0);
}

static void test_the_end_came_before_all_was_read(void **state)
{
	(void)state;
	const int told = SIGTERM, fine = 0;
	assert_int_equal(status_told(signals, 2, 1, &told), SIGTERM);
	assert_int_equal(status_told(signals, 2, 0, &fine), 0);
}

static void test_gone_without_a_word(void **state)
{
	(void)state;
	for (size_t reads = 0; reads <= 2; reads++)
		assert_int_equal(status_told(signals, 2, reads, NULL), SIGKILL);
}

static int other_fd, handled;

static void handle_other(void *arg)
{
	uint64_t value;
	assert_ptr_equal(arg, &other_fd);
	assert_int_equal(read(other_fd, &value, sizeof(value)), sizeof(value));
	handled++;
}

/* It is one descriptor for the caller, whatever of it is ready. */
static void test_a_descriptor_of_others(void **state)
{
	struct supervision supervision;
	struct launch launch = { .pidfd = -1 };
	struct cordon_error err;
	const struct watched watched = { other_fd = eventfd(0, EFD_CLOEXEC), handle_other, &other_fd };
	const struct supervise_options options = { .stdin_fd = -1, .watched = &watched, .watched_count = 1 };
	const uint64_t one = 1;
	bool finished;
	(void)state;
	handled = 0;
	assert_int_equal(supervise_prepare(&supervision, &options, &launch, &err), 0);
	int init = dup(launch.control_fd);
	assert_int_equal(supervise_begin(&supervision, &launch, &err), 0);
	assert_int_equal(write(other_fd, &one, sizeof(one)), sizeof(one));
	struct pollfd ready = { .fd = supervision.epoll_fd, .events = POLLIN };
	while (!handled) {
		assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
		assert_int_equal(supervise_step(&supervision, 0, &finished, &err), 0);
	}
	assert_int_equal(handled, 1);
	close(init);
	supervise_free(&supervision);
	close(other_fd);
}

/* It was never begun, and its init waits for something else than us. */
static void test_init_hears_nothing(void **state)
{
	(void)state;
	struct supervision supervision;
	struct launch launch = { .pidfd = -1 };
	struct cordon_error err;
	const struct supervise_options options = { .stdin_fd = -1 };
	assert_int_equal(supervise_prepare(&supervision, &options, &launch, &err), 0);
	pid_t init = fork();
	if (init == 0) {
		pause();
		_exit(1);
	}
	supervision.pidfd = (int)syscall(SYS_pidfd_open, init, 0);
	assert_true(supervision.pidfd >= 0);
	supervise_free(&supervision);
	assert_int_equal(kill(init, 0), -1);
}

static int count_open(void)
{
	int count = 0;
	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* What was made is closed all the same. */
static void test_memory_is_short(void **state)
{
	(void)state;
	struct supervision supervision;
	struct launch launch = { .pidfd = -1 };
	struct cordon_error err;
	struct rlimit before, none;
	void *taken[64], *more;
	size_t count = 0;
	if (getenv("CORDON_SANITIZED"))
		skip_cannot("unsanitized", "the sanitizers end a program that has no memory");
	int open_before = count_open();
	const struct supervise_options options = { .stdin_fd = -1 };
	assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
	none = (struct rlimit){ 0, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
	while (count < ARRAY_SIZE(taken) && (more = malloc(16 * 1024)))
		taken[count++] = more;
	int result = supervise_prepare(&supervision, &options, &launch, &err);
	supervise_free(&supervision);
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
	while (count)
		free(taken[--count]);
	assert_int_equal(result, -1);
	assert_int_equal(count_open(), open_before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_was_read),
		cmocka_unit_test(test_the_end_came_before_all_was_read),
		cmocka_unit_test(test_gone_without_a_word),
		cmocka_unit_test(test_a_descriptor_of_others),
		cmocka_unit_test(test_init_hears_nothing),
		cmocka_unit_test(test_memory_is_short),
	};
	return cmocka_run_group_tests_name("supervise", tests, NULL, NULL);
}

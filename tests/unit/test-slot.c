/* Who is sent to another processor: the command of a slot, and nobody who has its number once it is gone. And how it gets its
 * orders, whether it was roused for them or not. */
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/init-blob.h"
#include "run/slot.h"

#include <cmocka.h> /* has a macro that is called fail */

/* Nothing here comes so far. */
const unsigned char cordon_init_blob[1];
const unsigned cordon_init_blob_size;

struct stand {
	struct slot slot;
	int command_fd;                 /* the command's end of the slot's socket */
	cpu_set_t all;
};

/* Some process has the number of the command. */
static void begin(struct stand *stand)
{
	int sockets[2];
	assert_int_equal(sched_getaffinity(0, sizeof(stand->all), &stand->all), 0);
	pid_t pid = fork();
	if (pid == 0) {
		pause();
		_exit(1);
	}
	assert_true(pid > 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
	stand->slot = (struct slot){ .socket_fd = sockets[0], .control_fd = -1, .pidfd = -1, .root_fd = -1, .command = pid };
	stand->command_fd = sockets[1];
}

/* How many processors it may be on in the end. */
static int end(struct stand *stand)
{
	cpu_set_t cpus;
	assert_int_equal(sched_getaffinity(stand->slot.command, sizeof(cpus), &cpus), 0);
	kill(stand->slot.command, SIGKILL);
	waitpid(stand->slot.command, NULL, 0);
	slot_end(&stand->slot);
	if (stand->command_fd >= 0)
		close(stand->command_fd);
	return CPU_COUNT(&cpus);
}

static void test_who_waits_is_sent_away(void **state)
{
	(void)state;
	struct stand stand;
	begin(&stand);
	slot_send_away(&stand.slot);
	int all = CPU_COUNT(&stand.all);
	assert_int_equal(end(&stand), all > 1 ? all - 1 : all);
}

static void test_who_has_its_number_is_left_alone(void **state)
{
	(void)state;
	struct stand stand;
	begin(&stand);
	close(take_fd(&stand.command_fd));
	slot_send_away(&stand.slot);
	assert_int_equal(end(&stand), CPU_COUNT(&stand.all));
}

/* ---- orders ------------------------------------------------------------------------------------------------------ */

enum { TAKEN = 42 };

/* A command that waits for its orders: takes them, and ends. */
static pid_t begin_command(struct slot *ret_slot)
{
	int sockets[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets), 0);
	pid_t pid = fork();
	if (pid == 0) {
		struct launch launch = { .held = true };
		dup2(sockets[1], SLOT_FD);
		for (int fd = 0; fd < 64; fd++)
			if (fd != SLOT_FD)
				close(fd);
		slot_await_news();
		bool taken = slot_await(&launch) == 0 && !strcmp(launch.cwd, "/there") && !strcmp(launch.argv[1], "word");
		_exit(taken ? TAKEN : 2);
	}
	assert_true(pid > 0);
	close(sockets[1]);
	*ret_slot = (struct slot){ .socket_fd = sockets[0], .control_fd = -1, .pidfd = -1, .root_fd = -1, .held = true };
	return pid;
}

static void order(struct slot *slot)
{
	const char *const none[] = { NULL }, *const argv[] = { "program", "word", NULL };
	const struct launch launch = { .cwd = "/there", .candidates = none, .argv = argv, .environment = none, .stdio = { 0, 1, 2 } };
	struct cordon_error err;
	assert_int_equal(slot_order(slot, &launch, &err), 0);
}

static int end_command(struct slot *slot, pid_t pid)
{
	int status;
	slot_end(slot);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_who_is_roused_takes_its_orders(void **state)
{
	(void)state;
	/* They come at once, and long after it has stopped to look for them. */
	for (unsigned pause_us = 0; pause_us <= 50000; pause_us += 50000) {
		struct slot slot;
		pid_t pid = begin_command(&slot);
		slot_rouse(&slot);
		usleep(pause_us);
		order(&slot);
		assert_int_equal(end_command(&slot, pid), TAKEN);
	}
}

static void test_who_is_not_roused_takes_them_too(void **state)
{
	(void)state;
	struct slot slot;
	pid_t pid = begin_command(&slot);
	order(&slot);
	assert_int_equal(end_command(&slot, pid), TAKEN);
}

static void test_who_is_roused_for_nothing_ends(void **state)
{
	(void)state;
	struct slot slot;
	pid_t pid = begin_command(&slot);
	slot_rouse(&slot);
	assert_int_equal(end_command(&slot, pid), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_waits_is_sent_away),
		cmocka_unit_test(test_who_has_its_number_is_left_alone),
		cmocka_unit_test(test_who_is_roused_takes_its_orders),
		cmocka_unit_test(test_who_is_not_roused_takes_them_too),
		cmocka_unit_test(test_who_is_roused_for_nothing_ends),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

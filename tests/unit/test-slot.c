/* How the command of a slot gets its orders. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "driver/linux/init-blob.h"
#include "driver/linux/slot.h"

#include <cmocka.h> /* has a macro that is called fail */

/* Nothing here comes so far. */
const unsigned char cordon_init_blob[1];
const unsigned cordon_init_blob_size;

/* As in slot.c. */
struct keeper {
	int socket_fd, pidfd;
	unsigned users;
};

enum { TAKEN = 42 };

/* A command that waits for its orders: takes them, and ends. */
static pid_t begin_command(struct slot *ret_slot)
{
	int sockets[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets), 0);
	pid_t pid = fork();
	if (pid == 0) {
		struct launch launch = { .cwd = NULL };
		dup2(sockets[1], SLOT_FD);
		for (int fd = 0; fd < 64; fd++)
			if (fd != SLOT_FD)
				close(fd);
		bool taken = slot_await(&launch) == 0 && !strcmp(launch.cwd, "/there") && !strcmp(launch.argv[1], "word");
		_exit(taken ? TAKEN : 2);
	}
	assert_true(pid > 0);
	close(sockets[1]);
	*ret_slot = (struct slot){ .socket_fd = sockets[0], .control_fd = -1, .pidfd = -1, .root_fd = -1 };
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

static void test_it_takes_its_orders(void **state)
{
	(void)state;
	struct slot slot;
	pid_t pid = begin_command(&slot);
	order(&slot);
	assert_int_equal(end_command(&slot, pid), TAKEN);
}

static void test_without_orders_it_ends(void **state)
{
	(void)state;
	struct slot slot;
	pid_t pid = begin_command(&slot);
	assert_int_equal(end_command(&slot, pid), 1);
}

/* What comes with a descriptor that there is no place for is an error at once, not something to wait for. */
static void check_no_place(int32_t kind)
{
	int sockets[2], keeper_sockets[2];
	struct rlimit before;
	struct cordon_error err;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, keeper_sockets), 0);
	const struct keeper keeper = { .socket_fd = keeper_sockets[0] };
	struct slot slot = { .socket_fd = sockets[0], .control_fd = -1, .pidfd = -1, .root_fd = -1 };
	struct iovec part = { &kind, sizeof(kind) };
	union {
		struct cmsghdr header;
		unsigned char space[CMSG_SPACE(sizeof(int))];
	} rights = { .header = { .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
	memcpy(CMSG_DATA(&rights.header), &sockets[1], sizeof(int));
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &rights, .msg_controllen = sizeof(rights) };
	assert_int_equal(sendmsg(sockets[1], &header, 0), sizeof(kind));
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 3, before.rlim_max }), 0);
	time_t begun = time(NULL);
	assert_int_equal(slot_await_ready(&slot, &keeper, &err), -1);
	assert_true(time(NULL) - begun < 5);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(err.class, CORDON_E_LIMIT_EXCEEDED);
	assert_int_equal(err.os_errno, EMFILE);
	slot_end(&slot);
	close(sockets[1]);
	close(keeper_sockets[0]);
	close(keeper_sockets[1]);
}

static void test_no_descriptor_is_left(void **state)
{
	(void)state;
	check_no_place(SLOT_STARTED);
	check_no_place(SLOT_READY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_it_takes_its_orders),
		cmocka_unit_test(test_without_orders_it_ends),
		cmocka_unit_test(test_no_descriptor_is_left),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

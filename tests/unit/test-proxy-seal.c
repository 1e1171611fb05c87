/* What the proxy can still do once it is sealed: with a network it makes sockets of TCP and UDP, without one none at
 * all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "proxy/seal.h"

static void make_tcp(void)
{
	syscall(SYS_socket, AF_INET, SOCK_STREAM, 0);
}

static void make_udp(void)
{
	syscall(SYS_socket, AF_INET6, SOCK_DGRAM, 0);
}

static void make_unix(void)
{
	syscall(SYS_socket, AF_UNIX, SOCK_STREAM, 0);
}

static void make_raw(void)
{
	syscall(SYS_socket, AF_INET, SOCK_RAW, IPPROTO_ICMP);
}

static void dial(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	syscall(SYS_connect, -1, &at, sizeof(at));
}

static void send_message(void)
{
	syscall(SYS_sendmsg, -1, NULL, 0);
}

/* A sanitizer's report needs the call. What it could open is refused by Landlock, which has no system call to show for
 * it. */
static void open_file(void)
{
	if (syscall(SYS_openat, -1, "/", 0) >= 0)
		syscall(SYS_exit_group, 3);
}

static void take_client(void)
{
	syscall(SYS_accept4, -1, NULL, NULL, 0);
}

static const struct {
	const char *name;
	void (*fn)(void);
	bool by_reaching, by_offline;   /* whether it may be called */
} calls[] = {
	{ "a socket of TCP", make_tcp, true, false },  { "a socket of UDP", make_udp, true, false },
	{ "a unix socket", make_unix, false, false },  { "a raw socket", make_raw, false, false },
	{ "connect", dial, true, false },              { "sendmsg", send_message, true, false },
	{ "openat", open_file, SEAL_IS_SANITIZED, SEAL_IS_SANITIZED },         { "accept4", take_client, true, true },
};

/* Whether it comes back from the call. */
static bool may_call(void (*fn)(void), bool offline)
{
	int status;
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		uint64_t descriptors = 64;
		if (seal_raise(&descriptors, offline))
			_exit(2);
		fn();
		syscall(SYS_exit_group, 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!WIFEXITED(status) && !(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS))
		fail_msg("status %x", status);
	if (WIFEXITED(status))
		assert_int_equal(WEXITSTATUS(status), 0);
	return WIFEXITED(status);
}

static void what_may_be_called(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		if (may_call(calls[i].fn, false) != calls[i].by_reaching)
			fail_msg("%s, with a network", calls[i].name);
		if (may_call(calls[i].fn, true) != calls[i].by_offline)
			fail_msg("%s, without a network", calls[i].name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(what_may_be_called) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}

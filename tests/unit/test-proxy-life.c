/* The proxy's own walls, its end, and what it survives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/compat.h"
#include "support/proxy-ground.h"

#define CONNECT_A "CONNECT a.test:% HTTP/1.0\r\n\r\n"

static bool is_sanitized(void)
{
	return getenv("CORDON_SANITIZED");
}

/* ---- walls ------------------------------------------------------------------------------------------------------ */

static void read_proc(pid_t pid, const char *name, char *text, size_t size)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, size - 1);
	assert_true(got > 0);
	text[got] = '\0';
}

static void expect_line(const char *text, const char *line)
{
	if (!strstr(text, line))
		fail_msg("no line \"%s\" in:\n%s", line, text);
}

/* Nothing but sockets, pipes, and what waits for them. False where nobody may look. */
static bool check_descriptors(pid_t pid)
{
	static const char *const kinds[] = { "socket:", "pipe:", "anon_inode:[eventpoll]", "anon_inode:[timerfd]" };
	char path[300], target[256];
	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	DIR *directory = opendir(path);
	if (!directory)
		return false;
	for (const struct dirent *entry; (entry = readdir(directory));) {
		bool is_known = entry->d_name[0] == '.';
		snprintf(path, sizeof(path), "/proc/%d/fd/%s", pid, entry->d_name);
		ssize_t length = readlink(path, target, sizeof(target) - 1);
		target[length > 0 ? length : 0] = '\0';
		for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
			is_known |= !strncmp(target, kinds[i], strlen(kinds[i]));
		if (!is_known)
			fail_msg("descriptor %s is %s", entry->d_name, target);
	}
	closedir(directory);
	return true;
}

static void test_is_sealed(void **state)
{
	struct proxy_ground ground;
	struct stat info;
	char text[8192], path[64];
	int server;
	(void)state;
	proxy_ground_start(&ground, NULL);
	int client = ground_tunnel(&ground, &server);
	read_proc(ground.pid, "status", text, sizeof(text));
	expect_line(text, "Name:\tcordon-proxy\n");
	expect_line(text, "Seccomp:\t2\n");
	expect_line(text, "NoNewPrivs:\t1\n");
	expect_line(text, "CapPrm:\t0000000000000000\n");
	expect_line(text, "CapEff:\t0000000000000000\n");
	if (geteuid() == 0)
		expect_line(text, "Uid:\t65530\t65530\t65530\t65530\n");
	read_proc(ground.pid, "limits", text, sizeof(text));
	expect_line(text, "Max core file size        0                    0 ");
	expect_line(text, "Max processes             0                    0 ");
	expect_line(text, "Max file size             0                    0 ");
	/* Out of reach of a terminal's signals. */
	assert_int_equal(getsid(ground.pid), ground.pid);
	snprintf(path, sizeof(path), "/proc/%d/environ", ground.pid);
	assert_int_equal(stat(path, &info), 0);
	/* The sanitizers report to it, and read about themselves. */
	if (!is_sanitized()) {
		assert_int_equal(info.st_uid, 0); /* nobody's, because it cannot be traced */
		assert_true(check_descriptors(ground.pid) || geteuid() != 0);
	}
	close(client);
	close(server);
	proxy_ground_row(&ground, PROXY_BY_CONNECT, PROXY_ALLOWED, "a.test:%", 0, "");
	proxy_ground_end(&ground);
}

/* Landlock is a second layer; without seccomp there is no proxy, and the supervisor is told why. */
static void test_other_kernels(void **state)
{
	struct proxy_ground ground;
	int status;
	(void)state;
	proxy_ground_start(&ground, &(struct proxy_options){ .without = SYS_landlock_create_ruleset });
	proxy_ground_end(&ground);
	struct proxy_message message = proxy_ground_try(&ground, &(struct proxy_options){ .without = SYS_seccomp });
	assert_int_equal(message.kind, PROXY_TOTALS);
	assert_non_null(strstr(message.text, "seccomp"));
	close(ground.socket);
	assert_int_equal(waitpid(ground.pid, &status, 0), ground.pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 2);
	close(ground.server);
}

static void test_bad_rules(void **state)
{
	static const char *const bad[] = { "a.test", "*:80", "a..test:80", "a.test:0", "", "10.1:80" };
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		const char *const rules[] = { bad[i], NULL };
		struct proxy_ground ground;
		struct proxy_message message = proxy_ground_try(&ground, &(struct proxy_options){ .rules = rules });
		assert_int_equal(message.kind, PROXY_TOTALS);
		assert_non_null(strstr(message.text, "rule"));
		close(ground.socket);
		assert_int_equal(waitpid(ground.pid, NULL, 0), ground.pid);
		close(ground.server);
	}
}

#ifdef __x86_64__
/* What a bug in it could be made to do: one system call, made in its place. Only root may still trace it. True where it
 * was killed for that. */
static bool is_killed_for(long number, const unsigned long long arguments[4])
{
	struct proxy_ground ground;
	struct user_regs_struct registers;
	int status;
	proxy_ground_start(&ground, NULL);
	assert_int_equal(ptrace(PTRACE_SEIZE, ground.pid, NULL, NULL), 0);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, ground.pid, NULL, NULL), 0);
	assert_int_equal(waitpid(ground.pid, &status, 0), ground.pid);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(ptrace(PTRACE_GETREGS, ground.pid, NULL, &registers), 0);
	/* It waits in one: the instruction is made once more. */
	registers.rip -= 2;
	registers.rax = registers.orig_rax = (unsigned long long)number;
	registers.rdi = arguments[0];
	registers.rsi = arguments[1];
	registers.rdx = arguments[2];
	registers.r10 = arguments[3];
	assert_int_equal(ptrace(PTRACE_SETREGS, ground.pid, NULL, &registers), 0);
	assert_int_equal(ptrace(PTRACE_CONT, ground.pid, NULL, NULL), 0);
	/* One that goes on is ended here. */
	struct pollfd end = { .fd = ground.socket };
	if (poll(&end, 1, 10000) != 1)
		kill(ground.pid, SIGKILL);
	assert_int_equal(waitpid(ground.pid, &status, 0), ground.pid);
	bool is_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS;
	close(ground.socket);
	close(ground.server);
	return is_killed;
}

static void test_filter(void **state)
{
	static const struct {
		const char *name;
		long number;
		unsigned long long arguments[4];
	} calls[] = {
		{ "open", SYS_open, { 0, 0, 0, 0 } },
		{ "openat", SYS_openat, { 0, 0, 0, 0 } },
		{ "execve", SYS_execve, { 0, 0, 0, 0 } },
		{ "kill", SYS_kill, { 1, 0, 0, 0 } },
		{ "clone", SYS_clone, { 0, 0, 0, 0 } },
		{ "ptrace", SYS_ptrace, { 0, 0, 0, 0 } },
		{ "prctl", SYS_prctl, { 0, 0, 0, 0 } },
		{ "bind", SYS_bind, { 0, 0, 0, 0 } },
		{ "recvmsg", SYS_recvmsg, { 0, 0, 0, 0 } },
		{ "socket AF_UNIX", SYS_socket, { AF_UNIX, SOCK_STREAM, 0, 0 } },
		{ "socket AF_NETLINK", SYS_socket, { AF_NETLINK, SOCK_RAW, 0, 0 } },
		{ "socket SOCK_RAW", SYS_socket, { AF_INET, SOCK_RAW, IPPROTO_ICMP, 0 } },
		{ "mmap PROT_EXEC", SYS_mmap, { 0, 4096, 4, 0x22 } },
		{ "fcntl F_SETOWN", SYS_fcntl, { 3, F_SETOWN, 1, 0 } },
		{ "getsockopt SO_PEERPIDFD", SYS_getsockopt, { 3, SOL_SOCKET, 77, 0 } },
		{ "setsockopt TCP_CONGESTION", SYS_setsockopt, { 3, IPPROTO_TCP, TCP_CONGESTION, 0 } },
		{ "setsockopt SO_BINDTODEVICE", SYS_setsockopt, { 3, SOL_SOCKET, SO_BINDTODEVICE, 0 } },
		{ "x32", 0x40000000 | SYS_read, { 0, 0, 0, 0 } },
	};
	(void)state;
	if (geteuid() != 0 || is_sanitized())
		return; /* nobody else may trace it, which the test before shows */
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (!is_killed_for(calls[i].number, calls[i].arguments))
			fail_msg("%s is not refused", calls[i].name);
}
#endif

/* ---- floods ----------------------------------------------------------------------------------------------------- */

static void test_opened_and_dropped(void **state)
{
	enum { COUNT = 10000 };
	struct proxy_ground ground;
	uint64_t told = 0;
	int server;
	(void)state;
	proxy_ground_start(&ground, NULL);
	for (int i = 0; i < COUNT; i++)
		close(ground_client(&ground));
	int client = ground_tunnel(&ground, &server);
	while (told < COUNT) {
		struct proxy_message row =
			proxy_ground_row(&ground, PROXY_BY_HTTP, PROXY_FAILED, "", 0, "without a request");
		told += row.connection.count;
	}
	assert_int_equal(told, COUNT);
	close(client);
	close(server);
	proxy_ground_row(&ground, PROXY_BY_CONNECT, PROXY_ALLOWED, "a.test:%", 0, "");
	struct proxy_message totals = proxy_ground_end(&ground);
	assert_int_equal(totals.totals.failed, COUNT);
	assert_int_equal(totals.totals.connections, 1);
}

/* Nothing is accepted while nobody reads what there is to tell, and nothing of it is lost. */
static void test_supervisor_is_slow(void **state)
{
	enum { COUNT = 1000 };
	struct proxy_ground ground;
	(void)state;
	proxy_ground_start(&ground, NULL);
	for (int i = 0; i < COUNT; i++) {
		int client = ground_client(&ground);
		ground_say(&ground, client, "CONNECT other.test:443 HTTP/1.0\r\n\r\n");
		close(client);
	}
	for (int i = 0; i < COUNT; i++)
		proxy_ground_row(&ground, PROXY_BY_CONNECT, PROXY_DENIED, "other.test:443", 403, "");
	assert_int_equal(proxy_ground_end(&ground).totals.denied, COUNT);
}

/* ---- the end ---------------------------------------------------------------------------------------------------- */

static void test_ends_with_the_command(void **state)
{
	struct proxy_ground ground;
	char text[16];
	int server;
	(void)state;
	proxy_ground_start(&ground, NULL);
	int client = ground_tunnel(&ground, &server);
	proxy_ground_send(&ground, &(struct proxy_message){ .kind = PROXY_END });
	proxy_ground_row(&ground, PROXY_BY_CONNECT, PROXY_ALLOWED, "a.test:%", 0, "the command has ended");
	struct proxy_message totals = proxy_ground_next(&ground);
	assert_int_equal(totals.kind, PROXY_TOTALS);
	assert_int_equal(totals.totals.connections, 1);
	assert_int_equal(ground_hear_all(client, text, sizeof(text)), -1);
	assert_int_equal(ground_hear_all(server, text, sizeof(text)), -1);
	close(client);
	close(server);
	close(ground.socket);
	close(ground.server);
	assert_int_equal(waitpid(ground.pid, NULL, 0), ground.pid);
}

/* Another proxy listens from now on: what the rules that are left cover goes on, the rest ends, and with the last the
 * proxy. */
static void test_leaves_with_the_last_connection(void **state)
{
	static const struct proxy_message leave = { .kind = PROXY_LEAVE }, begin = { .kind = PROXY_BEGIN };
	struct proxy_message rule = { .kind = PROXY_RULE };
	struct proxy_ground ground;
	char text[16];
	int server;
	(void)state;
	proxy_ground_start(&ground, NULL);
	int client = ground_tunnel(&ground, &server);
	snprintf(rule.host, sizeof(rule.host), "a.test:%u", (unsigned)ground.port);
	for (int i = 0; i < 2; i++) {
		proxy_ground_send(&ground, &leave);
		proxy_ground_send(&ground, &rule);
		proxy_ground_send(&ground, &begin);
		ground_say(&ground, client, "more");
		assert_int_equal(recv(server, text, 4, MSG_WAITALL), 4);
	}
	proxy_ground_send(&ground, &leave);
	proxy_ground_send(&ground, &begin);
	proxy_ground_row(&ground, PROXY_BY_CONNECT, PROXY_ALLOWED, "a.test:%", 0, "the host was taken back");
	assert_int_equal(proxy_ground_next(&ground).kind, PROXY_TOTALS);
	assert_int_equal(ground_hear_all(client, text, sizeof(text)), -1);
	assert_int_equal(ground_hear_all(server, text, sizeof(text)), -1);
	close(client);
	close(server);
	close(ground.socket);
	close(ground.server);
	assert_int_equal(waitpid(ground.pid, NULL, 0), ground.pid);
}

/* A program that connects, says this and ends: the proxy finds both at a time. */
static void say_at_the_end(struct proxy_ground *ground, const char *text)
{
	proxy_ground_start(ground, NULL);
	assert_int_equal(kill(ground->pid, SIGSTOP), 0);
	assert_int_equal(waitpid(ground->pid, NULL, WUNTRACED), ground->pid);
	int client = ground_client(ground);
	ground_say(ground, client, text);
	assert_int_equal(shutdown(client, SHUT_WR), 0);
	proxy_ground_send(ground, &(struct proxy_message){ .kind = PROXY_END });
	assert_int_equal(kill(ground->pid, SIGCONT), 0);
	/* What it answers is for nobody. */
	close(client);
}

static void end_after_that(struct proxy_ground *ground)
{
	assert_int_equal(proxy_ground_next(ground).kind, PROXY_TOTALS);
	close(ground->socket);
	close(ground->server);
	assert_int_equal(waitpid(ground->pid, NULL, 0), ground->pid);
}

/* The row says what it was. */
static void test_looks_at_what_waits_before_it_ends(void **state)
{
	struct proxy_ground ground;
	(void)state;
	say_at_the_end(&ground, "CONNECT other.test:% HTTP/1.0\r\n\r\n");
	proxy_ground_row(&ground, PROXY_BY_CONNECT, PROXY_DENIED, "other.test:%", 403, "");
	end_after_that(&ground);
}

/* What has just begun has a moment; what goes on for longer has none, and is not waited for: that is tested above. */
static void test_has_a_moment_before_it_ends(void **state)
{
	struct proxy_ground ground;
	(void)state;
	say_at_the_end(&ground, "GET http://a.test:%/ HTTP/1.0\r\n\r\n");
	int server = ground_accept(&ground);
	struct proxy_message row =
		proxy_ground_row(&ground, PROXY_BY_HTTP, PROXY_ALLOWED, "a.test:%", 0, "the command has ended");
	assert_true(row.connection.duration_us >= 1000 && row.connection.bytes_out > 0);
	close(server);
	end_after_that(&ground);
}

static void test_supervisor_is_gone(void **state)
{
	struct proxy_ground ground;
	char text[16];
	int server, status;
	(void)state;
	proxy_ground_start(&ground, NULL);
	int client = ground_tunnel(&ground, &server);
	close(ground.socket);
	assert_int_equal(waitpid(ground.pid, &status, 0), ground.pid);
	assert_int_equal(status, 0);
	assert_true(ground_hear_all(client, text, sizeof(text)) <= 0);
	assert_true(ground_hear_all(server, text, sizeof(text)) <= 0);
	close(client);
	close(server);
	close(ground.server);
}

/* One that lasts is told of while it is open, once, and counted when it has ended. */
static void test_open(void **state)
{
	struct proxy_ground ground;
	int server;
	(void)state;
	proxy_ground_start(&ground, NULL);
	int client = ground_tunnel(&ground, &server);
	ground_say(&ground, client, "four");
	ground_hear(&ground, server, "four");
	struct proxy_message open = proxy_ground_open(&ground);
	char host[HOST_TEXT_SIZE];
	sprintf(host, "a.test:%u", ground.port);
	assert_string_equal(open.host, host);
	assert_int_equal(open.connection.decision, PROXY_ALLOWED);
	assert_memory_equal(open.connection.address.bytes, "\x7f\0\0\1", 4);
	assert_true(open.connection.duration_us >= 1000000 && open.connection.bytes_in == 0);
	/* A request in the clear, too. */
	int other = ground_client(&ground);
	ground_say(&ground, other, "GET http://a.test:%/ HTTP/1.0\r\n\r\n");
	int slow = ground_accept(&ground);
	open = proxy_ground_open(&ground);
	assert_int_equal(open.connection.way, PROXY_BY_HTTP);
	close(slow);
	close(other);
	proxy_ground_row(&ground, PROXY_BY_HTTP, PROXY_FAILED, "a.test:%", 0, "");
	close(client);
	ground_hear_end(server);
	close(server);
	struct proxy_message row = proxy_ground_row(&ground, PROXY_BY_CONNECT, PROXY_ALLOWED, "a.test:%", 0, "");
	assert_int_equal(row.connection.bytes_out, 4);
	struct proxy_message totals = proxy_ground_end(&ground);
	assert_int_equal(totals.totals.connections, 1);
	assert_int_equal(totals.totals.failed, 1);
	assert_int_equal(totals.totals.bytes_in, 0);
}

static void test_killed(void **state)
{
	struct proxy_ground ground;
	char text[16];
	int server;
	(void)state;
	proxy_ground_start(&ground, NULL);
	int client = ground_tunnel(&ground, &server);
	proxy_ground_kill(&ground);
	assert_true(ground_hear_all(client, text, sizeof(text)) <= 0);
	assert_true(ground_hear_all(server, text, sizeof(text)) <= 0);
	close(client);
	close(server);
}

/* What has no place there ends it: whoever says it is not the supervisor it knows. */
static void test_messages_out_of_place(void **state)
{
	static const uint32_t kinds[] = { PROXY_BEGIN, PROXY_RULE, PROXY_LISTENER, PROXY_READY, 0, 1000 };
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct proxy_ground ground;
		int status;
		proxy_ground_start(&ground, NULL);
		proxy_ground_send(&ground, &(struct proxy_message){ .kind = kinds[i] });
		assert_int_equal(waitpid(ground.pid, &status, 0), ground.pid);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
		close(ground.socket);
		close(ground.server);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_is_sealed),
		cmocka_unit_test(test_other_kernels),
		cmocka_unit_test(test_bad_rules),
#ifdef __x86_64__
		cmocka_unit_test(test_filter),
#endif
		cmocka_unit_test(test_opened_and_dropped),
		cmocka_unit_test(test_supervisor_is_slow),
		cmocka_unit_test(test_ends_with_the_command),
		cmocka_unit_test(test_leaves_with_the_last_connection),
		cmocka_unit_test(test_looks_at_what_waits_before_it_ends),
		cmocka_unit_test(test_has_a_moment_before_it_ends),
		cmocka_unit_test(test_supervisor_is_gone),
		cmocka_unit_test(test_open),
		cmocka_unit_test(test_killed),
		cmocka_unit_test(test_messages_out_of_place),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

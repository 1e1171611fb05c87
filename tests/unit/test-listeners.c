/* The listeners of a network of listed hosts, made in a namespace of their own and taken out of the control socket:
 * that each is where the plan says, that programs inside reach them by every address meant for it, and that nobody
 * inside can take their place. What is done inside is done by a child, whose status says at which line it failed. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/linux/control.h"
#include "driver/linux/launch.h"
#include "driver/linux/supervise.h"
#include "skip.h"

#include <cmocka.h> /* has a macro that is called fail */

static struct arena arena;
static struct egress_plan plan;
static struct launch launch;
static struct supervision supervision;
static int fds[EGRESS_LISTENERS_MAX];

static __attribute__((sentinel)) void plan_for(const char *first, ...)
{
	struct strings hosts = { 0 };
	va_list more;
	va_start(more, first);
	for (const char *text = first; text; text = va_arg(more, const char *))
		assert_int_equal(strings_add(&arena, &hosts, text), 0);
	va_end(more);
	assert_int_equal(egress_make(&arena, &hosts, &plan, NULL), 0);
}

static int set_up(void **state)
{
	(void)state;
	int control[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) < 0)
		return -1;
	launch = (struct launch){ .control_fd = control[0] };
	supervision = (struct supervision){ .control_fd = control[1] };
	for (size_t i = 0; i < EGRESS_LISTENERS_MAX; i++)
		fds[i] = -1;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	for (size_t i = 0; i < EGRESS_LISTENERS_MAX; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	close(launch.control_fd);
	close(supervision.control_fd);
	arena_free(&arena);
	return 0;
}

/* ---- inside ----------------------------------------------------------------------------------------------------- */

struct name {
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	};
	socklen_t size;
};

static struct name name_of(const char *address, uint16_t port)
{
	struct name name = { .v4 = { .sin_family = AF_INET, .sin_port = htons(port) }, .size = sizeof(name.v4) };
	if (inet_pton(AF_INET, address, &name.v4.sin_addr) == 1)
		return name;
	name = (struct name){ .v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) }, .size = sizeof(name.v6) };
	return inet_pton(AF_INET6, address, &name.v6.sin6_addr) == 1 ? name : (struct name){ .size = 0 };
}

/* 0 or the errno. */
static int reach(int type, const char *address, uint16_t port)
{
	struct name name = name_of(address, port);
	int fd = socket(name.any.sa_family, type, 0);
	return connect(fd, &name.any, name.size) < 0 ? errno : 0;
}

/* The same for having an address to oneself. */
static int take_place(int type, const char *address, uint16_t port)
{
	static const int options[] = { SO_REUSEADDR, SO_REUSEPORT }, yes = 1;
	struct name name = name_of(address, port);
	int fd = socket(name.any.sa_family, type, 0);
	for (size_t i = 0; i < 2; i++)
		if (setsockopt(fd, SOL_SOCKET, options[i], &yes, sizeof(yes)) < 0)
			return ENOTSUP;
	int result = bind(fd, &name.any, name.size);
	if (result == 0 && type == SOCK_STREAM)
		result = listen(fd, 1);
	return result < 0 ? errno : 0;
}

/* What comes of it: 0, an errno, or ANY of them. */
#define ANY (-1)
struct attempt {
	int type;
	const char *address;
	uint16_t port;
	int answer;
};

/* The number of the first that has another answer, or 0. */
static int try_all(int (*try)(int, const char *, uint16_t), const struct attempt *attempts, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int answer = try(attempts[i].type, attempts[i].address, attempts[i].port);
		if (attempts[i].answer == ANY ? !answer : answer != attempts[i].answer)
			return (int)i + 1;
	}
	return 0;
}

/* Runs it in a new network namespace, where it must return 0. */
static void in_namespace(int (*inside)(const void *), const void *arg)
{
	int status;
	launch.listeners = plan.listeners;
	launch.listener_count = plan.count;
	pid_t child = fork();
	if (child == 0)
		_exit(unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0 ? 255 : inside(arg));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 255)
		skip_cannot("userns", "no network namespace");
	assert_int_equal(WEXITSTATUS(status), 0);
}

struct visit {
	int (*before)(void), (*after)(void);    /* either may be NULL */
};

static int listen_inside(const void *arg)
{
	const struct visit *visit = arg;
	if (launch_raise_loopback(&launch) == 0 && !(visit->before && visit->before()) && launch_listen(&launch) == 0)
		return visit->after ? visit->after() : 0;
	fprintf(stderr, "# %s: %s\n", launch.error.reason, strerror(launch.error.os_errno));
	return 254;
}

/* What is done before and after the listeners are there; and then takes them. */
static void with_listeners(int (*before)(void), int (*after)(void))
{
	in_namespace(listen_inside, &(struct visit){ before, after });
	assert_int_equal(supervise_receive_listeners(supervision.control_fd, fds, plan.count, NULL), 0);
}

/* ---- outside ---------------------------------------------------------------------------------------------------- */

static int option(int fd, int name)
{
	int value = -1;
	socklen_t size = sizeof(value);
	assert_int_equal(getsockopt(fd, SOL_SOCKET, name, &value, &size), 0);
	return value;
}

/* Whatever the host sends by: towards the command it is never by one that holds back, from the first connection on. */
static void assert_loopback(int fd)
{
	char control[16] = "";
	socklen_t size = sizeof(control) - 1;
	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, control, &size), 0);
	assert_string_equal(control, "reno");
}

static void get_name(int fd, struct address *ret_address, uint16_t *ret_port)
{
	struct name name = { .size = sizeof(name) };
	assert_int_equal(getsockname(fd, &name.any, &name.size), 0);
	bool is_v4 = name.any.sa_family == AF_INET;
	*ret_address = (struct address){ .length = is_v4 ? 4 : 16 };
	memcpy(ret_address->bytes, is_v4 ? (void *)&name.v4.sin_addr : (void *)&name.v6.sin6_addr, ret_address->length);
	*ret_port = ntohs(is_v4 ? name.v4.sin_port : name.v6.sin6_port);
}

static void assert_as_planned(size_t i)
{
	struct address address;
	uint16_t port;
	bool datagrams = plan.listeners[i].use == EGRESS_DNS_UDP;
	get_name(fds[i], &address, &port);
	assert_memory_equal(&address, &plan.listeners[i].address, sizeof(address));
	assert_int_equal(port, plan.listeners[i].port);
	assert_int_equal(option(fds[i], SO_TYPE), datagrams ? SOCK_DGRAM : SOCK_STREAM);
	assert_int_equal(option(fds[i], SO_ACCEPTCONN), !datagrams);
	assert_int_equal(option(fds[i], SO_REUSEADDR), 0);
	assert_int_equal(option(fds[i], SO_REUSEPORT), 0);
	if (!datagrams)
		assert_loopback(fds[i]);
	assert_int_equal(fcntl(fds[i], F_GETFD), FD_CLOEXEC);
	assert_true(fcntl(fds[i], F_GETFL) & O_NONBLOCK);
}

/* The one that waits on the listener was meant for this address. */
static void assert_dialled(const char *listener, uint16_t port, const char *dialled)
{
	char text[ADDRESS_TEXT_SIZE];
	struct address address;
	uint16_t found;
	for (size_t i = 0; i < plan.count; i++) {
		address_text(&plan.listeners[i].address, text);
		if (strcmp(text, listener) || plan.listeners[i].port != port || plan.listeners[i].use == EGRESS_DNS_UDP)
			continue;
		int fd = accept(fds[i], NULL, NULL);
		assert_true(fd >= 0);
		get_name(fd, &address, &found);
		address_text(&address, text);
		assert_string_equal(text, dialled);
		assert_int_equal(found, port);
		close(fd);
		return;
	}
	fail_msg("nothing listens at %s:%u", listener, port);
}

/* ---- tests ------------------------------------------------------------------------------------------------------ */

static void need_v6(void)
{
	if (access("/proc/net/if_inet6", F_OK) < 0)
		skip_cannot("ipv6", "half of the addresses are of it");
}

static int dial(void)
{
	static const struct attempt attempts[] = {
		{ SOCK_STREAM, "198.18.0.1", 3128, 0 },
		{ SOCK_STREAM, "198.18.0.1", 53, 0 },
		{ SOCK_DGRAM, "198.18.0.1", 53, 0 },
		{ SOCK_STREAM, "198.18.1.1", 22, 0 },
		{ SOCK_STREAM, "2001:2::1:1", 22, 0 },
		{ SOCK_STREAM, "198.19.7.9", 443, 0 },
		{ SOCK_STREAM, "2001:2::2:77", 443, 0 },
		{ SOCK_STREAM, "127.0.0.1", 22, ECONNREFUSED },
		{ SOCK_STREAM, "198.18.1.2", 22, ECONNREFUSED },
		{ SOCK_STREAM, "198.18.0.1", 22, ECONNREFUSED },
		{ SOCK_STREAM, "198.20.0.1", 443, ENETUNREACH },
		{ SOCK_STREAM, "198.17.255.254", 443, ENETUNREACH },
		{ SOCK_STREAM, "203.0.113.1", 443, ENETUNREACH },
		{ SOCK_STREAM, "2001:3::1", 443, ENETUNREACH },
		{ SOCK_STREAM, "2001:2:1::1", 443, ENETUNREACH },
	};
	return try_all(reach, attempts, ARRAY_SIZE(attempts));
}

static void test_reached(void **state)
{
	(void)state;
	need_v6();
	plan_for("example.com:22", "*.example.org:443", "203.0.113.7:80", NULL);
	with_listeners(NULL, dial);
	assert_int_equal(plan.count, 7);
	for (size_t i = 0; i < plan.count; i++)
		assert_as_planned(i);
	assert_dialled("198.18.0.1", 3128, "198.18.0.1");
	assert_dialled("198.18.0.1", 53, "198.18.0.1");
	assert_dialled("198.18.1.1", 22, "198.18.1.1");
	assert_dialled("2001:2::1:1", 22, "2001:2::1:1");
	assert_dialled("0.0.0.0", 443, "198.19.7.9");
	assert_dialled("::", 443, "2001:2::2:77");
}

static int usurp(void)
{
	static const struct attempt attempts[] = {
		{ SOCK_STREAM, "198.18.0.1", 3128, EADDRINUSE },
		{ SOCK_STREAM, "0.0.0.0", 3128, EADDRINUSE },
		{ SOCK_STREAM, "::", 3128, EADDRINUSE },
		{ SOCK_STREAM, "198.18.0.1", 53, EADDRINUSE },
		{ SOCK_DGRAM, "198.18.0.1", 53, EADDRINUSE },
		{ SOCK_DGRAM, "0.0.0.0", 53, EADDRINUSE },
		{ SOCK_DGRAM, "::", 53, EADDRINUSE },
		{ SOCK_STREAM, "198.18.1.1", 22, EADDRINUSE },
		{ SOCK_STREAM, "2001:2::1:1", 22, ANY },
		{ SOCK_STREAM, "198.19.0.1", 443, EADDRINUSE },
		{ SOCK_STREAM, "2001:2::2:1", 443, ANY },
		{ SOCK_STREAM, "::", 443, EADDRINUSE },
		/* What is nobody's is the command's. */
		{ SOCK_STREAM, "127.0.0.1", 22, 0 },
		{ SOCK_STREAM, "198.18.0.1", 8080, 0 },
	};
	return try_all(take_place, attempts, ARRAY_SIZE(attempts));
}

static void test_not_shared(void **state)
{
	(void)state;
	need_v6();
	plan_for("example.com:22", "*.example.org:443", NULL);
	with_listeners(NULL, usurp);
}

static void test_most(void **state)
{
	(void)state;
	struct strings hosts = { 0 };
	need_v6();
	for (int i = 0; i < EGRESS_PORTS_MAX; i++)
		assert_int_equal(strings_add(&arena, &hosts, arena_printf(&arena, "*.example.org:%d", 1000 + i)), 0);
	for (int i = 0; i < EGRESS_PAIRS_MAX; i++)
		assert_int_equal(strings_add(&arena, &hosts, arena_printf(&arena, "h%d.example.org:%d", i, 100 + i)),
		                 0);
	for (int i = 0; i < EGRESS_SERVICES_MAX; i++)
		assert_int_equal(strings_add(&arena, &hosts, arena_printf(&arena, "localhost:%d", 20000 + i)), 0);
	assert_int_equal(egress_make(&arena, &hosts, &plan, NULL), 0);
	assert_int_equal(plan.count, EGRESS_LISTENERS_MAX);
	with_listeners(NULL, NULL);
	for (size_t i = 0; i < plan.count; i++)
		assert_as_planned(i);
}

static int disable_v6(void)
{
	static const char *const path = "/proc/sys/net/ipv6/conf/lo/disable_ipv6";
	int fd = open(path, O_WRONLY);
	return fd < 0 || write(fd, "1", 1) != 1;
}

static int dial_v4(void)
{
	static const struct attempt attempts[] = {
		{ SOCK_STREAM, "198.18.1.1", 22, 0 },
		{ SOCK_STREAM, "2001:2::1:1", 22, ANY },
	};
	return try_all(reach, attempts, ARRAY_SIZE(attempts));
}

static void test_without_v6(void **state)
{
	(void)state;
	if (access("/proc/sys/net/ipv6", F_OK) < 0)
		skip_cannot("ipv6", "there is nothing to take away");
	plan_for("example.com:22", "*.example.org:443", NULL);
	with_listeners(disable_v6, dial_v4);
	for (size_t i = 0; i < plan.count; i++)
		if (plan.listeners[i].address.length == 4)
			assert_as_planned(i);
		else
			assert_int_equal(fds[i], -1);
}

/* A place that is taken already is an error, and none of the others is left behind. */
static int find_it_taken(const void *arg)
{
	(void)arg;
	if (launch_raise_loopback(&launch) < 0 || take_place(SOCK_STREAM, "0.0.0.0", 3128))
		return 254;
	int next = dup(0);
	close(next);
	bool refused = launch_listen(&launch) < 0 && launch.failed && launch.error.os_errno == EADDRINUSE &&
	               launch.error.class == CORDON_E_SESSION_BUSY &&
	               !strcmp(launch.error.boundary, "network");
	return refused && dup(0) == next ? 0 : 1;
}

static void test_taken(void **state)
{
	(void)state;
	plan_for("example.com:22", NULL);
	in_namespace(find_it_taken, NULL);
}

/* What is not as it was agreed on is refused, and what came with it closed. */
static void test_malformed(void **state)
{
	(void)state;
	static const struct control_message wrong[] = {
		{ .kind = CONTROL_LISTENERS, .value = 2, .made = 2 | 4 },
		{ .kind = CONTROL_LISTENERS, .value = 2, .made = 4 },
		{ .kind = CONTROL_LISTENERS, .value = 0, .made = 1 },
		{ .kind = CONTROL_LISTENERS, .value = -1, .made = 1 },
		{ .kind = CONTROL_LISTENERS, .value = 65, .made = 1 },
		{ .kind = CONTROL_LISTENERS, .value = 4, .made = 1 },
		{ .kind = CONTROL_REPORT, .value = 3, .made = 1 },
	};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct iovec part = { (void *)(uintptr_t)&wrong[i], sizeof(wrong[i]) };
		union {
			struct cmsghdr header;
			unsigned char space[CMSG_SPACE(sizeof(int))];
		} control = { .header = { .cmsg_len = CMSG_LEN(sizeof(int)),
			                  .cmsg_level = SOL_SOCKET,
			                  .cmsg_type = SCM_RIGHTS } };
		*(int *)(void *)CMSG_DATA(&control.header) = launch.control_fd;
		struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
		                         .msg_controllen = sizeof(control) };
		struct cordon_error err = { 0 };
		int taken[3], next = dup(0);
		close(next);
		assert_int_equal(sendmsg(launch.control_fd, &header, 0), sizeof(wrong[i]));
		assert_int_equal(supervise_receive_listeners(supervision.control_fd, taken, 3, &err), -1);
		assert_int_equal(err.class, CORDON_E_INTERNAL);
		assert_int_equal(dup(0), next);
		close(next);
	}
	int none[1];
	assert_int_equal(supervise_receive_listeners(supervision.control_fd, none, 1, NULL), -1);
	assert_int_equal(supervise_receive_listeners(supervision.control_fd, none, 0, NULL), 0);
}

#define ROW(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROW(test_reached),    ROW(test_not_shared), ROW(test_most),
		ROW(test_without_v6), ROW(test_taken),      ROW(test_malformed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

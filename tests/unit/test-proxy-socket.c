/* The proxy's messages on a stream, as systems without sockets of packets have them: whole, however they come. send() is
 * this test's: as macOS's, which waits for room whatever its flags say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "net/proxy-socket.h"

#define COUNT 500

static int ends[2];

ssize_t send(int fd, const void *bytes, size_t length, int flags)
{
	return syscall(SYS_sendto, fd, bytes, length, flags & ~MSG_DONTWAIT, NULL, 0);
}

static int set_up(void **state)
{
	static const int small = 4096;
	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	close(ends[0]);
	close(ends[1]);
	return 0;
}

static struct proxy_message message(uint32_t id)
{
	struct proxy_message made = { .kind = PROXY_CONNECTION, .id = id };
	memset(made.text, 'a' + (int)(id % 26), sizeof(made.text) - 1);
	return made;
}

static void is_message(const struct proxy_message *found, uint32_t id)
{
	const struct proxy_message wanted = message(id);
	assert_memory_equal(found, &wanted, sizeof(wanted));
}

static void byte_by_byte(void **state)
{
	struct proxy_inbox inbox = { 0 };
	(void)state;
	for (uint32_t id = 0; id < 3; id++) {
		const struct proxy_message made = message(id);
		for (size_t i = 0; i < sizeof(made); i++) {
			assert_int_equal(proxy_socket_receive(ends[1], &inbox), 0);
			assert_int_equal(send(ends[0], (const char *)&made + i, 1, 0), 1);
		}
		assert_int_equal(proxy_socket_receive(ends[1], &inbox), 1);
		is_message(&inbox.message, id);
	}
	assert_int_equal(proxy_socket_receive(ends[1], &inbox), 0);
}

static void as_much_as_there_is_room(void **state)
{
	struct proxy_inbox inbox = { 0 };
	uint32_t sent_id = 0, received = 0;
	size_t sent = 0, waited = 0;
	(void)state;
	/* Nobody would read while it waits. */
	alarm(60);
	while (received < COUNT) {
		struct proxy_message made = message(sent_id);
		int result = sent_id < COUNT ? proxy_socket_send(ends[0], &made, &sent) : 0;
		assert_true(result >= 0);
		if (result) {
			sent_id++;
			sent = 0;
			continue;
		}
		waited++;
		for (int taken = 0; taken < 2 && proxy_socket_receive(ends[1], &inbox) == 1; taken++)
			is_message(&inbox.message, received++);
	}
	assert_true(waited > 1);
	alarm(0);
}

static void *put_all(void *arg)
{
	for (uint32_t id = 0; id < COUNT; id++) {
		const struct proxy_message made = message(id);
		int fds[2];
		if (pipe(fds) < 0)
			return arg;
		if (proxy_socket_put(ends[0], &made, id % 3 ? -1 : fds[0]) < 0)
			return arg;
		(void)!write(fds[1], &id, sizeof(id));
		close(fds[0]);
		close(fds[1]);
	}
	return NULL;
}

/* Each descriptor comes with its message. */
static void with_descriptors(void **state)
{
	pthread_t thread;
	void *failed;
	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, put_all, ends), 0);
	for (uint32_t id = 0; id < COUNT; id++) {
		struct proxy_message got;
		uint32_t told = ~0u;
		int fd;
		assert_int_equal(proxy_socket_await(ends[1], &got, &fd), 0);
		is_message(&got, id);
		assert_int_equal(fd >= 0, id % 3 == 0);
		if (fd < 0)
			continue;
		assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
		assert_int_equal(read(fd, &told, sizeof(told)), sizeof(told));
		assert_int_equal(told, id);
		close(fd);
	}
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
}

static void the_end(void **state)
{
	struct proxy_inbox inbox = { 0 };
	struct proxy_message got = message(1);
	int fd;
	(void)state;
	assert_int_equal(send(ends[0], &got, 7, 0), 7);
	assert_int_equal(proxy_socket_receive(ends[1], &inbox), 0);
	shutdown(ends[0], SHUT_WR);
	assert_int_equal(proxy_socket_receive(ends[1], &inbox), -1);
	assert_int_equal(errno, EBADMSG);
	inbox = (struct proxy_inbox){ 0 };
	assert_int_equal(proxy_socket_receive(ends[1], &inbox), -1);
	assert_int_equal(errno, 0);
	assert_int_equal(proxy_socket_await(ends[1], &got, &fd), -1);
	assert_int_equal(fd, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(byte_by_byte, set_up, tear_down),
		cmocka_unit_test_setup_teardown(as_much_as_there_is_room, set_up, tear_down),
		cmocka_unit_test_setup_teardown(with_descriptors, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_end, set_up, tear_down),
	};
	return cmocka_run_group_tests_name("proxy-socket", tests, NULL, NULL);
}

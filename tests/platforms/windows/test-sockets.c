/* Sockets where Windows answers otherwise than wine does: base/windows/sockets.c with stand-ins for single calls of
 * winsock, each of which stands in once it is told to. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/windows/sockets.h"

#include <cmocka.h>

static bool is_reset;                   /* recv() says so from now on */
static int resets;                      /* so many connections are, before they are accepted */
static bool is_shared;                  /* a port cannot be had alone */
static bool is_full;                    /* nobody can connect */

#define REAL(name) ((void *)GetProcAddress(GetModuleHandleW(L"ws2_32"), name))

static int WSAAPI fake_recv(SOCKET socket, char *bytes, int size, int flags)
{
	int(WSAAPI * real)(SOCKET, char *, int, int) = REAL("recv");
	if (!is_reset)
		return real(socket, bytes, size, flags);
	WSASetLastError(WSAECONNRESET);
	return SOCKET_ERROR;
}

static SOCKET WSAAPI fake_accept(SOCKET socket, struct sockaddr *address, int *size)
{
	SOCKET(WSAAPI * real)(SOCKET, struct sockaddr *, int *) = REAL("accept");
	if (!resets)
		return real(socket, address, size);
	resets--;
	WSASetLastError(WSAECONNRESET);
	return INVALID_SOCKET;
}

static int WSAAPI fake_setsockopt(SOCKET socket, int level, int name, const char *value, int size)
{
	int(WSAAPI * real)(SOCKET, int, int, const char *, int) = REAL("setsockopt");
	if (!is_shared || name != SO_EXCLUSIVEADDRUSE)
		return real(socket, level, name, value, size);
	WSASetLastError(WSAEACCES);
	return SOCKET_ERROR;
}

/* To a port where nobody listens. */
static int WSAAPI fake_connect(SOCKET socket, const struct sockaddr *address, int size)
{
	int(WSAAPI * real)(SOCKET, const struct sockaddr *, int) = REAL("connect");
	struct sockaddr_in other = *(const struct sockaddr_in *)(const void *)address;
	other.sin_port = is_full ? htons(1) : other.sin_port;
	return real(socket, (const struct sockaddr *)&other, size);
}

/* What the import library would define. */
void *__imp_recv = (void *)fake_recv, *__imp_accept = (void *)fake_accept;
void *__imp_setsockopt = (void *)fake_setsockopt, *__imp_connect = (void *)fake_connect;

static int pair(int ends[2])
{
	return system_socketpair(AF_INET, SOCK_STREAM, 0, ends);
}

/* Whoever waits for the end of what the other process said must come to it. */
static void a_reset_is_said_once(void **state)
{
	int ends[2];
	char byte;
	(void)state;
	assert_int_equal(pair(ends), 0);
	is_reset = true;
	assert_int_equal(system_recv(ends[0], &byte, 1, 0), -1);
	assert_int_equal(errno, ECONNRESET);
	for (int i = 0; i < 3; i++)
		assert_int_equal(system_recv(ends[0], &byte, 1, MSG_DONTWAIT), 0);
	is_reset = false;
	socket_close(ends[0]);
	socket_close(ends[1]);
}

static void a_stranger_that_has_gone_is_no_end(void **state)
{
	int ends[2];
	(void)state;
	resets = 5;
	assert_int_equal(pair(ends), 0);
	assert_int_equal(resets, 0);
	socket_close(ends[0]);
	socket_close(ends[1]);
}

static void a_pair_that_cannot_connect_is_not_waited_for(void **state)
{
	int ends[2];
	(void)state;
	is_full = true;
	assert_int_equal(pair(ends), -1);
	assert_int_equal(errno, ECONNREFUSED);
	is_full = false;
}

static void a_port_is_had_alone_or_not(void **state)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = { .s_addr = htonl(INADDR_LOOPBACK) } };
	int fd = system_socket(AF_INET, SOCK_STREAM, 0);
	(void)state;
	is_shared = true;
	assert_int_equal(system_bind(fd, (struct sockaddr *)&address, sizeof(address)), -1);
	assert_int_equal(errno, EACCES);
	is_shared = false;
	assert_int_equal(system_bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	socket_close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reset_is_said_once),
		cmocka_unit_test(a_stranger_that_has_gone_is_no_end),
		cmocka_unit_test(a_pair_that_cannot_connect_is_not_waited_for),
		cmocka_unit_test(a_port_is_had_alone_or_not),
	};
	return cmocka_run_group_tests_name("sockets", tests, NULL, NULL);
}

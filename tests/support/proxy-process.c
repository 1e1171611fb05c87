/* Starting a cordon-proxy: see proxy-process.h. */
#include "proxy-process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* A stream where the program was built for one. */
#ifndef PROXY_SOCKET_TYPE
#define PROXY_SOCKET_TYPE SOCK_SEQPACKET
#endif

static _Noreturn void become(const char *program, int socket, void (*prepare)(long arg), long arg)
{
	static char *const arguments[] = { (char *)(uintptr_t) "cordon-proxy", NULL };
	static char *const environment[] = { NULL };
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (socket == PROXY_FD ? fcntl(PROXY_FD, F_SETFD, 0) < 0 : dup2(socket, PROXY_FD) < 0)
		_exit(99);
	if (prepare)
		prepare(arg);
	execve(program, arguments, environment);
	_exit(98);
}

int proxy_process_start(const char *program, void (*prepare)(long arg), long arg, pid_t *ret_pid)
{
	int sockets[2];
	if (socketpair(AF_UNIX, PROXY_SOCKET_TYPE | SOCK_CLOEXEC, 0, sockets) < 0)
		return -1;
	pid_t pid = vfork();
	if (pid == 0)
		become(program, sockets[1], prepare, arg);
	close(sockets[1]);
	if (pid < 0) {
		close(sockets[0]);
		return -1;
	}
	*ret_pid = pid;
	return sockets[0];
}

int proxy_process_tell(int socket, const struct proxy_message *message, int fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .bytes = { 0 } };
	struct iovec part = { (void *)(uintptr_t)message, sizeof(*message) };
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1 };
	if (fd >= 0) {
		header.msg_control = &control;
		header.msg_controllen = sizeof(control);
		control.header = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
		                                   .cmsg_len = CMSG_LEN(sizeof(int)) };
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(int));
	}
	return sendmsg(socket, &header, MSG_NOSIGNAL) == sizeof(*message) ? 0 : -1;
}

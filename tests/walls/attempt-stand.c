/* What another command of the same session has, for attempts on it: memory, files, sockets, queues, processes. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attempt.h"

#define LEAST_PID 50    /* another command has none so high by itself */

static void tell_hit(int number)
{
	char text[] = "hit 00\n";
	text[4] = (char)('0' + number / 10);
	text[5] = (char)('0' + number % 10);
	if (write(STDOUT_FILENO, text, sizeof(text) - 1) < 0)
		_exit(1);
}

static void set_signals(void (*handler)(int))
{
	for (int number = 1; number < 32; number++)
		if (number != SIGCHLD && number != SIGPIPE)
			signal(number, handler);
}

/* In a process of a high number, which is waited for. */
static int take_number(void)
{
	for (;;) {
		int status;
		pid_t pid = fork_quietly();
		if (pid < 0)
			return -1;
		if (pid == 0 && getpid() >= LEAST_PID)
			return 0;
		if (pid == 0)
			_exit(77);
		if (waitpid(pid, &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 77)
			_exit(1);
	}
}

static int put_file(const char *directory, const char *name, const char *text)
{
	char path[200];
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	int fd = open(path, O_RDWR | O_CREAT, 0666);
	return fd < 0 || write(fd, text, strlen(text)) < 0 ? -1 : fd;
}

static int put_ipc(key_t key, const char *name, const char *text)
{
	int shm = shmget(key, 4096, IPC_CREAT | 0666);
	char *memory = shm < 0 ? (void *)-1 : shmat(shm, NULL, 0);
	if (memory == (void *)-1 || semget(key, 1, IPC_CREAT | 0666) < 0 || msgget(key, IPC_CREAT | 0666) < 0)
		return -1;
	strcpy(memory, text);
	syscall(SYS_mq_open, name, O_RDWR | O_CREAT, 0666, NULL); /* which Landlock does not let everybody do */
	return 0;
}

static int listen_unix(const char *name, bool abstract)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	socklen_t length = sizeof(address);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (abstract) {
		memcpy(address.sun_path + 1, name, strlen(name));
		length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
	} else {
		snprintf(address.sun_path, sizeof(address.sun_path), "/tmp/%s.sock", name);
	}
	return fd < 0 || bind(fd, (struct sockaddr *)&address, length) < 0 || listen(fd, 8) < 0 ? -1 : fd;
}

static int listen_inet(int type, int port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port),
	                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, type, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -1;
	return type == SOCK_STREAM && listen(fd, 8) < 0 ? -1 : fd;
}

static void serve(struct pollfd *sockets, int count, const char *text)
{
	for (;;) {
		if (poll(sockets, (nfds_t)count, -1) < 0)
			continue;
		for (int i = 0; i < count; i++) {
			struct sockaddr_storage from;
			socklen_t length = sizeof(from);
			char asked[64];
			int fd = sockets[i].revents ? accept(sockets[i].fd, NULL, NULL) : -1;
			if (fd >= 0) {
				send(fd, text, strlen(text), MSG_NOSIGNAL);
				close(fd);
			} else if (sockets[i].revents &&
			           recvfrom(sockets[i].fd, asked, sizeof(asked), 0, (void *)&from, &length) >= 0) {
				sendto(sockets[i].fd, text, strlen(text), 0, (void *)&from, length);
			}
		}
	}
}

static void print_namespaces(void)
{
	static const char *const kinds[] = { "pid", "mnt", "ipc", "user", "cgroup", "net", "uts" };
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		char path[64], text[64] = "";
		snprintf(path, sizeof(path), "/proc/self/ns/%s", kinds[i]);
		if (readlink(path, text, sizeof(text) - 1) > 0)
			printf(" ns_%s=%s", kinds[i], text);
	}
}

/* TEXT KEY NAME PORT: has it in all these places, and says where; then stays. Signals it says, too. */
enum answer try_stand(char **arguments)
{
	const char *text = arguments[0], *name = arguments[2];
	int port = atoi(arguments[3]);
	set_signals(SIG_IGN); /* of the one that waits for it, which gets what a whole group is sent */
	if (take_number() < 0)
		return broken("fork");
	set_signals(tell_hit);
	int file = put_file("/tmp", name, text);
	struct pollfd sockets[] = {
		{ .fd = listen_unix(name, true), .events = POLLIN },
		{ .fd = listen_unix(name, false), .events = POLLIN },
		{ .fd = listen_inet(SOCK_STREAM, port), .events = POLLIN },
		{ .fd = listen_inet(SOCK_DGRAM, port), .events = POLLIN },
	};
	for (int i = 0; i < 4; i++)
		if (sockets[i].fd < 0)
			return broken("socket");
	if (file < 0 || put_file("/dev/shm", name, text) < 0 || put_ipc((key_t)atol(arguments[1]), name, text) < 0)
		return broken("ipc");
	char *memory = strdup(text);
	printf("pid=%d fd=%d address=%p", (int)getpid(), file, (void *)memory);
	print_namespaces();
	printf(" standing\n");
	fflush(stdout);
	serve(sockets, 4, text);
	return BROKEN;
}

/* To everybody there is. Who is hit says so. */
enum answer try_signal_all(char **arguments)
{
	(void)arguments;
	kill(-1, SIGURG);
	return CONTAINED;
}

/* The listeners, the queues and the process that attempts are aimed at. */
#define _GNU_SOURCE
#include "guest.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static const char *secret;
static struct pollfd listeners[16];
static nfds_t listening;

static void serve(int fd, bool stream, const char *what)
{
	if (stream)
		checked(listen(fd, 16), what);
	listeners[listening++] = (struct pollfd){ .fd = fd, .events = POLLIN };
}

static void serve_unix(const char *path, int kind, bool abstract)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = (int)checked(socket(AF_UNIX, kind | SOCK_CLOEXEC, 0), "socket");
	memcpy(address.sun_path + abstract, path, strlen(path));
	socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + abstract + strlen(path));
	checked(bind(fd, (struct sockaddr *)&address, length), path);
	if (!abstract)
		chmod(path, 0666);
	serve(fd, kind == SOCK_STREAM, path);
}

static void serve_internet(int family, int kind, int port)
{
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6,
		                    .sin6_port = htons((uint16_t)port),
		                    .sin6_addr = in6addr_loopback };
	int fd = (int)checked(socket(family, kind | SOCK_CLOEXEC, 0), "socket");
	checked(family == AF_INET ? bind(fd, (struct sockaddr *)&four, sizeof(four)) :
	                            bind(fd, (struct sockaddr *)&six, sizeof(six)), "bind");
	serve(fd, kind == SOCK_STREAM, "listen");
}

static void make_queues(const char *unique, int key)
{
	char name[100];
	int shm = (int)checked(shmget(key, 4096, IPC_CREAT | 0666), "shmget");
	char *memory = shmat(shm, NULL, 0);
	if (memory == MAP_FAILED)
		give_up("shmat");
	strcpy(memory, secret);
	checked(semget(key, 1, IPC_CREAT | 0666), "semget");
	checked(msgget(key, IPC_CREAT | 0666), "msgget");
	snprintf(name, sizeof(name), "/cordon-%s", unique);
	checked(mq_open(name, O_CREAT | O_RDWR, 0666, NULL), "mq_open");
	int file = shm_open(name, O_CREAT | O_RDWR, 0666);
	checked(file < 0 ? -1 : write(file, secret, strlen(secret)), "shm_open");
}

/* The victim's own words are shell assignments as well. */
static void make_victim(const char *base)
{
	char path[200], tool[200], address[40] = "";
	int ends[2];
	snprintf(path, sizeof(path), "%s/outside", base);
	snprintf(tool, sizeof(tool), "%s/tools/attempt", base);
	checked(pipe(ends), "pipe");
	pid_t pid = fork();
	if (pid == 0) {
		char variable[100], *words[] = { tool, "victim", (char *)secret, NULL },
				    *environment[] = { variable, NULL };
		snprintf(variable, sizeof(variable), "VICTIM=%s", secret);
		checked(chdir(path), path);
		dup2(ends[1], 1);
		dup2((int)checked(open("secret", O_RDONLY), "secret"), 20);
		execve(tool, words, environment);
		give_up(tool);
	}
	close(ends[1]);
	checked(read(ends[0], address, sizeof(address) - 1), "victim");
	printf("victim=%d\nvictim_fd=20\naddress=%s", (int)pid, address + 2);
}

int world(char **words)
{
	const char *base = words[0], *unique = words[2];
	int port = atoi(words[3]);
	char path[200];
	secret = words[1];
	signal(SIGPIPE, SIG_IGN);
	umask(0);
	make_queues(unique, port);
	make_victim(base);
	serve_internet(AF_INET, SOCK_STREAM, port);
	serve_internet(AF_INET, SOCK_DGRAM, port);
	serve_internet(AF_INET6, SOCK_STREAM, port + 1);
	snprintf(path, sizeof(path), "cordon-%s", unique);
	serve_unix(path, SOCK_STREAM, true);
	static const char *const streams[] = { "outside/socket", "granted/socket", "socket" };
	for (size_t i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%s", base, streams[i]);
		serve_unix(path, SOCK_STREAM, false);
	}
	snprintf(path, sizeof(path), "%s/granted/datagram", base);
	serve_unix(path, SOCK_DGRAM, false);
	snprintf(path, sizeof(path), "%s/granted/fifo", base);
	if (mkfifo(path, 0666) < 0 || open(path, O_RDWR) < 0) /* held open, so that writers find a reader */
		perror(path);
	printf("ready=yes\n");
	fclose(stdout);
	while (poll(listeners, listening, -1) > 0)
		for (nfds_t i = 0; i < listening; i++) {
			char bytes[100];
			struct sockaddr_storage peer;
			socklen_t length = sizeof(peer);
			if (!listeners[i].revents)
				continue;
			int fd = accept(listeners[i].fd, NULL, NULL);
			if (fd >= 0) {
				send(fd, secret, strlen(secret), 0);
				close(fd);
			} else if (recvfrom(listeners[i].fd, bytes, sizeof(bytes), 0, (struct sockaddr *)&peer,
			                    &length) >= 0 &&
			           length) {
				sendto(listeners[i].fd, secret, strlen(secret), 0, (struct sockaddr *)&peer, length);
			}
		}
	return 1;
}

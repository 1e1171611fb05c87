/* What going through the proxy costs: relay CORDON-PROXY [TINYPROXY-PORT TINYPROXY-PID]. One run measures, interleaved,
 * the same transfers over loopback directly, through cordon-proxy, and through tinyproxy where there is one: throughput
 * with 1 and with 50 connections, the proxy's CPU time per GB, setting a connection up, and memory at 1,000
 * connections. A line: WHAT WAY, and a number: GB/s, ms/GB, us or kB. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sample.h"
#include "support/proxy-process.h"

#define ROUNDS 9
#define BYTES ((uint64_t)1 << 30)       /* per round */
#define CHUNK 131072
#define SETUPS 500
#define STARTS 50
#define MANY 1000

enum way { DIRECT, CORDON, TINY, WAY_MAX };
static const char *const way_names[WAY_MAX] = { "direct", "cordon-proxy", "tinyproxy" };

static uint16_t server_port, proxy_ports[WAY_MAX];
static pid_t proxy_pids[WAY_MAX];

static void need(int fine, const char *what)
{
	if (!fine)
		give_up("relay: %s: %s", what, strerror(errno));
}

/* A server is elsewhere. Here it shares the processors: what a host's bbr holds back over loopback slows the direct way
 * down, and its timers run on the time of whoever is there, which is the proxy; and no proxy sends by it to a command.
 */
static int listen_at(uint16_t *ret_port)
{
	static const char control[] = "reno";
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	need(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0 && listen(fd, 4096) == 0, "listen");
	need(setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, control, sizeof(control) - 1) == 0, "TCP_CONGESTION");
	need(getsockname(fd, (struct sockaddr *)&at, &length) == 0, "getsockname");
	*ret_port = ntohs(at.sin_port);
	return fd;
}

/* ---- the server: sends as many bytes as eight bytes say, then waits for the next eight
 * ------------------------------- */

static void *serve(void *arg)
{
	static const char bytes[CHUNK];
	int fd = (int)(intptr_t)arg;
	uint64_t wanted;
	while (recv(fd, &wanted, sizeof(wanted), MSG_WAITALL) == sizeof(wanted))
		while (wanted) {
			ssize_t sent = send(fd, bytes, wanted < CHUNK ? wanted : CHUNK, MSG_NOSIGNAL);
			if (sent <= 0)
				break;
			wanted -= (uint64_t)sent;
		}
	close(fd);
	return NULL;
}

static void start_server(void)
{
	int fd = listen_at(&server_port);
	pid_t pid = fork();
	need(pid >= 0, "fork");
	if (pid) {
		close(fd);
		return;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pthread_attr_t attributes;
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, 65536);
	for (;;) {
		pthread_t thread;
		int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		if (client >= 0 && pthread_create(&thread, &attributes, serve, (void *)(intptr_t)client))
			close(client);
	}
}

/* ---- the proxy -------------------------------------------------------------------------------------------------- */

static void tell(int fd, const struct proxy_message *message, int listener)
{
	need(proxy_process_tell(fd, message, listener) == 0, "sendmsg");
}

static void *read_messages(void *arg)
{
	struct proxy_message message;
	while (recv((int)(intptr_t)arg, &message, sizeof(message), 0) > 0)
		;
	return NULL;
}

/* Returns the supervisor's end of its socket, when it is ready. */
static int start_proxy(const char *program, uint16_t *ret_port, pid_t *ret_pid)
{
	int listener = listen_at(ret_port), socket = proxy_process_start(program, NULL, 0, ret_pid);
	need(socket >= 0, program);
	struct proxy_message message = { .kind = PROXY_SETTINGS };
	message.settings.connections = 2 * MANY;
	message.settings.total_connections = UINT64_MAX;
	message.settings.connect_ms = 10000;
	message.settings.idle_ms = 300000;
	message.settings.header_bytes = 65536;
	tell(socket, &message, -1);
	message = (struct proxy_message){ .kind = PROXY_RULE };
	snprintf(message.host, sizeof(message.host), "127.0.0.1:%u", server_port);
	tell(socket, &message, -1);
	message = (struct proxy_message){ .kind = PROXY_LISTENER };
	message.listener.use = EGRESS_PROXY;
	tell(socket, &message, listener);
	close(listener);
	tell(socket, &(struct proxy_message){ .kind = PROXY_BEGIN }, -1);
	need(recv(socket, &message, sizeof(message), 0) == sizeof(message) && message.kind == PROXY_READY,
	     message.text);
	return socket;
}

static double cpu_s(pid_t pid)
{
	char path[64];
	unsigned long long ns = 0;
	snprintf(path, sizeof(path), "/proc/%d/schedstat", pid);
	FILE *file = fopen(path, "re");
	if (file) {
		need(fscanf(file, "%llu", &ns) == 1, path);
		fclose(file);
	}
	return (double)ns / 1e9;
}

static long rss_kb(pid_t pid)
{
	char line[256], path[64];
	long kb = 0;
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	FILE *file = fopen(path, "re");
	need(file != NULL, path);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "VmRSS: %ld", &kb) == 1)
			break;
	fclose(file);
	return kb;
}

/* ---- the client ------------------------------------------------------------------------------------------------- */

static int dial(enum way way)
{
	static const int on = 1;
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	char text[128];
	at.sin_port = htons(way == DIRECT ? server_port : proxy_ports[way]);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	need(fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0, "connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (way == DIRECT)
		return fd;
	int length = snprintf(text, sizeof(text), "CONNECT 127.0.0.1:%u HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n\r\n",
	                      server_port, server_port);
	need(send(fd, text, (size_t)length, 0) == length, "send");
	size_t used = 0;
	do {
		ssize_t got = recv(fd, text + used, sizeof(text) - 1 - used, 0);
		need(got > 0, "CONNECT");
		used += (size_t)got;
		text[used] = '\0';
	} while (!strstr(text, "\r\n\r\n"));
	need(strstr(text, " 200 ") != NULL, text);
	return fd;
}

/* Seconds for BYTES over so many connections, all open before. */
static double transfer(enum way way, unsigned connections)
{
	static char bytes[CHUNK];
	uint64_t each = BYTES / connections, left = each * connections;
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC), fds[64];
	for (unsigned i = 0; i < connections; i++) {
		struct epoll_event event = { .events = EPOLLIN, .data.fd = fds[i] = dial(way) };
		need(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fds[i], &event) == 0, "epoll_ctl");
	}
	double start = now_us();
	for (unsigned i = 0; i < connections; i++)
		need(send(fds[i], &each, sizeof(each), 0) == sizeof(each), "send");
	while (left) {
		struct epoll_event events[64];
		int count = epoll_wait(epoll_fd, events, 64, 10000);
		need(count > 0, "nothing comes");
		for (int i = 0; i < count; i++) {
			ssize_t got = recv(events[i].data.fd, bytes, sizeof(bytes), MSG_DONTWAIT);
			need(got > 0 || (got < 0 && errno == EAGAIN), "recv");
			left -= got > 0 ? (uint64_t)got : 0;
		}
	}
	double took = (now_us() - start) / 1e6;
	for (unsigned i = 0; i < connections; i++)
		close(fds[i]);
	close(epoll_fd);
	return took;
}

static void measure_transfers(unsigned connections)
{
	double took[WAY_MAX][ROUNDS], cpu[WAY_MAX] = { 0 };
	for (int round = 0; round < ROUNDS; round++)
		for (int way = 0; way < WAY_MAX; way++) {
			if (way != DIRECT && !proxy_ports[way])
				continue;
			double before = way == DIRECT ? 0 : cpu_s(proxy_pids[way]);
			took[way][round] = transfer((enum way)way, connections);
			cpu[way] += way == DIRECT ? 0 : cpu_s(proxy_pids[way]) - before;
		}
	for (int way = 0; way < WAY_MAX; way++) {
		if (way != DIRECT && !proxy_ports[way])
			continue;
		printf("throughput-%u %s\t%.2f\n", connections, way_names[way],
		       (double)BYTES / 1e9 / percentile(took[way], ROUNDS, 0.5));
		if (way == CORDON)
			printf("cpu-%u %s\t%.0f\n", connections, way_names[way],
			       cpu[way] * 1000 / ((double)BYTES / 1e9 * ROUNDS));
	}
}

static void measure_setup(void)
{
	static double took[WAY_MAX][SETUPS];
	static const uint64_t one = 1;
	for (int i = 0; i < SETUPS; i++)
		for (int way = 0; way < WAY_MAX; way++) {
			char byte;
			if (way != DIRECT && !proxy_ports[way])
				continue;
			double start = now_us();
			int fd = dial((enum way)way);
			need(send(fd, &one, sizeof(one), 0) == sizeof(one) && recv(fd, &byte, 1, 0) == 1, "one byte");
			took[way][i] = now_us() - start;
			close(fd);
		}
	for (int way = 0; way < WAY_MAX; way++)
		if (way == DIRECT || proxy_ports[way])
			printf("set-up %s\t%.0f\n", way_names[way], percentile(took[way], SETUPS, 0.5));
}

static void measure_memory(void)
{
	static int fds[MANY];
	long before = rss_kb(proxy_pids[CORDON]);
	for (int i = 0; i < MANY; i++)
		fds[i] = dial(CORDON);
	printf("memory-0 cordon-proxy\t%ld\n", before);
	printf("memory-%d cordon-proxy\t%ld\n", MANY, rss_kb(proxy_pids[CORDON]));
	for (int i = 0; i < MANY; i++)
		close(fds[i]);
}

static void measure_start(const char *program)
{
	double took[STARTS];
	for (int i = 0; i < STARTS; i++) {
		uint16_t port;
		pid_t pid;
		double start = now_us();
		int fd = start_proxy(program, &port, &pid);
		took[i] = now_us() - start;
		close(fd);
		waitpid(pid, NULL, 0);
	}
	printf("start cordon-proxy\t%.0f\n", percentile(took, STARTS, 0.5));
}

int main(int argc, char **argv)
{
	struct rlimit files;
	pthread_t thread;
	if (argc < 2)
		return 2;
	need(getrlimit(RLIMIT_NOFILE, &files) == 0, "getrlimit");
	files.rlim_cur = files.rlim_max;
	need(setrlimit(RLIMIT_NOFILE, &files) == 0, "setrlimit");
	start_server();
	measure_start(argv[1]);
	int fd = start_proxy(argv[1], &proxy_ports[CORDON], &proxy_pids[CORDON]);
	need(pthread_create(&thread, NULL, read_messages, (void *)(intptr_t)fd) == 0, "pthread_create");
	if (argc == 4) {
		proxy_ports[TINY] = (uint16_t)atoi(argv[2]);
		proxy_pids[TINY] = atoi(argv[3]);
	}
	measure_memory();
	measure_setup();
	measure_transfers(1);
	measure_transfers(50);
	return 0;
}

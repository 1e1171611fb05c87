/* `cordon rpc`: the protocol of `cordon serve` on standard input and output. Without --host the server is in this
 * process, at the other end of a pair of sockets, and ends with its one client. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "cordon-internal.h"
#include "door/cli/cli.h"
#include "door/cli/report.h"
#include "door/daemon/server.h"
#include "door/wire/hello.h"

#define PIECE (64u << 10)

static bool write_all(int fd, const char *bytes, size_t length, bool is_socket)
{
	while (length) {
		ssize_t written = is_socket ? send(fd, bytes, length, MSG_NOSIGNAL) : write(fd, bytes, length);
		if (written < 0 && errno != EINTR)
			return false;
		bytes += written > 0 ? written : 0;
		length -= written > 0 ? (size_t)written : 0;
	}
	return true;
}

/* From one to the other, once it is ready. False: there will be no more. */
static bool pass(int from, int to, bool to_socket)
{
	char piece[PIECE];
	ssize_t length = read(from, piece, sizeof(piece));
	return (length < 0 && errno == EINTR) || (length > 0 && write_all(to, piece, (size_t)length, to_socket));
}

/* Until the server has no more to say. After the end of the input it answers what it was asked. */
static void bridge(int fd)
{
	for (bool reads = true;;) {
		struct pollfd ready[] = { { .fd = reads ? STDIN_FILENO : -1, .events = POLLIN },
			                  { .fd = fd, .events = POLLIN } };
		if (poll(ready, 2, -1) < 0 && errno != EINTR)
			return;
		if (ready[1].revents && !pass(fd, STDOUT_FILENO, false))
			return;
		if (ready[0].revents && !pass(STDIN_FILENO, fd, true)) {
			reads = false;
			shutdown(fd, SHUT_WR);
		}
	}
}

struct own_server {
	struct serve_options options;
	struct cordon_error err;
	int status;
};

static void *serve(void *arg)
{
	struct own_server *own = arg;
	own->status = serve_run(&own->options, &own->err);
	/* Where it failed, nobody else closes what it was to serve. */
	if (own->status < 0)
		shutdown(own->options.client_fd, SHUT_RDWR);
	return NULL;
}

static int run_here(const char *config, struct cordon_error *err)
{
	struct own_server own = { .options = { .config = config } };
	int ends[2];
	pthread_t thread;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return fail(err, CORDON_E_INTERNAL, errno, NULL, "a pair of sockets cannot be made");
	own.options.client_fd = ends[1];
	int result = pthread_create(&thread, NULL, serve, &own);
	if (result)
		return fail(err, CORDON_E_RESOURCE_EXHAUSTED, result, NULL, "no thread can be started");
	bridge(ends[0]);
	close(ends[0]);
	pthread_join(thread, NULL);
	if (own.status < 0)
		*err = own.err;
	return own.status;
}

int cli_rpc(char **words)
{
	struct options options;
	struct cordon_error err;
	int status, fd;
	if (!cli_options(COMMAND_RPC, words, 0, &options, &status))
		return status;
	const char *host = options_value(&options, "host"), *config = options_value(&options, "config");
	status = 0;
	signal(SIGPIPE, SIG_IGN);
	int result = host ? hello_connect_to(host, &fd, &err) : run_here(config, &err);
	if (result == 0 && host && fcntl(fd, F_SETFL, 0) < 0)
		result = fail(&err, CORDON_E_INTERNAL, errno, host, "host: the socket cannot be used");
	if (result == 0 && host) {
		bridge(fd);
		close(fd);
	}
	if (result < 0) {
		report_error_to(stderr, &err, false);
		status = STATUS_REFUSED;
	}
	options_free(&options);
	return status;
}

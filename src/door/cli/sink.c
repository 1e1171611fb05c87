/* Nothing here may block while the command runs: a reader that stalls must not keep a timeout or a signal waiting. A
 * pipe that polls writable takes PIPE_BUF bytes. A terminal gives no such promise, and O_NONBLOCK on the caller's
 * would change it for the caller too, so it is opened once more; and so is a pipe, where that is allowed, to write
 * more at once. */
#include "door/cli/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void sink_open(struct sink *sink, int fd, uint64_t kept)
{
	*sink = (struct sink){ .fd = fd, .own_fd = -1 };
	struct stat info;
	bool known = fstat(fd, &info) == 0;
	portion_open(&sink->portion, isatty(fd), kept);
	sink->is_pipe = known && S_ISFIFO(info.st_mode);
	sink->is_file = known && S_ISREG(info.st_mode);
	if (!sink->portion.is_terminal && !sink->is_pipe)
		return;
	char path[32];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	sink->own_fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (sink->own_fd >= 0)
		sink->fd = sink->own_fd;
}

static bool is_writable(const struct sink *sink)
{
	struct pollfd ready = { .fd = sink->fd, .events = POLLOUT };
	return poll(&ready, 1, 0) == 1;
}

/* How much of this what polls writable takes without blocking. */
static size_t at_once(const struct sink *sink, size_t length)
{
	return sink->own_fd < 0 && !sink->is_file && length > PIPE_BUF ? PIPE_BUF : length;
}

void sink_pump(struct sink *sink)
{
	while (sink_waiting(sink) && !sink->held && is_writable(sink)) {
		ssize_t written =
			write(sink->fd, sink->waiting + sink->waiting_from, at_once(sink, sink_waiting(sink)));
		if (written >= 0)
			sink->waiting_from += (size_t)written;
		else if (errno == EAGAIN)
			return;
		else if (errno != EINTR)
			sink->error = errno;
	}
	if (sink->waiting_from == sink->waiting_to)
		sink->waiting_from = sink->waiting_to = 0;
}

static void enqueue(struct sink *sink, const char *data, size_t length)
{
	if (sink->waiting_size - sink->waiting_to < length) {
		size_t used = sink->waiting_to - sink->waiting_from;
		size_t size = (used + length) * 2;
		char *grown = malloc(size);
		if (!grown) {
			sink->error = ENOMEM;
			return;
		}
		if (used)
			memcpy(grown, sink->waiting + sink->waiting_from, used);
		free(sink->waiting);
		sink->waiting = grown;
		sink->waiting_size = size;
		sink->waiting_from = 0;
		sink->waiting_to = used;
	}
	memcpy(sink->waiting + sink->waiting_to, data, length);
	sink->waiting_to += length;
}

void sink_live(struct sink *sink, const void *data, size_t length)
{
	if (sink->error || !(length = portion_live(&sink->portion, length)))
		return;
	enqueue(sink, data, length);
	sink_pump(sink);
}

void sink_write(struct sink *sink, const char *data, size_t length, const sigset_t *waiting)
{
	while (length && !sink->error) {
		struct pollfd ready = { .fd = sink->fd, .events = POLLOUT };
		/* A signal that arrives while it is unblocked ends this process even if there is nothing to wait
		 * for. */
		if (!is_writable(sink) && ppoll(&ready, 1, NULL, waiting) < 0)
			continue;
		ssize_t written = write(sink->fd, data, at_once(sink, length));
		if (written >= 0) {
			data += written;
			length -= (size_t)written;
		} else if (errno != EAGAIN && errno != EINTR) {
			sink->error = errno;
		}
	}
}

void sink_finish(struct sink *sink, const char *kept, size_t length, const sigset_t *waiting)
{
	if (sink_waiting(sink))
		sink_write(sink, sink->waiting + sink->waiting_from, sink_waiting(sink), waiting);
	sink->waiting_from = sink->waiting_to = 0;
	size_t rest = portion_rest(&sink->portion, length);
	if (rest)
		sink_write(sink, kept + length - rest, rest, waiting);
}

void sink_close(struct sink *sink)
{
	if (sink->own_fd >= 0)
		close(sink->own_fd);
	free(sink->waiting);
	sink->own_fd = -1;
	sink->waiting = NULL;
}

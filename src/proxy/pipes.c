/* Pipes: see pipes.h. */
#include "proxy/pipes.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sock_diag.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define IDLE_MAX 4      /* of each size */
/* All pipes of a user together may hold 64 MiB (pipe-user-pages-soft): pipes beyond that are small, and other
 * processes need some, too. */
#define LARGE_MAX 16

static struct pipe *take_idle(struct pipes *pipes, bool is_large)
{
	struct pipe *pipe = pipes->idle[is_large].first;
	if (pipe) {
		pipes->idle[is_large].first = pipe->next;
		pipes->idle[is_large].count--;
	}
	return pipe;
}

static struct pipe *make(void)
{
	struct pipe *pipe = calloc(1, sizeof(*pipe));
	int fds[2];
	if (!pipe)
		return NULL;
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0) {
		free(pipe);
		return NULL;
	}
	*pipe = (struct pipe){ .read_fd = fds[0], .write_fd = fds[1] };
	return pipe;
}

struct pipe *pipes_take(struct pipes *pipes, size_t length)
{
	bool wants_large = length > PIPE_SMALL_SIZE;
	struct pipe *pipe = take_idle(pipes, wants_large);
	if (pipe)
		return pipe;
	if (!wants_large || pipes->large_count == LARGE_MAX) {
		pipe = take_idle(pipes, false);
		return pipe ? pipe : make();
	}
	pipe = make();
	if (pipe && fcntl(pipe->write_fd, F_SETPIPE_SZ, (int)PIPE_LARGE_SIZE) >= (int)PIPE_LARGE_SIZE) {
		pipe->is_large = true;
		pipes->large_count++;
	}
	return pipe;
}

void pipes_give(struct pipes *pipes, struct pipe *pipe)
{
	if (!pipe)
		return;
	if (!pipe->fill && pipes->idle[pipe->is_large].count < IDLE_MAX) {
		pipe->next = pipes->idle[pipe->is_large].first;
		pipes->idle[pipe->is_large].first = pipe;
		pipes->idle[pipe->is_large].count++;
		return;
	}
	pipes->large_count -= pipe->is_large;
	close(pipe->read_fd);
	close(pipe->write_fd);
	free(pipe);
}

ssize_t pipes_splice(int from, int to, size_t length)
{
	ssize_t moved;
	do
		moved = splice(from, NULL, to, NULL, length, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	while (moved < 0 && errno == EINTR);
	return moved < 0 ? -errno : moved;
}

size_t pipes_room(int socket_fd)
{
	uint32_t memory[SK_MEMINFO_VARS];
	socklen_t length = sizeof(memory);
	if (getsockopt(socket_fd, SOL_SOCKET, SO_MEMINFO, memory, &length) < 0 ||
	    length < (SK_MEMINFO_WMEM_QUEUED + 1) * sizeof(*memory))
		return PIPE_LARGE_SIZE; /* before Linux 4.12 */
	uint32_t size = memory[SK_MEMINFO_SNDBUF], used = memory[SK_MEMINFO_WMEM_QUEUED];
	/* Not nothing: only a socket that was offered too much tells when it takes more. */
	return size > used && size - used > PIPE_SMALL_SIZE ? size - used : PIPE_SMALL_SIZE;
}

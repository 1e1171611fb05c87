/* Pipes: see pipes.h. */
#include "proxy/pipes.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define IDLE_MAX 4
/* A megabyte moves twice as fast as 64 KiB do. All pipes of a user together may hold 64 MiB (pipe-user-pages-soft): what
 * is beyond that is small, and not for us alone. */
#define LARGE_SIZE (1 << 20)
#define LARGE_MAX 16

struct pipe *pipes_take(struct pipes *pipes)
{
	struct pipe *pipe = pipes->idle;
	int fds[2];
	if (pipe) {
		pipes->idle = pipe->next;
		pipes->idle_count--;
		return pipe;
	}
	pipe = calloc(1, sizeof(*pipe));
	if (!pipe)
		return NULL;
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0) {
		free(pipe);
		return NULL;
	}
	*pipe = (struct pipe){ .read_fd = fds[0], .write_fd = fds[1] };
	pipe->is_large = pipes->large_count < LARGE_MAX && fcntl(fds[1], F_SETPIPE_SZ, LARGE_SIZE) >= LARGE_SIZE;
	pipes->large_count += pipe->is_large;
	return pipe;
}

void pipes_give(struct pipes *pipes, struct pipe *pipe)
{
	if (!pipe)
		return;
	if (!pipe->fill && pipes->idle_count < IDLE_MAX) {
		pipe->next = pipes->idle;
		pipes->idle = pipe;
		pipes->idle_count++;
		return;
	}
	pipes->large_count -= pipe->is_large;
	close(pipe->read_fd);
	close(pipe->write_fd);
	free(pipe);
}

/* Where nothing can be spliced: see pipes.h. */
#include "proxy/pipes.h"

#include <errno.h>

struct pipe *pipes_take(struct pipes *pipes, size_t length)
{
	(void)pipes;
	(void)length;
	return NULL;
}

void pipes_give(struct pipes *pipes, struct pipe *pipe)
{
	(void)pipes;
	(void)pipe;
}

ssize_t pipes_splice(int from, int to, size_t length)
{
	(void)from;
	(void)to;
	(void)length;
	return -ENOSYS;
}

size_t pipes_room(int socket_fd)
{
	(void)socket_fd;
	return PIPE_LARGE_SIZE;
}

/* The command's output where its reader is slow or gone: held, it is not read, and the pipe's capacity is all that the
 * command can write; closed, it gets what any writer gets whose reader went away. */
#include "driver/linux/supervise-parts.h"

#include <sys/epoll.h>

/* Not watched at all: of a pipe whose writers are gone the kernel tells whatever is asked for. */
static void hold(struct supervision *supervision, int stream, bool hold)
{
	int fd = supervision->stream_fd[stream];
	if (fd < 0 || supervision->stream_held[stream] == hold)
		return;
	supervision->stream_held[stream] = hold;
	if (hold)
		epoll_ctl(supervision->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	else
		supervise_watch(supervision, fd, SOURCE_STDOUT + (unsigned)stream - 1, EPOLLIN);
}

void supervise_hold_output(struct supervision *supervision, enum cordon_stream stream, bool on)
{
	if (supervision->state == SUPERVISE_RUNNING || supervision->state == SUPERVISE_KILLING)
		hold(supervision, (int)stream, on);
}

void output_release(struct supervision *supervision)
{
	hold(supervision, CORDON_STDOUT, false);
	hold(supervision, CORDON_STDERR, false);
}

void supervise_close_output(struct supervision *supervision, enum cordon_stream stream)
{
	if (supervision->options.tty || supervision->stream_fd[stream] < 0)
		return;
	if (!supervision->stream_held[stream])
		epoll_ctl(supervision->epoll_fd, EPOLL_CTL_DEL, supervision->stream_fd[stream], NULL);
	close_fd(&supervision->stream_fd[stream]);
}

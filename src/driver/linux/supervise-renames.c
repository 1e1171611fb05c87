/* The command's renames, as one more thing that a supervision watches. */
#include <sys/epoll.h>

#include "driver/linux/supervise-parts.h"

void supervise_renames(struct supervision *supervision, int listener_fd)
{
	struct renames *renames = supervision->options.renames;
	if (!renames) {
		close(listener_fd);
		return;
	}
	renames_begin(renames, listener_fd);
	/* One that nobody answers would wait for ever. */
	if (supervise_watch(supervision, listener_fd, SOURCE_RENAMES, EPOLLIN) < 0)
		supervise_kill(supervision);
}

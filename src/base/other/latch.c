/* See base/latch.h: a pipe, set by closing the end that is written to. */
#include "base/latch.h"

int latch_open(struct latch *ret_latch)
{
	int ends[2];
	*ret_latch = (struct latch)LATCH_NONE;
	if (pipe(ends) < 0)
		return -1;
	fcntl(ends[0], F_SETFD, FD_CLOEXEC);
	fcntl(ends[1], F_SETFD, FD_CLOEXEC);
	*ret_latch = (struct latch){ ends[0], ends[1] };
	return 0;
}

void latch_set(struct latch *latch)
{
	close_fd(&latch->other);
}

void latch_close(struct latch *latch)
{
	close_fd(&latch->other);
	close_fd(&latch->fd);
}

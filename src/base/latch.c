/* See latch.h. */
#include "base/latch.h"

#include <stdint.h>
#include <sys/eventfd.h>

int latch_open(struct latch *ret_latch)
{
	*ret_latch = (struct latch){ eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), -1 };
	return ret_latch->fd < 0 ? -1 : 0;
}

void latch_set(struct latch *latch)
{
	const uint64_t one = 1;
	(void)!write(latch->fd, &one, sizeof(one));
}

void latch_close(struct latch *latch)
{
	close_fd(&latch->fd);
}

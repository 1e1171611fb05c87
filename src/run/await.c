/* See await.h. */
#include "run/await.h"

#include <errno.h>
#include <poll.h>
#include <sys/wait.h>

bool await_gone(int pidfd, bool wait)
{
	siginfo_t info = { 0 };
	int result;
	do
		result = waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | __WALL | (wait ? 0 : WNOHANG));
	while (result < 0 && errno == EINTR);
	if (result == 0)
		return info.si_pid != 0;
	/* Somebody else's child, a keeper's, or reaped already: then it is gone as well. */
	struct pollfd gone = { .fd = pidfd, .events = POLLIN };
	while ((result = poll(&gone, 1, wait ? -1 : 0)) < 0 && errno == EINTR)
		;
	return result > 0;
}

/* Locks: see lock.h. */
#include "base/lock.h"

#include <errno.h>
#include <stdint.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define FIRST_PAUSE_NS 20000
#define LONGEST_PAUSE_NS 500000

int lock_wait(int fd, int operation, int patience_ms)
{
	struct timespec pause = { .tv_nsec = FIRST_PAUSE_NS };
	for (int64_t waited_ns = 0; flock(fd, operation | LOCK_NB) < 0; waited_ns += pause.tv_nsec) {
		if (errno == EINTR)
			continue;
		if (errno != EWOULDBLOCK || waited_ns >= patience_ms * INT64_C(1000000))
			return -1;
		nanosleep(&pause, NULL);
		if (pause.tv_nsec < LONGEST_PAUSE_NS)
			pause.tv_nsec *= 2;
	}
	return 0;
}

void lock_release(int *fd)
{
	if (*fd < 0)
		return;
	flock(*fd, LOCK_UN);
	close(take_fd(fd));
}

int lock_refused(int number, const char *path, struct cordon_error *err)
{
	fail(err, CORDON_E_RESOURCE_EXHAUSTED, number, path, "the filesystem of cordon's data cannot lock a file");
	return fail_remedy(err, "keep the data on a filesystem with locks: set XDG_DATA_HOME to a directory there");
}

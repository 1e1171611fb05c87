/* Has a command's processes stand still for a moment, so that what they change can be looked at as it is.
 *
 * They are stopped by signal, all but the first, which is init: if the caller dies meanwhile, init ends them as ever. No
 * process that is stopped already is continued; parents are stopped first and continued last, so that they do not see it. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct still_process {
	pid_t pid;
	int fd;
};

struct still {
	struct still_process *list;     /* those that are to be continued; a process before what it started */
	size_t count, capacity;
};

/* False: they do not all stand still, or that cannot be told. Either way it is to be ended, soon. */
bool still_begin(struct still *still, pid_t first);
void still_end(struct still *still);

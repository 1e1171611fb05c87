/* A directory on a filesystem that can be watched (base/host-watch.h): in a container, /tmp may lie on one that cannot.
 */
#pragma once
#include <fcntl.h>
#include <unistd.h>

#include "base/host-watch-claim.h"

static inline const char *local_ground(void)
{
	int fd = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
	bool local = fd >= 0 && host_watch_is_local(fd);
	if (fd >= 0)
		close(fd);
	return local ? "/tmp" : "/dev/shm";
}

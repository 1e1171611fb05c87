/* Shared by host-watch.c and host-watch-way.c only. */
#pragma once
#include <sys/inotify.h>

#include "base/host-watch.h"

#define HOST_WATCH_ANY (IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_DONT_FOLLOW)
#define HOST_WATCH_DIRECTORY (HOST_WATCH_ANY | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR)
#define HOST_WATCH_FILE (HOST_WATCH_ANY | IN_MODIFY | IN_CLOSE_WRITE)

/* What is watched at the end of a path: the file it leads to, the names in that directory, or the link itself. */
enum host_watch_end { HOST_WATCH_END_FILE, HOST_WATCH_END_NAMES, HOST_WATCH_END_LINK };

/* The lock must be held. The watch for this name in the directory (NULL: any; "": the inode itself), or a negative
 * errno. */
int host_watch_claim(struct host_watch_set *watches, const char *path, uint32_t mask, const char *name);
/* Claims every name on the way; -1 if one cannot be watched. */
int host_watch_claim_way(struct host_watch_set *watches, const char *path, enum host_watch_end end);
/* Takes the lock. Does nothing if the set is not watching. */
void host_watch_way(struct host_watch_set *watches, const char *path, enum host_watch_end end);
/* True on a filesystem that changes through this kernel alone. */
bool host_watch_is_local(int fd);

/* What vigil.c and vigil-way.c are to each other. */
#pragma once
#include <sys/inotify.h>

#include "base/vigil.h"

#define VIGIL_ANY (IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_DONT_FOLLOW)
#define VIGIL_DIRECTORY (VIGIL_ANY | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR)
#define VIGIL_FILE (VIGIL_ANY | IN_MODIFY | IN_CLOSE_WRITE)

/* What matters of a path's end: what it leads to, which names that has in it, or the end itself where it is a link. */
enum vigil_end { VIGIL_END_FILE, VIGIL_END_NAMES, VIGIL_END_LINK };

/* With the vigil's lock. The watch, for this name in the directory (NULL: any; "": the inode itself), or a negative errno. */
int vigil_claim(struct vigil_post *post, const char *path, uint32_t mask, const char *name);
/* Claims what is on the way; -1 where that cannot be. */
int vigil_claim_way(struct vigil_post *post, const char *path, enum vigil_end end);
/* Takes the lock, where the post watches at all. */
void vigil_watch_way(struct vigil_post *post, const char *path, enum vigil_end end);
/* Is it on a filesystem that changes by this kernel's calls alone? */
bool vigil_is_local(int fd);

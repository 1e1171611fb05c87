/* Filesystems by which the kernel is looked at and steered, and where they are mounted. Who grants a directory grants
 * what is mounted beneath it, too. What root owns there is asked for by nothing else: a command of a root caller,
 * whose owner it has, could change the machine by it. And the groups of any caller are its own to write. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"

/* The type of one that is mounted beneath this path, which is resolved, or at it; NULL: none is. A negative errno: the
 * table of mounts could not be read, so one may be. */
int kernel_mounts_beneath(const char *path, const char **ret_type) must_check;
/* Another number after every mount and unmount, and where the root is another one. */
uint64_t kernel_mounts_version(void);
/* The same for who asked a moment ago, and is where it was. */
uint64_t kernel_mounts_version_again(void);
/* Forgets what was found. */
void kernel_mounts_forget(void);

/* A hard limit on what a directory holds, kept by its filesystem: where projects have quotas that are enforced, and
 * the caller may set them, the directory becomes a project of its own while it is empty, and all that is made in it is
 * of that project. More than it may hold is refused to whoever writes (EDQUOT). A command cannot leave the project:
 * the kernel lets nobody in a user namespace do that, and the seal (profile/syscalls.def) nobody at all. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define QUOTA_TEXT "project quota"

/* Whether the limit holds from now on. It does not if quotas are off, or the directory belongs to a project of another
 * maker, or was not empty when it was first seen. Then nothing is changed. */
bool quota_hold(int dir_fd, uint64_t most_bytes);
/* What is in use, of a directory whose limit holds. */
bool quota_used(int dir_fd, uint64_t *ret_bytes);

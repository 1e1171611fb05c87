/* The remains of ended commands: inits that have reported or have nothing left to do and are exiting, and descriptors.
 * The kernel takes a while to tear down their namespaces; callers need not wait for that, but the backlog is bounded,
 * every init is reaped, and its control group removed. */
#pragma once
#include <stddef.h>

struct cgroup;

/* Takes the pidfd, and the group's leaf if it has one. */
void linger_add(int pidfd, struct cgroup *group);
/* Takes descriptors that are no longer needed, and closes them later, so that a caller that waits for a result does
 * not wait for that. */
void linger_close(int *const fds[], size_t size);
/* Reaps what is gone, and closes. For when there is nothing else to do, such as while the next command runs. */
void linger_sweep(void);
/* Waits until none is left. */
void linger_settle(void);

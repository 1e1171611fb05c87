/* What ended commands leave: inits that have reported, and others that have nothing left to do, on their way out, and descriptors.
 * The kernel takes a while to take their namespaces down; nobody has to wait for that, but the backlog is bounded, every one is
 * reaped, and its control group removed. */
#pragma once
#include <stddef.h>

struct cgroup;

/* Takes the pidfd, and the group's leaf if it has one. */
void linger_add(int pidfd, struct cgroup *group);
/* Takes descriptors that nobody needs any more, and closes them later: who waits for a result does not wait for that. */
void linger_close(int *const fds[], size_t size);
/* Reaps what is gone, and closes. For when there is nothing else to do, such as while the next command runs. */
void linger_sweep(void);
/* Waits until none is left. */
void linger_settle(void);

/* Inits that have reported, and others that have nothing left to do, on their way out. The kernel takes a while to take their
 * namespaces down; nobody has to wait for that, but the backlog is bounded, every one is reaped, and its control group removed. */
#pragma once

struct cgroup;

/* Takes the pidfd, and the group's leaf if it has one. */
void linger_add(int pidfd, struct cgroup *group);
/* Reaps what is gone. For when there is nothing else to do, such as while the next command runs. */
void linger_sweep(void);
/* Waits until none is left. */
void linger_settle(void);

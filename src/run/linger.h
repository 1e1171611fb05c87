/* Inits that have reported and are on their way out. The kernel takes a while to take their namespaces down; nobody
 * has to wait for that, but the backlog is bounded and every one is reaped. */
#pragma once

/* Takes the pidfd. */
void linger_add(int pidfd);
/* Waits until none is left. */
void linger_settle(void);

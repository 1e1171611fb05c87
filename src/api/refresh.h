/* Hosts and ports that a session was granted, or that were taken back, for what already runs in its sandbox in this
 * process. */
#pragma once
#include "cordon.h"

/* Of this session, at once. What cannot be done is left to its next command, which says so. */
void refresh_session(struct cordon *cordon, const char *session_id);
/* Of those whose record or configuration has changed since this was called last. */
void refresh_changed(struct cordon *cordon);

/* Id-mapped mounts for a root caller: root's files appear inside as the unprivileged user's. */
#pragma once

/* Who a root caller's command is, on the host and as seen inside. The former is from the range Debian and systemd leave
 * unassigned; nothing on the host belongs to it. */
#define IDMAP_OUTSIDE 65530u
#define IDMAP_INSIDE 1000u

/* A user namespace that maps root (0) on disk to IDMAP_OUTSIDE; made once per process, borrowed. -1 if it cannot be. */
int idmap_namespace(void);

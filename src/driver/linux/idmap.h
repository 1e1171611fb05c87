/* Id-mapped mounts for a root caller: the caller's files appear inside as the unprivileged user's. */
#pragma once
#include <sys/types.h>

/* The ids of a root caller's command, on the host and as seen inside. The former is from the range that Debian and
 * systemd leave unassigned; nothing on the host belongs to it. */
#define IDMAP_OUTSIDE 65530u
#define IDMAP_INSIDE 1000u

/* A user namespace that maps this owner on disk to IDMAP_OUTSIDE; the last few are kept, and borrowed. -1 if it cannot
 * be had. */
int idmap_namespace(uid_t uid, gid_t gid);

/* A leaf that is made by a thread of its own, from when its bounds are known until it is wanted; and removed by it, where somebody is
 * going to wait for that. */
#pragma once
#include "run/cgroup.h"

struct cgroup_ahead;

/* The texts in `search` are borrowed. The thread ends when it has made it, or stays to remove it. NULL where none can be had: then
 * it is made when it is taken. */
struct cgroup_ahead *cgroup_ahead_begin(const struct cgroup_search *search, const struct cgroup_bounds *bounds, bool stays);
/* Once. As cgroup_make() does it, where this is not what was begun; `ahead` may be NULL. */
void cgroup_ahead_take(struct cgroup_ahead *ahead, const struct cgroup_search *search, const struct cgroup_bounds *bounds,
                       struct cgroup *ret_group);
/* Init has reported: what was taken is to be removed. Takes the group, where the thread stays for that and init is not in it. */
void cgroup_ahead_leave(struct cgroup_ahead *ahead, struct cgroup *group);
/* Waits for the thread, and removes what was not taken. NULL is allowed. */
void cgroup_ahead_end(struct cgroup_ahead *ahead);

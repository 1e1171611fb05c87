/* What makes the list of operations and what puts it in order share. Everything returns NULL or -1 when memory is
 * short. */
#pragma once
#include "profile/profile.h"

struct mount_op *mounts_add(struct arena *arena, struct mount_plan *plan, enum mount_kind kind, const char *target,
                            const char *source, unsigned flags);
/* `size` UINT64_MAX: any. */
int mounts_add_scratch(struct arena *arena, struct mount_plan *plan, const char *target, uint64_t size, unsigned mode,
                       unsigned flags);
/* A mount point for `target`, unless the last mount planned there brings it along; what is in memory brings nothing. */
int mounts_add_point(struct arena *arena, struct mount_plan *plan, const char *target, bool is_directory);

/* `exec` is MOUNT_NO_EXEC where only listed programs may start, else 0. */
int mounts_add_host(struct arena *arena, const struct profile_input *input, struct mount_plan *plan, unsigned exec);
int mounts_add_proc(struct arena *arena, const struct profile_input *input, struct mount_plan *plan);
int mounts_add_devices(struct arena *arena, const struct profile_input *input, struct mount_plan *plan, unsigned exec);
int mounts_add_tmp(struct arena *arena, const struct profile_input *input, struct mount_plan *plan, unsigned exec);
/* /run, with the user's directory in it. */
int mounts_add_run(struct arena *arena, const struct profile_input *input, struct mount_plan *plan, unsigned exec);
/* Is /var/tmp a place of its own, and not a link to /tmp? */
bool mounts_has_var_tmp(const struct profile_input *input);
int mounts_add_home(struct arena *arena, const struct profile_input *input, struct mount_plan *plan, unsigned exec);
/* Package caches of the host, each under a layer of its own. */
int mounts_add_caches(struct arena *arena, const struct profile_input *input, struct mount_plan *plan, unsigned exec);
/* Files of /etc that are made up: accounts, and with a network of listed hosts what leads names to the proxy. */
int mounts_add_texts(struct arena *arena, const struct profile_input *input, struct mount_plan *plan);
/* The latter over the host's own, where a view or a grant shows those. */
int mounts_replace_texts(struct arena *arena, const struct profile_input *input, struct mount_plan *plan);
/* Places that programs expect to exist, with nothing of the host's in them. */
int mounts_add_points(struct arena *arena, const struct profile_input *input, struct mount_plan *plan);
/* With all of the host in view there is no place for mount points: what is private covers what is there. */
int mounts_add_covers(struct arena *arena, const struct profile_input *input, struct mount_plan *plan);

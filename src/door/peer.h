/* Who is at the other end of a connection, and whether a command of theirs would be the same here. */
#pragma once
#include <sched.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#define PEER_GROUPS_MAX 1024

struct peer {
	char mount_space[64], net_space[64];
	gid_t gid, groups[PEER_GROUPS_MAX];
	int group_count;                /* negative: not known */
	int priority;
	cpu_set_t processors;
	struct rlimit limits[RLIM_NLIMITS];
};

/* Ourselves. False: this cannot be told. */
bool peer_ourselves(struct peer *ret_peer);
/* Is it our own user, from where the same files have the same names? *ret_pid: its process. */
bool peer_is_welcome(const struct peer *ourselves, int fd, pid_t *ret_pid);
/* What a command has of whoever starts it, and no request says: is it ours, too? */
bool peer_is_alike(const struct peer *ourselves, int fd, pid_t pid);

/* Who is at the other end of a connection, and whether a command of theirs would be the same here. */
#pragma once
#include <sched.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#define PEER_GROUPS_MAX 1024

/* What a process may do at most, as far as the kernel tells it of others. */
struct peer_rights {
	unsigned long long permitted, bounding;         /* capabilities */
	unsigned long long no_new_privs, seccomp, filters;
	unsigned depth;                                 /* of its namespace of processes below ours */
	char user_space[64], root[64];
};

struct peer {
	char mount_space[64], net_space[64];
	struct peer_rights rights;
	gid_t gid, groups[PEER_GROUPS_MAX];
	int group_count;                /* negative: not known */
	int priority, policy, io_priority;
	long oom_score;
	cpu_set_t processors;
	struct rlimit limits[RLIM_NLIMITS];
};

/* Ourselves. False: this cannot be told. */
bool peer_ourselves(struct peer *ret_peer);
/* Is it our own user, from where the same files have the same names? *ret_pid: its process. */
bool peer_is_welcome(const struct peer *ourselves, int fd, pid_t *ret_pid);
/* Is it kept from something that we are not, or can that not be told? Nothing is to be done for such a one. */
bool peer_is_confined(const struct peer *ourselves, int fd, pid_t pid);
/* What a command has of whoever starts it, and no request says: is it ours, too? */
bool peer_is_alike(const struct peer *ourselves, int fd, pid_t pid);

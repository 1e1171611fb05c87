/* Compares the process at the other end of a connection with this one.
 *
 * A command that the daemon starts has the daemon's namespaces, privileges, limits and priorities. It must not have
 * more than its client would give it, and by `cordon run` it must have exactly what its client would give it. One
 * table in peer.c says what is compared, how it is read, and what a difference means; both protocols of the daemon use
 * it. */
#pragma once
#include <sched.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#define PEER_GROUPS_MAX 1024
#define PEER_ROWS 23

/* What one row of the table has read. */
union peer_value {
	char name[64];
	long long number;
	unsigned long long bits;
	cpu_set_t processors;
	struct rlimit limits[RLIM_NLIMITS];
	struct {
		size_t count;
		gid_t own, ids[PEER_GROUPS_MAX];
	} groups;
};

struct peer {
	union peer_value values[PEER_ROWS];
};

enum peer_difference {
	PEER_SAME,
	PEER_OTHER,     /* a command that the daemon starts would be another one, but would not have more */
	PEER_LESS,      /* the client has less than the daemon, or this cannot be determined */
};

/* Reads this process. False: /proc or a system call does not return what is to be compared. */
bool peer_read_self(struct peer *ret_self);
/* Has the client the same user as this process? *ret_pid: its process, 0 if that is in a pid namespace that cannot be
 * seen from here. */
bool peer_is_own_user(int fd, pid_t *ret_pid);
/* The greatest difference between this process and the client's. *ret_what names it, a constant; NULL: PEER_SAME. */
enum peer_difference peer_compare(const struct peer *self, int fd, pid_t pid, const char **ret_what);

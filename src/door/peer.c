/* Peers: see peer.h. All of it is asked of the kernel, about the process that connected. */
#include "door/peer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The name of a process's namespace, or "". */
static void read_space(pid_t pid, const char *kind, char name[64])
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, kind);
	ssize_t length = readlink(path, name, 63);
	name[length > 0 ? length : 0] = '\0';
}

static int read_priority(pid_t pid)
{
	errno = 0;
	int priority = getpriority(PRIO_PROCESS, (id_t)pid);
	return errno ? PRIO_MAX + 1 : priority;
}

/* How many descriptors there may be now is everybody's own affair, and a daemon's to raise; only how high that can go is not. */
static bool read_limits(pid_t pid, struct rlimit limits[RLIM_NLIMITS])
{
	for (int i = 0; i < RLIM_NLIMITS; i++)
		if (prlimit(pid, i, NULL, &limits[i]) < 0)
			return false;
	limits[RLIMIT_NOFILE].rlim_cur = limits[RLIMIT_NOFILE].rlim_max;
	return true;
}

bool peer_ourselves(struct peer *ret_peer)
{
	struct peer peer = { .gid = getegid(), .priority = read_priority(getpid()) };
	read_space(getpid(), "mnt", peer.mount_space);
	read_space(getpid(), "net", peer.net_space);
	peer.group_count = getgroups(PEER_GROUPS_MAX, peer.groups);
	if (!*peer.mount_space || sched_getaffinity(0, sizeof(peer.processors), &peer.processors) < 0 ||
	    !read_limits(0, peer.limits))
		return false;
	*ret_peer = peer;
	return true;
}

bool peer_is_welcome(const struct peer *ourselves, int fd, pid_t *ret_pid)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);
	char space[64];
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0 || peer.uid != geteuid() || peer.pid <= 0)
		return false;
	read_space(peer.pid, "mnt", space);
	*ret_pid = peer.pid;
	return !strcmp(space, ourselves->mount_space);
}

static bool has_our_groups(const struct peer *ourselves, int fd)
{
	struct ucred peer;
	socklen_t length = sizeof(peer), size = sizeof(ourselves->groups);
	gid_t groups[PEER_GROUPS_MAX];
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0 || peer.gid != ourselves->gid ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) < 0 || ourselves->group_count < 0)
		return false;
	return size == (size_t)ourselves->group_count * sizeof(*groups) && !memcmp(groups, ourselves->groups, size);
}

bool peer_is_alike(const struct peer *ourselves, int fd, pid_t pid)
{
	struct rlimit limits[RLIM_NLIMITS] = { { 0 } };
	cpu_set_t processors;
	char space[64];
	if (read_priority(pid) != ourselves->priority || sched_getaffinity(pid, sizeof(processors), &processors) < 0 ||
	    !CPU_EQUAL(&processors, &ourselves->processors) || !read_limits(pid, limits) ||
	    memcmp(limits, ourselves->limits, sizeof(limits)) != 0)
		return false;
	read_space(pid, "net", space);
	return !strcmp(space, ourselves->net_space) && has_our_groups(ourselves, fd);
}

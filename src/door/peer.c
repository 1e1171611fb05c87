/* Peers: see peer.h. All of it is asked of the kernel, about the process that connected. */
#include "door/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/ioprio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/compat.h"

#define STATUS_MAX (32u << 10)  /* with as many groups as are compared */

/* Where a link of a process leads, or "". */
static void read_link(pid_t pid, const char *which, char name[64])
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, which);
	ssize_t length = readlink(path, name, 63);
	name[length > 0 ? length : 0] = '\0';
}

static bool read_text(pid_t pid, const char *which, char *text, size_t size)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, which);
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, text, size);
	if (length <= 0 || (size_t)length == size)
		return false;
	text[length] = '\0';
	return true;
}

/* What a line of it says, or "": a kernel without such a thing has none. */
static const char *status_line(const char *text, const char *name)
{
	const char *line = strstr(text, name);
	return line ? line + strlen(name) : "";
}

static bool read_rights(pid_t pid, struct peer_rights *ret_rights)
{
	char text[STATUS_MAX];
	/* Its name is escaped in it, and cannot look like a line. */
	if (!read_text(pid, "status", text, sizeof(text)))
		return false;
	struct peer_rights rights = {
		.permitted = strtoull(status_line(text, "\nCapPrm:\t"), NULL, 16),
		.bounding = strtoull(status_line(text, "\nCapBnd:\t"), NULL, 16),
		.no_new_privs = strtoull(status_line(text, "\nNoNewPrivs:\t"), NULL, 10),
		.seccomp = strtoull(status_line(text, "\nSeccomp:\t"), NULL, 10),
		.filters = strtoull(status_line(text, "\nSeccomp_filters:\t"), NULL, 10),
	};
	for (const char *at = status_line(text, "\nNSpid:\t"); *at && *at != '\n'; at++)
		rights.depth += *at == '\t';
	read_link(pid, "ns/user", rights.user_space);
	read_link(pid, "root", rights.root);
	*ret_rights = rights;
	return *rights.user_space && *rights.root;
}

static int read_priority(pid_t pid)
{
	errno = 0;
	int priority = getpriority(PRIO_PROCESS, (id_t)pid);
	return errno ? PRIO_MAX + 1 : priority;
}

static int read_io_priority(pid_t pid)
{
	return (int)syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, pid);
}

/* LONG_MAX: not known. */
static long read_oom_score(pid_t pid)
{
	char text[32];
	return read_text(pid, "oom_score_adj", text, sizeof(text)) ? strtol(text, NULL, 10) : LONG_MAX;
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
	struct peer peer = { .gid = getegid(), .priority = read_priority(getpid()), .policy = sched_getscheduler(getpid()),
		             .io_priority = read_io_priority(getpid()), .oom_score = read_oom_score(getpid()) };
	read_link(getpid(), "ns/mnt", peer.mount_space);
	read_link(getpid(), "ns/net", peer.net_space);
	peer.group_count = getgroups(PEER_GROUPS_MAX, peer.groups);
	if (!*peer.mount_space || sched_getaffinity(0, sizeof(peer.processors), &peer.processors) < 0 ||
	    !read_limits(0, peer.limits) || !read_rights(getpid(), &peer.rights))
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
	read_link(peer.pid, "ns/mnt", space);
	*ret_pid = peer.pid;
	return !strcmp(space, ourselves->mount_space);
}

/* Is that still the process which connected, and not another that has its number now? Older kernels do not tell. */
static bool is_still_there(int fd)
{
	auto_close int process = -1;
	socklen_t length = sizeof(process);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &process, &length) < 0)
		return errno == ENOPROTOOPT;
	return syscall(SYS_pidfd_send_signal, process, 0, NULL, 0) == 0;
}

/* Landlock is not told of; but who is not root has no_new_privs for it. */
bool peer_is_confined(const struct peer *ourselves, int fd, pid_t pid)
{
	const struct peer_rights *ours = &ourselves->rights;
	struct peer_rights theirs;
	if (!read_rights(pid, &theirs) || !is_still_there(fd))
		return true;
	return ours->permitted & ~theirs.permitted || ours->bounding & ~theirs.bounding ||
	       theirs.no_new_privs > ours->no_new_privs || theirs.seccomp != ours->seccomp || theirs.filters != ours->filters ||
	       theirs.depth != ours->depth || strcmp(theirs.user_space, ours->user_space) || strcmp(theirs.root, ours->root);
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
	/* Who is to be ended before others stays so; the other way a command is only ended sooner. */
	if (sched_getscheduler(pid) != ourselves->policy || read_io_priority(pid) != ourselves->io_priority ||
	    read_oom_score(pid) > ourselves->oom_score)
		return false;
	if (read_priority(pid) != ourselves->priority || sched_getaffinity(pid, sizeof(processors), &processors) < 0 ||
	    !CPU_EQUAL(&processors, &ourselves->processors) || !read_limits(pid, limits) ||
	    memcmp(limits, ourselves->limits, sizeof(limits)) != 0)
		return false;
	read_link(pid, "ns/net", space);
	return !strcmp(space, ourselves->net_space) && has_our_groups(ourselves, fd) && !peer_is_confined(ourselves, fd, pid);
}

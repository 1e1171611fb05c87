/* Peers: see peer.h. All of it is asked of the kernel, about the process that connected.
 *
 * Not in the table, because the kernel does not tell it of another process: Landlock domains. A process without
 * CAP_SYS_ADMIN has no_new_privs for one, and that is compared. */
#include "door/daemon/peer.h"

#include <errno.h>
#include <fcntl.h>
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

struct source {
	pid_t pid;
	int directory_fd;       /* /proc/PID */
	int socket;             /* to the process; -1: it is this one */
	char status[STATUS_MAX];
};

/* ---- how a value is read ---------------------------------------------------------------------------------------- */

/* Where a link leads. A kernel without this kind of namespace has no link: then the name is empty for every process. */
static bool read_link(const struct source *source, const char *link, union peer_value *ret_value)
{
	ssize_t length = readlinkat(source->directory_fd, link, ret_value->name, sizeof(ret_value->name) - 1);
	ret_value->name[length > 0 ? length : 0] = '\0';
	return length > 0 || errno == ENOENT;
}

/* A line of /proc/PID/status; 0 where the kernel has no such line. The name of the process is escaped there and cannot
 * look like one. */
static bool read_status(const struct source *source, const char *line, int base, unsigned long long *ret_number)
{
	const char *at = strstr(source->status, line);
	*ret_number = at ? strtoull(at + strlen(line), NULL, base) : 0;
	return true;
}

static bool read_bits(const struct source *source, const char *line, union peer_value *ret_value)
{
	return read_status(source, line, 16, &ret_value->bits);
}

static bool read_count(const struct source *source, const char *line, union peer_value *ret_value)
{
	unsigned long long number;
	read_status(source, line, 10, &number);
	ret_value->number = (long long)number;
	return true;
}

static bool read_text(const struct source *source, const char *name, char *text, size_t size)
{
	auto_close int fd = openat(source->directory_fd, name, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, text, size);
	if (length <= 0 || (size_t)length == size)
		return false;
	text[length] = '\0';
	return true;
}

static bool read_number(const struct source *source, const char *name, union peer_value *ret_value)
{
	char text[32];
	if (!read_text(source, name, text, sizeof(text)))
		return false;
	ret_value->number = strtoll(text, NULL, 10);
	return true;
}

static bool read_priority(const struct source *source, const char *unused, union peer_value *ret_value)
{
	(void)unused;
	errno = 0;
	ret_value->number = getpriority(PRIO_PROCESS, (id_t)source->pid);
	return !errno;
}

static bool read_policy(const struct source *source, const char *unused, union peer_value *ret_value)
{
	(void)unused;
	ret_value->number = sched_getscheduler(source->pid);
	return ret_value->number >= 0;
}

/* -1 where the kernel has no priorities of this kind. */
static bool read_io_priority(const struct source *source, const char *unused, union peer_value *ret_value)
{
	(void)unused;
	ret_value->number = syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, source->pid);
	return ret_value->number >= 0 || errno == ENOSYS;
}

static bool read_processors(const struct source *source, const char *unused, union peer_value *ret_value)
{
	(void)unused;
	return sched_getaffinity(source->pid, sizeof(ret_value->processors), &ret_value->processors) == 0;
}

/* The soft limit of descriptors is any process's to raise, and the daemon does; only the hard one is compared. */
static bool read_limits(const struct source *source, const char *unused, union peer_value *ret_value)
{
	struct rlimit *limits = ret_value->limits;
	(void)unused;
	for (int i = 0; i < RLIM_NLIMITS; i++)
		if (prlimit(source->pid, i, NULL, &limits[i]) < 0)
			return false;
	limits[RLIMIT_NOFILE].rlim_cur = limits[RLIMIT_NOFILE].rlim_max;
	return true;
}

static bool read_groups(const struct source *source, const char *unused, union peer_value *ret_value)
{
	struct ucred peer;
	socklen_t length = sizeof(peer), size = sizeof(ret_value->groups.ids);
	(void)unused;
	if (source->socket < 0) {
		int count = getgroups(PEER_GROUPS_MAX, ret_value->groups.ids);
		ret_value->groups.own = getegid();
		ret_value->groups.count = count > 0 ? (size_t)count : 0;
		return count >= 0;
	}
	if (getsockopt(source->socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0 ||
	    getsockopt(source->socket, SOL_SOCKET, SO_PEERGROUPS, ret_value->groups.ids, &size) < 0)
		return false;
	ret_value->groups.own = peer.gid;
	ret_value->groups.count = size / sizeof(gid_t);
	return true;
}

/* ---- what a difference means ------------------------------------------------------------------------------------ */

static enum peer_difference compare_names(const union peer_value *ours, const union peer_value *theirs)
{
	return strcmp(ours->name, theirs->name) ? PEER_LESS : PEER_SAME;
}

static enum peer_difference compare_numbers(const union peer_value *ours, const union peer_value *theirs)
{
	return ours->number != theirs->number ? PEER_LESS : PEER_SAME;
}

/* A client that has more capabilities is served: a command has none, whoever starts it. */
static enum peer_difference compare_bits(const union peer_value *ours, const union peer_value *theirs)
{
	return ours->bits & ~theirs->bits ? PEER_LESS : PEER_SAME;
}

/* Values of which a higher one means less for the command. A daemon with a higher one serves nevertheless:
 * no_new_privs is set for the command in any case, and a command with the daemon's oom_score_adj is only ended
 * sooner. */
static enum peer_difference compare_burden(const union peer_value *ours, const union peer_value *theirs)
{
	return theirs->number > ours->number ? PEER_LESS : PEER_SAME;
}

static enum peer_difference compare_priority(const union peer_value *ours, const union peer_value *theirs)
{
	return theirs->number > ours->number ? PEER_LESS : theirs->number < ours->number ? PEER_OTHER : PEER_SAME;
}

/* Every process may set its own, but for that of real time. */
static enum peer_difference compare_io_priority(const union peer_value *ours, const union peer_value *theirs)
{
	if (ours->number == theirs->number)
		return PEER_SAME;
	return ours->number >= 0 && IOPRIO_PRIO_CLASS(ours->number) == IOPRIO_CLASS_RT ? PEER_LESS : PEER_OTHER;
}

static enum peer_difference compare_processors(const union peer_value *ours, const union peer_value *theirs)
{
	cpu_set_t common;
	if (CPU_EQUAL(&ours->processors, &theirs->processors))
		return PEER_SAME;
	CPU_AND(&common, &ours->processors, &theirs->processors);
	return CPU_EQUAL(&common, &ours->processors) ? PEER_OTHER : PEER_LESS;
}

static enum peer_difference compare_limits(const union peer_value *ours, const union peer_value *theirs)
{
	enum peer_difference difference = PEER_SAME;
	for (int i = 0; i < RLIM_NLIMITS; i++) {
		const struct rlimit *our = &ours->limits[i], *their = &theirs->limits[i];
		if (their->rlim_cur < our->rlim_cur || their->rlim_max < our->rlim_max)
			return PEER_LESS;
		if (their->rlim_cur != our->rlim_cur || their->rlim_max != our->rlim_max)
			difference = PEER_OTHER;
	}
	return difference;
}

static bool has_group(const union peer_value *value, gid_t id)
{
	bool has = value->groups.own == id;
	for (size_t i = 0; i < value->groups.count && !has; i++)
		has = value->groups.ids[i] == id;
	return has;
}

static enum peer_difference compare_groups(const union peer_value *ours, const union peer_value *theirs)
{
	size_t count = ours->groups.count;
	if (ours->groups.own == theirs->groups.own && count == theirs->groups.count &&
	    !memcmp(ours->groups.ids, theirs->groups.ids, count * sizeof(gid_t)))
		return PEER_SAME;
	bool has_all = has_group(theirs, ours->groups.own);
	for (size_t i = 0; i < count && has_all; i++)
		has_all = has_group(theirs, ours->groups.ids[i]);
	return has_all ? PEER_OTHER : PEER_LESS;
}

/* ---- the table -------------------------------------------------------------------------------------------------- */

static const struct row {
	const char *what;
	bool (*read)(const struct source *source, const char *name, union peer_value *ret_value);
	const char *name;       /* of the link, the line or the file in /proc/PID */
	enum peer_difference (*compare)(const union peer_value *ours, const union peer_value *theirs);
} rows[] = {
	{ "mount namespace", read_link, "ns/mnt", compare_names },
	{ "user namespace", read_link, "ns/user", compare_names },
	{ "process namespace", read_link, "ns/pid", compare_names },
	{ "process namespace of its children", read_link, "ns/pid_for_children", compare_names },
	{ "network namespace", read_link, "ns/net", compare_names },
	{ "ipc namespace", read_link, "ns/ipc", compare_names },
	{ "uts namespace", read_link, "ns/uts", compare_names },
	{ "cgroup namespace", read_link, "ns/cgroup", compare_names },
	{ "time namespace", read_link, "ns/time", compare_names },
	{ "time namespace of its children", read_link, "ns/time_for_children", compare_names },
	{ "root directory", read_link, "root", compare_names },
	{ "capabilities", read_bits, "\nCapPrm:\t", compare_bits },
	{ "capability bounding set", read_bits, "\nCapBnd:\t", compare_bits },
	{ "no_new_privs", read_count, "\nNoNewPrivs:\t", compare_burden },
	{ "seccomp mode", read_count, "\nSeccomp:\t", compare_numbers },
	{ "seccomp filters", read_count, "\nSeccomp_filters:\t", compare_numbers },
	{ "groups", read_groups, NULL, compare_groups },
	{ "resource limits", read_limits, NULL, compare_limits },
	{ "processors", read_processors, NULL, compare_processors },
	{ "scheduling policy", read_policy, NULL, compare_numbers },
	{ "priority", read_priority, NULL, compare_priority },
	{ "io priority", read_io_priority, NULL, compare_io_priority },
	{ "oom_score_adj", read_number, "oom_score_adj", compare_burden },
};
_Static_assert(ARRAY_SIZE(rows) == PEER_ROWS, "struct peer has a value for every row");

static bool open_source(struct source *source, pid_t pid, int socket)
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	source->pid = pid;
	source->socket = socket;
	source->directory_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return source->directory_fd >= 0 && read_text(source, "status", source->status, sizeof(source->status));
}

bool peer_read_self(struct peer *ret_self)
{
	struct source source;
	bool known = open_source(&source, getpid(), -1);
	for (size_t i = 0; i < ARRAY_SIZE(rows) && known; i++)
		known = rows[i].read(&source, rows[i].name, &ret_self->values[i]);
	cleanup_close(&source.directory_fd);
	return known;
}

bool peer_is_own_user(int fd, pid_t *ret_pid)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0 || peer.uid != geteuid())
		return false;
	*ret_pid = peer.pid;
	return true;
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

enum peer_difference peer_compare(const struct peer *self, int fd, pid_t pid, const char **ret_what)
{
	enum peer_difference greatest = PEER_SAME;
	struct source source;
	union peer_value theirs;
	const char *what = NULL;
	bool known = open_source(&source, pid, fd);
	for (size_t i = 0; i < ARRAY_SIZE(rows) && known && greatest != PEER_LESS; i++) {
		enum peer_difference difference = rows[i].read(&source, rows[i].name, &theirs)
			? rows[i].compare(&self->values[i], &theirs) : PEER_LESS;
		if (difference > greatest) {
			greatest = difference;
			what = rows[i].what;
		}
	}
	cleanup_close(&source.directory_fd);
	/* Last: only then is what was read that process's. */
	if (!known || !is_still_there(fd)) {
		greatest = PEER_LESS;
		what = "its process is gone or cannot be read";
	}
	*ret_what = what;
	return greatest;
}

/* Version 1: a tree for each controller. Processes may live anywhere in it, so leaves are made in the caller's own
 * group, whose limits go on to hold for them. There is no call to be born inside: the command's process writes itself
 * into each leaf, by the file that takes a single thread, because moving whole processes waits for every processor.
 * Its init does not: what moves to another group waits for a turn there, and init is the first to be waited for; and
 * so a leaf can be removed before it is gone.
 *
 * Killing needs no freezer: with the limit on processes at 0 nothing new can be started. A pause does not freeze here:
 * the freezer of version 1 is a tree of its own, and what is frozen in it cannot be killed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "driver/linux/cgroup-file.h"
#include "driver/linux/cgroup.h"

#define BIT(wall) (UINT32_C(1) << CORDON_WALL_##wall)
#define PERIOD_US 100000
#define SOCKETS_SHARE 8

enum { MEMORY, PIDS, CPU };

static const struct {
	const char *controller;
	uint32_t wall;
} parts[] = {
	[MEMORY] = { "memory", BIT(LIMIT_MEMORY) },
	[PIDS] = { "pids", BIT(LIMIT_PROCESSES) },
	[CPU] = { "cpu", BIT(LIMIT_CPU) },
};
_Static_assert(ARRAY_SIZE(parts) == CGROUP_PARTS, "a part for each controller");

/* The caller's own group in this controller's tree; where that is not visible, the root of what is. */
static int open_own(const struct cgroup_search *search, const char *self, const char *controller, char path[static 512])
{
	const char *own = cgroup_file_own(self, controller);
	if (!own)
		return -1;
	int length = (int)strcspn(own, "\n");
	/* Cut off, it would be another group's. */
	if (snprintf(path, 512, "%s/%s%.*s", search->root, controller, length > 1 ? length : 0, own) >= 512)
		return -1;
	/* Without permission to write there, as is usual, no other place is tried. */
	int found = faccessat(AT_FDCWD, path, W_OK, AT_EACCESS);
	if (found < 0 && errno == ENOENT) {
		snprintf(path, 512, "%s/%s", search->root, controller);
		found = faccessat(AT_FDCWD, path, W_OK, AT_EACCESS);
	}
	auto_close int dir = found < 0 ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir >= 0 && cgroup_file_version(dir) == 1 ? take_fd(&dir) : -1;
}

static bool find(const struct cgroup_search *search, const char *self, struct cgroup_place *place)
{
	char path[512];
	if (search->directory)
		return false;
	for (int part = MEMORY; part < CGROUP_PARTS; part++) {
		place->parts[part] = open_own(search, self, parts[part].controller, path);
		if (place->parts[part] < 0)
			continue;
		place->offers |= parts[part].wall;
		if (!*place->path)
			snprintf(place->path, sizeof(place->path), "%s", path);
	}
	if (!(place->offers & (BIT(LIMIT_MEMORY) | BIT(LIMIT_PROCESSES))))
		snprintf(place->why, sizeof(place->why), "this user may write to no group of memory or pids in %.160s",
		         search->root);
	return place->offers & (BIT(LIMIT_MEMORY) | BIT(LIMIT_PROCESSES));
}

/* ---- a leaf ----------------------------------------------------------------------------------------------------- */

/* The period is 100 ms unless it was changed for the whole machine. */
static bool limit_cpu(int leaf, uint64_t percent)
{
	return cgroup_file_write_number(leaf, "cpu.cfs_quota_us", percent * (PERIOD_US / 100)) == 0;
}

/* What sockets hold is counted apart, and only where that has a limit: senders are held back by it, none is ended.
 * Without, there is one for the whole machine, which a single command could use up. */
static bool limit_memory(int leaf, uint64_t bytes)
{
	if (cgroup_file_write_number(leaf, "memory.limit_in_bytes", bytes) < 0)
		return false;
	cgroup_file_write_number(leaf, "memory.kmem.tcp.limit_in_bytes", bytes / SOCKETS_SHARE);
	/* Memory and swap together. Missing where the kernel does not count swap. */
	cgroup_file_write_number(leaf, "memory.memsw.limit_in_bytes", bytes);
	return true;
}

static void limit(struct cgroup *group, const struct cgroup_bounds *bounds)
{
	if (group->parts[MEMORY] >= 0 && bounds->memory_bytes &&
	    limit_memory(group->parts[MEMORY], bounds->memory_bytes))
		group->held |= BIT(LIMIT_MEMORY);
	if (group->parts[PIDS] >= 0 && bounds->processes &&
	    cgroup_file_write_number(group->parts[PIDS], "pids.max", bounds->processes) == 0)
		group->held |= BIT(LIMIT_PROCESSES);
	if (group->parts[CPU] >= 0 && bounds->cpu_percent && limit_cpu(group->parts[CPU], bounds->cpu_percent))
		group->held |= BIT(LIMIT_CPU);
}

static void open_joins(struct cgroup *group)
{
	for (int part = MEMORY; part < CGROUP_PARTS; part++)
		if (group->parts[part] >= 0)
			group->joins[part] = openat(group->parts[part], "tasks", O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
}

/* Where all of the leaf's processes are listed. */
static int any_part(const struct cgroup *group)
{
	return group->parts[PIDS] >= 0 ? group->parts[PIDS] : group->parts[MEMORY];
}

static bool kill_all(struct cgroup *group)
{
	if (group->parts[PIDS] >= 0)
		cgroup_file_write(group->parts[PIDS], "pids.max", "0");
	return cgroup_file_kill_listed(any_part(group));
}

const struct cgroup_ops cgroup_v1 = {
	.name = "cgroup v1",
	.find = find,
	.limit = limit,
	.open_joins = open_joins,
	.kill = kill_all,
	.outside = 1,
	.lesser = { CPU, "cpu.shares", "128" },
	/* The time, where the two controllers share a tree, as they mostly do. */
	.counters = {
		[CGROUP_MEMORY_PEAK] = { MEMORY, "memory.max_usage_in_bytes", NULL, 1 },
		[CGROUP_OOM_KILLS] = { MEMORY, "memory.oom_control", "oom_kill", 1 },
		[CGROUP_PROCESS_PEAK] = { PIDS, "pids.peak", NULL, 1 },
		[CGROUP_PROCESS_REFUSALS] = { PIDS, "pids.events", "max", 1 },
		[CGROUP_CPU_TIME] = { CPU, "cpuacct.usage", NULL, 1000 },
	},
};

/* Version 1: a tree for each controller. Processes may live anywhere in it, so leaves are made in the caller's own
 * group, whose limits go on to hold for them. There is no call to be born inside: the command's process writes itself into each
 * leaf, by the file that takes a single thread, because moving whole processes waits for every processor. Its init does not: what
 * moves to another group waits for a turn there, and init is the first to be waited for; and so a leaf can be removed before it is
 * gone.
 *
 * Killing needs no freezer: with the limit on processes at 0 nothing new can be started. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "run/cgroup-file.h"
#include "run/cgroup.h"

#define BIT(wall) (UINT32_C(1) << CORDON_WALL_##wall)
#define PERIOD_US 100000
#define SOCKETS_SHARE 8
#define MOVED_MAX 64                    /* at a time: somebody may wait for us */

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
	/* Who may not write there, as most, has nothing else to look for. */
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

/* The period is 100 ms unless somebody changed it for the whole machine. */
static bool limit_cpu(int leaf, uint64_t percent)
{
	return cgroup_file_write_number(leaf, "cpu.cfs_quota_us", percent * (PERIOD_US / 100)) == 0;
}

/* What sockets hold is counted apart, and only where that has a limit: senders are held back by it, none is ended. Without,
 * there is one for the whole machine, which a single command could use up. */
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

static int set_state(const struct cgroup *group, const char *state)
{
	return cgroup_file_write(group->aside, "freezer.state", state);
}

static bool kill_all(struct cgroup *group)
{
	if (group->parts[PIDS] >= 0)
		cgroup_file_write(group->parts[PIDS], "pids.max", "0");
	/* What stands still dies when it is let go; killed before, it does nothing else. */
	if (group->aside >= 0) {
		cgroup_file_kill_once(any_part(group));
		set_state(group, "THAWED");
	}
	return cgroup_file_kill_listed(any_part(group));
}

/* ---- standing still ---------------------------------------------------------------------------------------------- */

/* The freezer's own tree, where the caller is. */
static int open_freezer(const struct cgroup_search *search)
{
	const struct cgroup_search here = { .root = search->root ? search->root : CGROUP_ROOT,
	                                    .self = search->self ? search->self : CGROUP_SELF };
	uncleared char self[8192], path[512];
	return cgroup_file_read(AT_FDCWD, here.self, self, sizeof(self)) < 0 ? -1 : open_own(&here, self, "freezer", path);
}

static void adopt(struct cgroup *group, const struct cgroup_search *search)
{
	auto_close int freezer = open_freezer(search);
	snprintf(group->aside_name, sizeof(group->aside_name), "%s", group->name);
	group->aside = freezer < 0 ? -1 : cgroup_file_open_own(freezer, group->name);
}

static bool make_aside(struct cgroup *group, const struct cgroup_search *search)
{
	auto_close int freezer = open_freezer(search);
	if (freezer < 0 || mkdirat(freezer, group->name, 0700) < 0)
		return false;
	adopt(group, search);
	if (group->aside < 0)
		unlinkat(freezer, group->name, AT_REMOVEDIR);
	return group->aside >= 0;
}

/* Who was in there when it was let go last stands still from now on; init, which may be about to let them go for good, is not
 * contradicted later. */
static bool freeze_ready(struct cgroup *group, const struct cgroup_search *search, int ret_release[static 2])
{
	if (group->aside < 0 && !make_aside(group, search))
		return false;
	auto_close int list = openat(group->aside, "cgroup.procs", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	auto_close int state = openat(group->aside, "freezer.state", O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	if (list < 0 || state < 0 || set_state(group, "FROZEN") < 0)
		return false;
	ret_release[0] = take_fd(&list);
	ret_release[1] = take_fd(&state);
	return true;
}

static int compare(const void *one, const void *other)
{
	pid_t left = *(const pid_t *)one, right = *(const pid_t *)other;
	return (left > right) - (left < right);
}

/* Of those who are not there yet, some. A process is moved as a whole, and none of it can start another meanwhile: what it started
 * before is in the list by the next look, and what it starts after is born there. */
static int move_some(const struct cgroup *group, pid_t init)
{
	auto_free pid_t *all = NULL, *there = NULL;
	int count = cgroup_file_processes(any_part(group), &all), there_count = cgroup_file_processes(group->aside, &there), moved = 0;
	if (count < 0 || there_count < 0)
		return -1;
	if (there)
		qsort(there, (size_t)there_count, sizeof(*there), compare);
	for (int i = 0; i < count && moved < MOVED_MAX; i++)
		if (all[i] > 0 && all[i] != init && !(there && bsearch(&all[i], there, (size_t)there_count, sizeof(*there), compare))) {
			/* One that has ended is no more; anything else is tried again. */
			cgroup_file_write_number(group->aside, "cgroup.procs", (uint64_t)all[i]);
			moved++;
		}
	return moved;
}

static int freeze(struct cgroup *group, pid_t init, bool refuse)
{
	if (refuse && group->parts[PIDS] >= 0)
		cgroup_file_write(group->parts[PIDS], "pids.max", "0");
	int moved = move_some(group, init);
	return moved > 0 ? 1 : moved;
}

static bool thaw(struct cgroup *group, pid_t init)
{
	(void)init;
	if (group->parts[PIDS] >= 0 && group->bounds.processes)
		cgroup_file_write_number(group->parts[PIDS], "pids.max", group->bounds.processes);
	else if (group->parts[PIDS] >= 0)
		cgroup_file_write(group->parts[PIDS], "pids.max", "max");
	return set_state(group, "THAWED") == 0;
}

const struct cgroup_ops cgroup_v1 = {
	.name = "cgroup v1",
	.find = find,
	.limit = limit,
	.open_joins = open_joins,
	.kill = kill_all,
	.outside = 1,
	.freeze_ready = freeze_ready,
	.freeze = freeze,
	.thaw = thaw,
	.adopt = adopt,
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

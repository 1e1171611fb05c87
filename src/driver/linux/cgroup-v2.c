/* Version 2: one tree. Processes live in its leaves only, so a place is never the caller's own group (unless that is
 * the root) but one above it: the nearest that we may write to and whose children can have every limit. For root that
 * is the slice its session is in, for an ordinary user a group that systemd delegated to its user manager, and for
 * anybody a directory named by the configuration. Only the place itself is changed, and only by letting its children
 * have the controllers that were let down to it. The caller is never moved. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "driver/linux/cgroup-file.h"
#include "driver/linux/cgroup.h"

#define BIT(wall) (UINT32_C(1) << CORDON_WALL_##wall)
#define PERIOD_US 100000
#define CANDIDATES_MAX 32
/* Reclaim begins this much below the limit. Not further: a command whose memory cannot be reclaimed is slowed down
 * more the further it is above, and would then time out instead of being killed for want of memory. */
#define HIGH_SHARE 128

static const struct {
	const char *name, *enable;
	uint32_t wall;
} controllers[] = {
	{ "memory", "+memory", BIT(LIMIT_MEMORY) },
	{ "pids", "+pids", BIT(LIMIT_PROCESSES) },
	{ "cpu", "+cpu", BIT(LIMIT_CPU) },
};

/* What a place should offer; the first that some place does is taken. */
static const uint32_t wanted[] = {
	BIT(LIMIT_MEMORY) | BIT(LIMIT_PROCESSES) | BIT(LIMIT_CPU),
	BIT(LIMIT_MEMORY) | BIT(LIMIT_PROCESSES),
	BIT(LIMIT_MEMORY),
	BIT(LIMIT_PROCESSES),
};

static uint32_t listed(int dir, const char *file)
{
	char text[512];
	uint32_t walls = 0;
	if (cgroup_file_read(dir, file, text, sizeof(text)) <= 0)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(controllers); i++)
		if (cgroup_file_has_word(text, controllers[i].name))
			walls |= controllers[i].wall;
	return walls;
}

/* One by one: a single write of several fails as a whole for one that is refused. */
static uint32_t enable(int dir, uint32_t walls)
{
	uint32_t enabled = listed(dir, "cgroup.subtree_control");
	for (size_t i = 0; i < ARRAY_SIZE(controllers); i++)
		if ((walls & controllers[i].wall & ~enabled) &&
		    cgroup_file_write(dir, "cgroup.subtree_control", controllers[i].enable) == 0)
			enabled |= controllers[i].wall;
	return enabled;
}

/* Moving a process from beside to beneath it takes writing to its cgroup.procs, too. Nothing whole can be put beneath
 * one that is split by threads. */
static bool is_writable(int dir)
{
	char type[32];
	if (faccessat(dir, ".", W_OK, AT_EACCESS) < 0 || faccessat(dir, "cgroup.procs", W_OK, AT_EACCESS) < 0)
		return false;
	return cgroup_file_read(dir, "cgroup.type", type, sizeof(type)) <= 0 || !strcmp(type, "domain\n");
}

static int open_directory(int dir, const char *path)
{
	return openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

static bool no_place(struct cgroup_place *place, const char *why, const char *subject)
{
	snprintf(place->why, sizeof(place->why), "%s: %.160s", why, subject);
	return false;
}

static bool take_place(struct cgroup_place *place, int *dir, const char *root, const char *path, uint32_t offers)
{
	place->parts[0] = take_fd(dir);
	place->offers = offers;
	snprintf(place->path, sizeof(place->path), "%.100s%.400s", root, path);
	return true;
}

/* The configuration names this directory: it is used for whatever it can hold, if it can be written. */
static bool find_named(const char *path, struct cgroup_place *place)
{
	auto_close int dir = open_directory(AT_FDCWD, path);
	if (dir < 0)
		return no_place(place, strerror(errno), path);
	if (cgroup_file_version(dir) != 2)
		return no_place(place, "this is not a directory of cgroup version 2", path);
	if (!is_writable(dir))
		return no_place(place, "this user may not write to it", path);
	return take_place(place, &dir, path, "", enable(dir, listed(dir, "cgroup.controllers")));
}

/* The group that the caller is in, by its path in the tree; false where it cannot be told. */
static bool find_own(const char *self, char path[static 4096])
{
	const char *line = !strncmp(self, "0::/", 4) ? self : strstr(self, "\n0::/");
	line = line && *line == '\n' ? line + 1 : line;
	/* Outside the root of our view of the tree: it cannot be written. */
	if (!line || !strncmp(line + 3, "/..", 3))
		return false;
	snprintf(path, 4096, "%.*s", (int)strcspn(line + 3, "\n"), line + 3);
	return true;
}

/* A group above the caller's, by how much of the path leads there. */
struct candidate {
	size_t length;
	uint32_t offers;
};

/* From the nearest on, as far as there is permission to write. */
static size_t find_candidates(int root, const char *own, struct candidate found[static CANDIDATES_MAX])
{
	char path[4096];
	size_t count = 0;
	snprintf(path, sizeof(path), "%s", own);
	do {
		*strrchr(path, '/') = '\0';
		auto_close int dir = open_directory(root, *path ? path + 1 : ".");
		if (dir < 0 || !is_writable(dir))
			break;
		found[count++] = (struct candidate){ strlen(path), listed(dir, "cgroup.controllers") };
	} while (*path && count < CANDIDATES_MAX);
	return count;
}

static bool choose(int root, const char *root_path, const char *own, struct cgroup_place *place)
{
	struct candidate found[CANDIDATES_MAX];
	size_t count = find_candidates(root, own, found);
	for (size_t i = 0; i < ARRAY_SIZE(wanted) * count; i++) {
		const struct candidate *candidate = &found[i % count];
		uint32_t want = wanted[i / count];
		char path[4096];
		if ((candidate->offers & want) != want)
			continue;
		snprintf(path, sizeof(path), "%.*s", (int)candidate->length, own);
		auto_close int dir = open_directory(root, *path ? path + 1 : ".");
		if (dir >= 0 && (enable(dir, want) & want) == want)
			return take_place(place, &dir, root_path, path, want);
	}
	return no_place(place, count ? "no controller for limits is let down to the groups above the caller's own"
	                             : "this user may not write to the group above the caller's own", own);
}

static bool find(const struct cgroup_search *search, const char *self, struct cgroup_place *place)
{
	char unified[512], own[4096];
	const char *root_path = search->root;
	if (search->directory)
		return find_named(search->directory, place);
	/* A controller is in one tree only. */
	if (cgroup_file_own(self, "memory") && cgroup_file_own(self, "pids"))
		return no_place(place, "memory and pids are in trees of version 1", search->self);
	auto_close int root = open_directory(AT_FDCWD, root_path);
	if (root >= 0 && cgroup_file_version(root) != 2) {
		/* Beside trees of version 1. */
		snprintf(unified, sizeof(unified), "%s/unified", root_path);
		root_path = unified;
		int inner = open_directory(root, "unified");
		close(root);
		root = inner;
	}
	if (root < 0 || cgroup_file_version(root) != 2)
		return no_place(place, "no cgroup of version 2 is mounted there", search->root);
	if (!find_own(self, own))
		return no_place(place, "the caller's own group is not visible", search->self);
	return choose(root, root_path, own, place);
}

/* ---- a leaf ----------------------------------------------------------------------------------------------------- */

static bool limit_cpu(int leaf, uint64_t percent)
{
	char text[64];
	snprintf(text, sizeof(text), "%llu %d", (unsigned long long)percent * (PERIOD_US / 100), PERIOD_US);
	return cgroup_file_write(leaf, "cpu.max", text) == 0;
}

static void limit(struct cgroup *group, const struct cgroup_bounds *bounds)
{
	int leaf = group->parts[0];
	if (bounds->memory_bytes && cgroup_file_write_number(leaf, "memory.max", bounds->memory_bytes) == 0)
		group->held |= BIT(LIMIT_MEMORY);
	if (bounds->processes && cgroup_file_write_number(leaf, "pids.max", bounds->processes + bounds->at_birth) == 0)
		group->held |= BIT(LIMIT_PROCESSES);
	if (bounds->cpu_percent && limit_cpu(leaf, bounds->cpu_percent))
		group->held |= BIT(LIMIT_CPU);
}

static void open_joins(struct cgroup *group)
{
	group->joins[0] = openat(group->parts[0], "cgroup.procs", O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	group->born = group->parts[0];
}

static void entered(struct cgroup *group)
{
	int leaf = group->parts[0];
	if (group->held & BIT(LIMIT_MEMORY)) {
		cgroup_file_write_number(leaf, "memory.high",
		                         group->bounds.memory_bytes - group->bounds.memory_bytes / HIGH_SHARE);
		/* Missing where the kernel does not count swap. */
		cgroup_file_write(leaf, "memory.swap.max", "0");
	}
}

static bool kill_in(int leaf)
{
	if (cgroup_file_write(leaf, "cgroup.kill", "1") == 0)
		return true;
	/* Before Linux 5.14: nothing more can be started, and what there is is killed one by one. */
	cgroup_file_write(leaf, "pids.max", "0");
	return cgroup_file_kill_listed(leaf);
}

/* Frozen processes are killed as well. */
static bool kill_all(struct cgroup *group)
{
	bool killed = kill_in(group->parts[0]);
	return (group->aside < 0 || kill_in(group->aside)) && killed;
}

/* ---- standing still ---------------------------------------------------------------------------------------------- */

static void remove_aside(struct cgroup *group)
{
	char path[CGROUP_NAME_SIZE + 4];
	snprintf(path, sizeof(path), "../%s", group->aside_name);
	if (unlinkat(group->aside, path, AT_REMOVEDIR) == 0)
		close(take_fd(&group->aside));
}

/* Like any other leaf for the sweep: with a name of its own, and locked. */
static bool make_aside(struct cgroup *group)
{
	char path[CGROUP_NAME_SIZE + 4];
	cgroup_name(group->aside_name);
	snprintf(path, sizeof(path), "../%s", group->aside_name);
	if (faccessat(group->parts[0], "cgroup.freeze", W_OK, AT_EACCESS) < 0 ||
	    mkdirat(group->parts[0], path, 0700) < 0)
		return false;
	group->aside = cgroup_file_open_own(group->parts[0], path);
	if (group->aside >= 0 && flock(group->aside, LOCK_EX | LOCK_NB) == 0)
		return true;
	if (group->aside >= 0)
		remove_aside(group);
	else
		unlinkat(group->parts[0], path, AT_REMOVEDIR);
	return false;
}

/* In this order init is never frozen. */
static bool thaw(struct cgroup *group, pid_t init)
{
	if (cgroup_file_write(group->parts[0], "cgroup.freeze", "0") < 0)
		return false;
	if (init > 0 && !group->bounds.without_init &&
	    cgroup_file_write_number(group->parts[0], "cgroup.procs", (uint64_t)init) == 0)
		remove_aside(group);
	return true;
}

static bool freeze(struct cgroup *group, pid_t init)
{
	if (group->bounds.without_init)
		return cgroup_file_write(group->parts[0], "cgroup.freeze", "1") == 0;
	if ((group->aside < 0 && !make_aside(group)) ||
	    cgroup_file_write_number(group->aside, "cgroup.procs", (uint64_t)init) < 0)
		return false;
	if (cgroup_file_write(group->parts[0], "cgroup.freeze", "1") == 0)
		return true;
	thaw(group, init);
	return false;
}

const struct cgroup_ops cgroup_v2 = {
	.name = "cgroup v2",
	.find = find,
	.limit = limit,
	.open_joins = open_joins,
	.entered = entered,
	.kill = kill_all,
	.freeze = freeze,
	.thaw = thaw,
	.lesser = { 0, "cpu.weight", "12" },
	.counters = {
		[CGROUP_MEMORY_PEAK] = { 0, "memory.peak", NULL, 1 },
		[CGROUP_OOM_KILLS] = { 0, "memory.events", "oom_kill", 1 },
		[CGROUP_PROCESS_PEAK] = { 0, "pids.peak", NULL, 1 },
		[CGROUP_PROCESS_REFUSALS] = { 0, "pids.events", "max", 1 },
		[CGROUP_CPU_TIME] = { 0, "cpu.stat", "usage_usec", 1 },
	},
};

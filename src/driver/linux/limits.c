/* The limits on a command's whole tree: a control group holds them if there is one; otherwise memory is watched, and
 * rlimits hold the rest. Afterwards: which limit ended it, and what it used. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "driver/linux/quota.h"
#include "driver/linux/running.h"

/* Memory is counted in batches: a limit may be met this much below it. */
#define NEAR_SHARE 16
/* Of disk space, what is too little to be given out. */
#define SPENT_BYTES (UINT64_C(64) << 10)

/* What home and /tmp of a session with a quota on its workspace may hold beyond the limit. */
#define BESIDE_QUOTA_BYTES (UINT64_C(1) << 20)
/* Of a command's memory, what the kernel needs until its program is loaded, and for each mount. */
#define START_BYTES (UINT64_C(512) << 10)
#define WALL_BYTES UINT64_C(1024)

/* Those that a control group can hold. Disk space is watched by the supervisor, and held by a filesystem that can. */
static const enum cordon_wall walls[] = { CORDON_WALL_LIMIT_MEMORY, CORDON_WALL_LIMIT_PROCESSES,
	                                  CORDON_WALL_LIMIT_CPU };

/* What raises the walls is in the group, too: init, and what a driver needs besides. The reaper of a session's command
 * is not. */
static unsigned helpers(const struct linux_running *running)
{
	const struct linux_driver *driver = linux_driver(running->sandbox->sandbox.driver);
	return running->sandbox->shared ? 0 : driver->helpers ? driver->helpers : 1;
}

/* At birth there is one more for root: the process that becomes another user. */
static struct cgroup_bounds bounds_of(const struct linux_running *running)
{
	const struct profile *profile = running->command->profile;
	const struct limits *limits = &profile->limits;
	bool shared = running->sandbox->shared;
	return (struct cgroup_bounds){
		.memory_bytes = profile->walls & WALL_BIT(LIMIT_MEMORY) ? limits->memory_bytes : 0,
		.cpu_percent = profile->walls & WALL_BIT(LIMIT_CPU) ? limits->cpu_percent : 0,
		.processes = profile->walls & WALL_BIT(LIMIT_PROCESSES) ? limits->processes + helpers(running) : 0,
		.at_birth = geteuid() == 0 && !shared,
		.without_init = shared,
	};
}

/* A quota is none for a process with the capability to ignore it, or that may say of which project a file is. */
static bool hold_disk(const struct linux_running *running, const struct disk_options *options)
{
	const uint32_t needed = WALL_BIT(PRIVILEGES) | WALL_BIT(KERNEL_SURFACE);
	return !options->growth && (running->command->profile->walls & needed) == needed &&
	       quota_hold(options->roots[0], options->most_bytes);
}

static void watch_disk(struct linux_running *running)
{
	const struct command *command = running->command;
	struct disk_options options = {
		.roots = { command->disk_roots[0], command->disk_roots[1], command->disk_roots[2],
		           command->disk_roots[3] },
		.most_bytes = command->profile->limits.disk_bytes,
		.growth = command->disk_growth,
	};
	running->quota = hold_disk(running, &options);
	/* A workspace that is full is told so, and not ended for the little that lies in home and /tmp besides. */
	if (running->quota)
		options.most_bytes += BESIDE_QUOTA_BYTES;
	disk_watch_begin(&running->disk, &options);
}

/* What lies in memory inside: /tmp, /dev/shm, a home; layers of caches, which are one filesystem. */
static void watch_memory(struct linux_running *running)
{
	const struct profile *profile = running->command->profile;
	const char *targets[MEMORY_WATCH_MOUNTS];
	size_t count = 0, layered = 0;
	for (size_t i = 0; i < profile->mounts.count && count < ARRAY_SIZE(targets); i++)
		if (profile->mounts.ops[i].kind == MOUNT_SCRATCH ||
		    (profile->mounts.ops[i].kind == MOUNT_LAYER && !profile->layers && !layered++))
			targets[count++] = profile->mounts.ops[i].target;
	memory_watch_begin(&running->memory, profile->limits.memory_bytes, targets, count);
}

int linux_limits_begin(struct linux_running *running, struct cordon_error *err)
{
	const struct profile *profile = running->command->profile;
	struct cgroup_search search = { .directory = profile->cgroup };
#ifdef CORDON_UNWALL
	/* Removing a group also ends what is left in it. */
	if (!(profile->walls & WALL_BIT(LIFETIME)))
		search.directory = CGROUP_NONE;
#endif
	const struct cgroup_bounds bounds = bounds_of(running);
	if (profile->walls & WALL_BIT(LIMIT_DISK))
		watch_disk(running);
	cgroup_make(&search, &bounds, &running->group);
	cgroup_enter(&running->group, &running->launch);
	if (profile->walls & ~running->group.held & WALL_BIT(LIMIT_MEMORY))
		watch_memory(running);
	return driver_limit(running, &running->launch, err);
}

void linux_limits_started(struct linux_running *running)
{
	cgroup_entered(&running->group);
}

void linux_limits_free(struct linux_running *running)
{
	cgroup_remove(&running->group);
	disk_watch_end(&running->disk);
}

static void describe(struct linux_running *running)
{
	const struct cgroup *group = &running->group;
	const char **isolation = running->command->isolation;
	if (isolation[CORDON_WALL_LIMIT_DISK])
		isolation[CORDON_WALL_LIMIT_DISK] = running->quota ? QUOTA_TEXT
		                                    : running->disk.prompt ? DISK_WATCH_TEXT : DISK_COUNT_TEXT;
	/* A command that can write to the tree of groups can change its own. */
	bool guarded = !isolation[CORDON_WALL_FILESYSTEM] || strcmp(isolation[CORDON_WALL_FILESYSTEM], "none");
	for (size_t i = 0; i < ARRAY_SIZE(walls); i++)
		if (isolation[walls[i]] && (group->held & (UINT32_C(1) << walls[i]))) {
			const char *unguarded =
				arena_printf(running->command->arena, "%s, unguarded", group->ops->name);
			isolation[walls[i]] = guarded || !unguarded ? group->ops->name : unguarded;
		}
}

static int refuse_late_disk(struct cordon_error *err)
{
	fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, "disk",
	     "this limit is required, and the filesystem reports its use late or not at all");
	fail_boundary(err, cordon_wall_name(CORDON_WALL_LIMIT_DISK));
	return fail_remedy(err, "work in a directory on ext4, XFS, F2FS or tmpfs, or change limits.required");
}

/* Until the program is loaded its process is in the caller's memory: if the kernel killed it for want of memory there,
 * it would kill the caller with it. So the memory that starting takes must be within the limit: arguments and
 * environment, which the kernel copies, and what it keeps of the walls. That was 75 KiB with few of them. */
static int require_room(const struct linux_running *running, struct cordon_error *err)
{
	const struct profile *profile = running->command->profile;
	const struct strings *const words[] = { &profile->argv, running->command->environment };
	uint64_t needed = START_BYTES + profile->mounts.count * WALL_BYTES;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		for (size_t j = 0; j < words[i]->count; j++)
			needed += strlen(words[i]->items[j]) + sizeof(char *) + 1;
	if (!(running->group.held & WALL_BIT(LIMIT_MEMORY)) || needed <= profile->limits.memory_bytes)
		return 0;
	fail(err, CORDON_E_INVALID_REQUEST, 0, "memory",
	     "starting this command takes %" PRIu64 " bytes, more than it may have", needed);
	fail_boundary(err, cordon_wall_name(CORDON_WALL_LIMIT_MEMORY));
	return fail_remedy(err,
	                   "raise the limit on memory (--memory), or pass what is long through a file or its input");
}

/* A limit per process is none on a tree of processes: only a group holds that. */
int linux_limits_require(struct linux_running *running, struct cordon_error *err)
{
	const struct cgroup *group = &running->group;
	const struct profile *profile = running->command->profile;
	describe(running);
	if (require_room(running, err) < 0)
		return -1;
	if ((profile->required & profile->walls & WALL_BIT(LIMIT_DISK)) && !running->disk.prompt && !running->quota)
		return refuse_late_disk(err);
	for (size_t i = 0; i < ARRAY_SIZE(walls); i++) {
		if (!(profile->required & ~group->held & (UINT32_C(1) << walls[i])))
			continue;
		fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, cordon_wall_name(walls[i]),
		     "this limit is required, and no control group can hold it here%s%s", *group->why ? ": " : "",
		     group->why);
		fail_boundary(err, cordon_wall_name(walls[i]));
		return fail_remedy(err, "run `cordon doctor`: it says how to get a control group; or change "
		                        "limits.required");
	}
	return 0;
}

/* ---- the end ---------------------------------------------------------------------------------------------------- */

/* The filesystem held the limit, and is full. The kernel reports that only to the process that writes. */
static bool is_spent(struct linux_running *running)
{
	uint64_t used;
	struct disk_watch *disk = &running->disk;
	if (!running->quota || !quota_used(disk->options.roots[0], &used) ||
	    used + SPENT_BYTES < running->command->profile->limits.disk_bytes)
		return false;
	disk->used = used;
	return true;
}

/* A timeout ends the command; a command that ran out of memory before may have continued without the process that was
 * killed. */
static struct limit_hit which_hit(const struct linux_running *running, const struct cgroup_usage *usage)
{
	const struct supervision *supervision = &running->supervision;
	const struct limits *limits = &running->command->profile->limits;
	uint64_t ran_ms = (supervision->end_us - supervision->start_us) / 1000;
	if (supervision->timed_out)
		return (struct limit_hit){ "time", "ms", ran_ms, limits->wall_ms };
	if (supervision->disk_full)
		return (struct limit_hit){ "disk", "bytes", running->disk.used, limits->disk_bytes };
	if (supervision->memory_full)
		return (struct limit_hit){ "memory", "bytes", running->memory.used_bytes, limits->memory_bytes };
	/* Far below its own limit it was the machine's memory that ran out, or a group's around it. */
	uint64_t peak = usage->memory_peak_bytes;
	bool met = (running->group.held & WALL_BIT(LIMIT_MEMORY)) &&
	           (!peak || peak >= limits->memory_bytes - limits->memory_bytes / NEAR_SHARE);
	if (usage->oom_kills && met)
		return (struct limit_hit){ "memory", "bytes", peak ? peak : limits->memory_bytes,
		                           limits->memory_bytes };
	return (struct limit_hit){ 0 };
}

void linux_limits_end(struct linux_running *running, struct outcome *outcome)
{
	struct supervision *supervision = &running->supervision;
	struct cgroup_usage usage;
	cgroup_usage(&running->group, &usage);
	if (supervision->memory_full) {
		usage.oom_kills = 1;
		usage.memory_peak_bytes = running->memory.peak_bytes;
	}
	if (usage.process_peak > helpers(running))
		usage.process_peak -= helpers(running);
	if (usage.cpu_us)
		supervision->cpu_us = usage.cpu_us;
	outcome->limit_hit = which_hit(running, &usage);
	outcome->memory_peak_bytes = usage.memory_peak_bytes;
	outcome->process_peak = usage.process_peak;
	outcome->oom_kills = usage.oom_kills;
	outcome->process_refusals = usage.process_refusals;
	outcome->grouped = running->group.held;
	if (running->command->profile->walls & WALL_BIT(LIMIT_DISK) && !supervision->disk_full)
		outcome->disk_passed = disk_watch_settle(&running->disk) || is_spent(running);
	outcome->disk_used = running->disk.used;
	outcome->disk_growth = running->disk.options.growth;
}

/* The limits on a command's whole tree, as part of step 5: a control group of its own holds them where one can be had; where not,
 * memory is watched, and rlimits hold the rest. Afterwards: which limit ended it, and what it used. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/text.h"
#include "walk.h"
#include "driver/linux/quota.h"
#include "run/complaint.h"
#include "session/session-row.h"

/* Memory is counted in batches: a limit may be met this much below it. */
#define NEAR_SHARE 16
/* Of disk space, what is too little to be given out. */
#define SPENT_BYTES (UINT64_C(64) << 10)

/* Of a command's memory, what the kernel needs until its program is loaded, and for each mount. */
#define START_BYTES (UINT64_C(512) << 10)
#define WALL_BYTES UINT64_C(1024)

/* Those that a control group can hold. Disk space is watched by the supervisor, and held by a filesystem
 * that can. */
static const enum cordon_wall walls[] = {
	CORDON_WALL_LIMIT_MEMORY, CORDON_WALL_LIMIT_PROCESSES, CORDON_WALL_LIMIT_CPU,
};

bool limits_are_optional(enum cordon_wall wall)
{
	for (size_t i = 0; i < ARRAY_SIZE(walls); i++)
		if (walls[i] == wall)
			return true;
	return false;
}

/* What raises the walls is in the group, too: init, and what a driver needs besides. */
static unsigned helpers(const struct execution *execution)
{
	const struct driver *driver = execution->verdict.session.driver;
	return driver->helpers ? driver->helpers : 1;
}

/* At birth there is one more for root: the process that becomes another user. */
static struct cgroup_bounds bounds_of(const struct execution *execution)
{
	const struct profile *profile = &execution->verdict.profile;
	const struct limits *limits = &profile->limits;
	return (struct cgroup_bounds){
		.memory_bytes = profile->walls & WALL_BIT(LIMIT_MEMORY) ? limits->memory_bytes : 0,
		.cpu_percent = profile->walls & WALL_BIT(LIMIT_CPU) ? limits->cpu_percent : 0,
		.processes = profile->walls & WALL_BIT(LIMIT_PROCESSES) ? limits->processes + helpers(execution) : 0,
		.at_birth = geteuid() == 0,
	};
}

/* A quota is none for who has the capability to ignore it, or may say of what project a file is. */
static bool hold_disk(const struct execution *execution, const struct disk_options *options)
{
	const uint32_t needed = WALL_BIT(PRIVILEGES) | WALL_BIT(KERNEL_SURFACE);
	return !options->growth && (execution->verdict.profile.walls & needed) == needed &&
	       quota_hold(options->roots[0], options->most_bytes);
}

/* A directory that was named is the caller's own: what was in it before is not the command's doing. */
static void watch_disk(struct execution *execution)
{
	const struct disk_options options = {
		.roots = { execution->verdict.session.workspace_fd, execution->held.home_fd,
		           execution->held.tmp_fd >= 0 ? execution->held.tmp_fd : execution->held.scratch_fd },
		.most_bytes = execution->verdict.profile.limits.disk_bytes,
		.growth = execution->request->workspace || execution->verdict.session.record->workspace,
	};
	disk_watch_begin(&execution->run.disk, &options);
	execution->run.quota = hold_disk(execution, &options);
}

static bool is_memory_watched(const struct execution *execution)
{
	return execution->verdict.profile.walls & ~execution->run.group.held & WALL_BIT(LIMIT_MEMORY);
}

/* What lies in memory inside: /tmp, /dev/shm, a home. */
static void watch_memory(struct execution *execution)
{
	const struct profile *profile = &execution->verdict.profile;
	const char *targets[MEMORY_WATCH_MOUNTS];
	size_t count = 0;
	for (size_t i = 0; i < profile->mounts.count && count < ARRAY_SIZE(targets); i++)
		if (profile->mounts.ops[i].kind == MOUNT_SCRATCH)
			targets[count++] = profile->mounts.ops[i].target;
	memory_watch_begin(&execution->run.memory, profile->limits.memory_bytes, targets, count);
}

int limits_begin(struct execution *execution, struct cordon_error *err)
{
	const struct profile *profile = &execution->verdict.profile;
	struct cgroup_search search = { .directory = profile->cgroup };
#ifdef CORDON_UNWALL
	/* Removing a group also ends what is left in it. */
	if (!(profile->walls & WALL_BIT(LIFETIME)))
		search.directory = CGROUP_NONE;
#endif
	const struct cgroup_bounds bounds = bounds_of(execution);
	if (profile->walls & WALL_BIT(LIMIT_DISK))
		watch_disk(execution);
	cgroup_make(&search, &bounds, &execution->run.group);
	cgroup_enter(&execution->run.group, &execution->run.launch);
	if (is_memory_watched(execution))
		watch_memory(execution);
	return driver_limit(&execution->arena, execution->verdict.session.driver, profile, execution->run.group.held,
	                    &execution->run.launch, err);
}

void limits_started(struct execution *execution)
{
	cgroup_entered(&execution->run.group);
}

void limits_describe(struct execution *execution)
{
	const struct cgroup *group = &execution->run.group;
	const char **isolation = execution->run.isolation;
	if (isolation[CORDON_WALL_LIMIT_DISK])
		isolation[CORDON_WALL_LIMIT_DISK] = execution->run.quota ? QUOTA_TEXT
		                                    : execution->run.disk.prompt ? DISK_WATCH_TEXT : DISK_COUNT_TEXT;
	/* A command that can write to the tree of groups can change its own. */
	bool guarded = !isolation[CORDON_WALL_FILESYSTEM] || strcmp(isolation[CORDON_WALL_FILESYSTEM], "none");
	for (size_t i = 0; i < ARRAY_SIZE(walls); i++)
		if (isolation[walls[i]] && (group->held & (UINT32_C(1) << walls[i]))) {
			const char *unguarded = arena_printf(&execution->arena, "%s, unguarded", group->ops->name);
			isolation[walls[i]] = guarded || !unguarded ? group->ops->name : unguarded;
		}
}

static int refuse_late_disk(const struct execution *execution, struct cordon_error *err)
{
	fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, execution->verdict.session.workspace.path,
	     "this limit is required, and the filesystem tells late or not at all how much of it is in use");
	fail_boundary(err, cordon_wall_name(CORDON_WALL_LIMIT_DISK));
	return fail_remedy(err, "work in a directory on ext4, XFS, F2FS or tmpfs, or change limits.required");
}

/* Until the program is loaded its process is in the caller's memory: if the kernel ended it for want of memory there, it would
 * end the caller with it. So what starting takes must fit: the program's words, which the kernel copies, and what it keeps of
 * the walls. That was 75 KiB with few of them. */
static int require_room(const struct execution *execution, struct cordon_error *err)
{
	const struct profile *profile = &execution->verdict.profile;
	const struct strings *const words[] = { &profile->argv, &profile->environment };
	uint64_t needed = START_BYTES + profile->mounts.count * WALL_BYTES;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		for (size_t j = 0; j < words[i]->count; j++)
			needed += strlen(words[i]->items[j]) + sizeof(char *) + 1;
	if (!(execution->run.group.held & WALL_BIT(LIMIT_MEMORY)) || needed <= profile->limits.memory_bytes)
		return 0;
	fail(err, CORDON_E_INVALID_REQUEST, 0, "memory", "starting this command takes %" PRIu64 " bytes, more than it may have",
	     needed);
	fail_boundary(err, cordon_wall_name(CORDON_WALL_LIMIT_MEMORY));
	return fail_remedy(err, "raise the limit on memory (--memory), or pass what is long through a file or its input");
}

/* A limit per process is none on a tree of processes: only a group holds that. */
int limits_require(const struct execution *execution, struct cordon_error *err)
{
	const struct cgroup *group = &execution->run.group;
	const struct profile *profile = &execution->verdict.profile;
	if (require_room(execution, err) < 0)
		return -1;
	if ((profile->required & profile->walls & WALL_BIT(LIMIT_DISK)) && !execution->run.disk.prompt && !execution->run.quota)
		return refuse_late_disk(execution, err);
	for (size_t i = 0; i < ARRAY_SIZE(walls); i++) {
		if (!(profile->required & ~group->held & (UINT32_C(1) << walls[i])))
			continue;
		fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, cordon_wall_name(walls[i]),
		     "this limit is required, and no control group can hold it here%s%s", *group->why ? ": " : "",
		     group->why);
		fail_boundary(err, cordon_wall_name(walls[i]));
		return fail_remedy(err, "run `cordon doctor`: it tells how to get a control group; or change "
		                        "limits.required");
	}
	return 0;
}

/* ---- the end ---------------------------------------------------------------------------------------------------- */

static int tell_refused(struct execution *execution, uint64_t refusals)
{
	char note[128], grant[64];
	uint64_t most = execution->verdict.profile.limits.processes;
	snprintf(note, sizeof(note), "%" PRIu64 " more could not be started beside %" PRIu64, refusals, most);
	snprintf(grant, sizeof(grant), "--processes, more than %" PRIu64, most);
	return denials_add(&execution->denials, &execution->arena, CORDON_WALL_LIMIT_PROCESSES, "processes", note, grant);
}

static int pause_record(struct arena *arena, struct session_record *record, void *arg, struct cordon_error *err)
{
	(void)arena;
	if (record->state != SESSION_ACTIVE)
		return 1;
	record->state = SESSION_PAUSED;
	record->why = "oom";
	return session_row_write(((struct cordon *)arg)->ledger, "paused", record, false, err);
}

int limits_pause(struct execution *execution, struct cordon_error *err)
{
	struct session_record record;
	if (!execution->run.usage.oom_kills || execution->verdict.session.one_off)
		return 0;
	return registry_change(&execution->arena, execution->cordon->data_dir, execution->verdict.session.id, pause_record,
	                       execution->cordon, &record, err);
}

/* The filesystem held it, and had nothing left to give. It tells nobody but who writes when it refuses. */
static bool is_spent(struct execution *execution)
{
	uint64_t used;
	struct disk_watch *disk = &execution->run.disk;
	if (!execution->run.quota || !quota_used(execution->verdict.session.workspace_fd, &used) ||
	    used + SPENT_BYTES < disk->options.most_bytes)
		return false;
	disk->used = used;
	return true;
}

/* It ended before that was found out. */
static int tell_disk_full(struct execution *execution)
{
	char note[128], grant[64], used[TEXT_AMOUNT_SIZE], most[TEXT_AMOUNT_SIZE];
	const struct disk_watch *disk = &execution->run.disk;
	text_format_size(disk->used, used);
	text_format_size(disk->options.most_bytes, most);
	snprintf(note, sizeof(note), "%s %s when it ended; %s are allowed",
	         disk->options.growth ? "it had added" : "it held", used, most);
	snprintf(grant, sizeof(grant), "--disk, more than %s", most);
	return denials_add(&execution->denials, &execution->arena, CORDON_WALL_LIMIT_DISK, execution->verdict.session.workspace.path, note, grant);
}

/* Has the workspace's filesystem room for more? Then it was not that which was full. */
static bool has_room(const struct execution *execution)
{
	struct statvfs info;
	return fstatvfs(execution->verdict.session.workspace_fd, &info) == 0 && (uint64_t)info.f_bavail * info.f_frsize > SPENT_BYTES;
}

/* A limit that ends nothing, but makes calls fail, is named where a command failed and said so. */
static int tell_complaint(struct execution *execution)
{
	static const char seems[] = "it seems to have met this limit: ";
	const struct profile *profile = &execution->verdict.profile;
	const struct limits *limits = &profile->limits;
	const struct cordon_request *request = execution->request;
	const struct captured *said = &execution->run.streams[request->tty || request->one_stream ? CORDON_STDOUT : CORDON_STDERR];
	uint32_t counted = execution->run.group.held;
	char note[128], amount[TEXT_AMOUNT_SIZE];
	if (!execution->run.supervision.status || execution->run.limit_hit.name)
		return 0;
	switch (complaint_find(said->data, said->length)) {
	case COMPLAINT_PROCESSES:
		if (!(profile->walls & ~counted & WALL_BIT(LIMIT_PROCESSES)) ||
		    !strcmp(execution->run.isolation[CORDON_WALL_LIMIT_PROCESSES], "none"))
			return 0;
		snprintf(note, sizeof(note), "%s%" PRIu64, seems, limits->processes);
		return denials_add(&execution->denials, &execution->arena, CORDON_WALL_LIMIT_PROCESSES, "processes", note, "--processes N");
	case COMPLAINT_FILES:
		if (!(profile->walls & WALL_BIT(LIMIT_FILES)))
			return 0;
		snprintf(note, sizeof(note), "%s%" PRIu64 " for each process", seems, limits->open_files);
		return denials_add(&execution->denials, &execution->arena, CORDON_WALL_LIMIT_FILES, "open files", note, "--open-files N");
	case COMPLAINT_SPACE:
		if (!limits->tmp_bytes || !has_room(execution))
			return 0;
		text_format_size(limits->tmp_bytes, amount);
		snprintf(note, sizeof(note), "%s%s for files that lie in memory", seems, amount);
		return denials_add(&execution->denials, &execution->arena, CORDON_WALL_LIMIT_DISK, "/tmp", note, "--tmp SIZE");
	case COMPLAINT_MEMORY:
		if (!limits->memory_bytes || execution->run.usage.memory_peak_bytes < limits->memory_bytes / 2)
			return 0;
		text_format_size(limits->memory_bytes, amount);
		snprintf(note, sizeof(note), "%s%s", seems, amount);
		return denials_add(&execution->denials, &execution->arena, CORDON_WALL_LIMIT_MEMORY, "memory", note, "--memory SIZE");
	default:
		return 0;
	}
}

/* The end of time is the end; what ran out of memory before may have gone on without what was killed. */
static struct limit_hit which_hit(const struct execution *execution)
{
	const struct supervision *supervision = &execution->run.supervision;
	const struct cgroup_usage *usage = &execution->run.usage;
	const struct limits *limits = &execution->verdict.profile.limits;
	uint64_t ran_ms = (supervision->end_us - supervision->start_us) / 1000;
	if (supervision->timed_out)
		return (struct limit_hit){ "time", "ms", ran_ms, limits->wall_ms };
	if (supervision->disk_full)
		return (struct limit_hit){ "disk", "bytes", execution->run.disk.used, limits->disk_bytes };
	if (supervision->memory_full)
		return (struct limit_hit){ "memory", "bytes", execution->run.memory.used_bytes, limits->memory_bytes };
	/* Far below its own limit it was the machine's memory that ran out, or a group's around it. */
	uint64_t peak = usage->memory_peak_bytes;
	bool met = (execution->run.group.held & WALL_BIT(LIMIT_MEMORY)) &&
	           (!peak || peak >= limits->memory_bytes - limits->memory_bytes / NEAR_SHARE);
	if (usage->oom_kills && met)
		return (struct limit_hit){ "memory", "bytes", peak ? peak : limits->memory_bytes,
		                           limits->memory_bytes };
	return (struct limit_hit){ 0 };
}

int limits_end(struct execution *execution, struct cordon_error *err)
{
	struct cgroup *group = &execution->run.group;
	struct supervision *supervision = &execution->run.supervision;
	struct cgroup_usage *usage = &execution->run.usage;
	cgroup_usage(group, usage);
	if (supervision->memory_full) {
		usage->oom_kills = 1;
		usage->memory_peak_bytes = execution->run.memory.peak_bytes;
	}
	execution->run.limit_hit = which_hit(execution);
	if (usage->process_peak > helpers(execution))
		usage->process_peak -= helpers(execution);
	if (usage->cpu_us)
		supervision->cpu_us = usage->cpu_us;
	if (usage->process_refusals && tell_refused(execution, usage->process_refusals) < 0)
		return fail_oom(err);
	if (execution->verdict.profile.walls & WALL_BIT(LIMIT_DISK) && !supervision->disk_full &&
	    (disk_watch_settle(&execution->run.disk) || is_spent(execution)) && tell_disk_full(execution) < 0)
		return fail_oom(err);
	if (!execution->denials.count && tell_complaint(execution) < 0)
		return fail_oom(err);
	supervise_leave(supervision, group);
	return 0;
}

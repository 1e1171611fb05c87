/* The limit on disk space: see disk.h. */
#include "run/disk.h"

#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>

#include "base/cleanup.h"

#define STEP_US 3000
#define STEP_PAUSE_MS 1
/* With STEP_US, less than a hundredth of a processor. */
#define SLOW_PAUSE_US 400000
#define RECHECK_US 1000000
#define RECHECK_SHARE 16
#define SETTLE_US 20000
/* Between urgent counts: this many times as long as one takes, but so that what passes the limit is found within a
 * second. */
#define REST_FACTOR 4
#define REST_LEAST_US 10000
#define REST_MOST_US 600000
/* Of a workspace that was never counted, this much may be taken before it is: of one that may grow by the limit, a
 * share of that. */
#define UNCOUNTED_BYTES (1 << 20)
#define UNCOUNTED_SHARE 4
/* Between asking what the processes do, likewise. */
#define ASK_FACTOR 200
#define ASK_LEAST_US 20000
#define ASK_MOST_US 300000

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

/* Those whose figures are right at any moment, space that is only promised to a file included. */
static const uint32_t prompt_filesystems[] = { EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, TMPFS_MAGIC, F2FS_SUPER_MAGIC };

/* ---- what is in use --------------------------------------------------------------------------------------------- */

static void look_at_volume(struct disk_volume *volume)
{
	struct statfs info;
	volume->prompt = false;
	if (fstatfs(volume->fd, &info) < 0 || !info.f_blocks)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(prompt_filesystems); i++)
		volume->prompt |= (uint32_t)info.f_type == prompt_filesystems[i];
	volume->bytes = (uint64_t)(info.f_blocks - info.f_bfree) * (uint64_t)info.f_frsize;
	volume->inodes = (uint64_t)(info.f_files - info.f_ffree);
}

static uint64_t risen(uint64_t from, uint64_t to)
{
	return to > from ? to - from : 0;
}

static uint64_t difference(uint64_t one, uint64_t other)
{
	return risen(one, other) + risen(other, one);
}

/* What may have been taken since the last look: where others give back at the same time, as much may have been taken as
 * is seen to be given. */
static uint64_t look_at_volumes(struct disk_watch *watch)
{
	uint64_t taken = 0;
	watch->prompt = true;
	for (size_t i = 0; i < watch->volume_count; i++) {
		struct disk_volume *volume = &watch->volumes[i], before = *volume;
		look_at_volume(volume);
		taken += difference(before.bytes, volume->bytes) + difference(before.inodes, volume->inodes) * DISK_INODE_BYTES;
		watch->prompt &= volume->prompt;
	}
	watch->taken += taken;
	return taken;
}

/* What is gone since the start, when all that was given back is set off. */
static int64_t net_taken(const struct disk_watch *watch)
{
	int64_t net = 0;
	for (size_t i = 0; watch->prompt && i < watch->volume_count; i++)
		net += (int64_t)(watch->volumes[i].bytes - watch->volumes[i].at_start);
	return net;
}

static void add_volume(struct disk_watch *watch, int fd)
{
	struct disk_stat stat;
	if (!disk_stat(fd, "", false, &stat))
		return;
	for (size_t i = 0; i < watch->volume_count; i++)
		if (watch->volumes[i].device == stat.device)
			return;
	struct disk_volume *volume = &watch->volumes[watch->volume_count++];
	*volume = (struct disk_volume){ .fd = fd, .device = stat.device };
	look_at_volume(volume);
	volume->at_start = volume->bytes;
}

static int64_t to_ns(struct timespec time)
{
	return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* A date that none of the files bears that are there, and none is older than that is made from now on. No clock tells it:
 * files are dated by that of the last tick, which may be long ago on a busy machine; but since 6.13 by a finer one if
 * that must be to tell two changes of a file apart, and then all others are not dated before. So a file of ours is
 * changed twice. Where that makes no difference there are ticks only, and what has the date of this one may be older. */
static int64_t date_of_start(void)
{
	struct timespec now;
	struct stat first, second;
	auto_close int fd = memfd_create("cordon-date", MFD_CLOEXEC);
	if (fd >= 0 && fstat(fd, &first) == 0 && fchmod(fd, 0600) == 0 && fstat(fd, &second) == 0)
		return to_ns(second.st_ctim) + (to_ns(first.st_ctim) == to_ns(second.st_ctim));
	clock_gettime(CLOCK_REALTIME, &now);
	return to_ns(now);
}

void disk_watch_begin(struct disk_watch *watch, const struct disk_options *options)
{
	*watch = (struct disk_watch){
		.options = *options,
		.start_ns = date_of_start(),
		.pause_ms = DISK_FIRST_MS,
		.looked_us = disk_now_us(),
	};
	watch->ended_us = watch->looked_us;
	for (size_t i = 0; i < DISK_ROOTS; i++)
		if (options->roots[i] >= 0)
			add_volume(watch, options->roots[i]);
}

/* ---- when to count ---------------------------------------------------------------------------------------------- */

/* How much may be taken before the limit may be passed. */
static uint64_t left(const struct disk_watch *watch)
{
	uint64_t most = watch->options.most_bytes;
	if (watch->counted)
		return watch->ceiling > watch->held ? watch->ceiling - watch->held : 1;
	if (watch->options.growth)
		return most / UNCOUNTED_SHARE;
	return most / 16 < UNCOUNTED_BYTES ? most / 16 : UNCOUNTED_BYTES;
}

static uint64_t clamp(uint64_t value, uint64_t least, uint64_t most)
{
	return value < least ? least : value > most ? most : value;
}

/* Has the command done anything since the last count? Where that cannot be told, it has. Asking takes time as well. */
static bool has_acted(struct disk_watch *watch, uint64_t now_us)
{
	struct processes now;
	if (!watch->first)
		return true;
	if (now_us < watch->ask_us)
		return false;
	processes_look(watch->first, &now);
	watch->ran_now = now.ran;
	watch->wrote_now = now.wrote;
	bool acted = now.partial || (watch->prompt ? now.ran != watch->ran : now.wrote != watch->wrote);
	processes_free(&now);
	uint64_t then_us = disk_now_us();
	watch->ask_us = then_us + clamp((then_us - now_us) * ASK_FACTOR, ASK_LEAST_US, ASK_MOST_US);
	/* So what was taken was taken by others. */
	if (!acted)
		watch->taken = 0;
	return acted;
}

/* Sets `urgent`. */
static bool is_due(struct disk_watch *watch, uint64_t now_us)
{
	uint64_t age_us = now_us - watch->ended_us;
	bool rested = age_us >= clamp(watch->cost_us * REST_FACTOR, REST_LEAST_US, REST_MOST_US);
	watch->urgent = !watch->prompt || watch->taken >= left(watch);
	if (watch->urgent ? !rested : age_us < RECHECK_US || watch->taken < left(watch) / RECHECK_SHARE + 1)
		return false;
	return has_acted(watch, now_us);
}

/* ---- counting --------------------------------------------------------------------------------------------------- */

static void begin_count(struct disk_watch *watch)
{
	watch->ran = watch->ran_now;
	watch->wrote = watch->wrote_now;
	watch->taken_before = watch->taken;
	watch->net_before = net_taken(watch);
	watch->spent_us = watch->stepped_us = 0;
	if (disk_walk_begin(&watch->walk, watch->options.roots, watch->start_ns))
		watch->state = DISK_COUNTING;
	else
		disk_walk_end(&watch->walk);
}

static void stop_count(struct disk_watch *watch)
{
	disk_walk_end(&watch->walk);
	processes_free(&watch->processes);
	watch->state = DISK_WATCHING;
}

static void add_nameless(void *arg, const struct disk_stat *file)
{
	struct disk_watch *watch = arg;
	for (size_t i = 0; i < watch->volume_count; i++)
		if (watch->volumes[i].device == file->device)
			disk_walk_add(&watch->walk, file);
}

/* True at the end. */
static bool ask_processes(struct disk_watch *watch, uint64_t until_us)
{
	for (; watch->asked < watch->processes.count; watch->asked++) {
		if (disk_now_us() >= until_us)
			return false;
		processes_each_nameless(watch->processes.pids[watch->asked], add_nameless, watch);
	}
	return true;
}

/* True at the end. */
static bool go_on(struct disk_watch *watch, uint64_t until_us)
{
	if (watch->state == DISK_COUNTING && disk_walk_step(&watch->walk, until_us)) {
		watch->state = DISK_ASKING;
		watch->asked = 0;
		if (watch->first)
			processes_look(watch->first, &watch->processes);
	}
	return watch->state == DISK_ASKING && ask_processes(watch, until_us);
}

static bool hides_something(const struct disk_watch *watch)
{
	uint64_t devices[DISK_ROOTS] = { 0 };
	if (watch->walk.count.closed || watch->walk.count.moved)
		return true;
	for (size_t i = 0; i < watch->volume_count; i++)
		devices[i] = watch->volumes[i].device;
	for (size_t i = 0; i < watch->processes.count; i++)
		if (processes_hides(watch->processes.pids[i], devices, watch->volume_count))
			return true;
	return false;
}

/* What there was at the start, from the first count: what was not made since. What is not known is how large files were
 * that have changed or are gone; but how much of the filesystem was taken or given back. That others may have done,
 * too, so it is believed within bounds: it ends nothing by itself, and makes room for no more than the limit once
 * more. */
static void find_base(struct disk_watch *watch)
{
	const struct disk_count *count = &watch->walk.count;
	uint64_t most = watch->options.most_bytes, changed = clamp(count->changed_bytes, 0, most / UNCOUNTED_SHARE);
	int64_t fresh = (int64_t)count->fresh_bytes, added = watch->net_before;
	if (added < fresh - (int64_t)most)
		added = fresh - (int64_t)most;
	if (added > fresh + (int64_t)changed)
		added = fresh + (int64_t)changed;
	if (!watch->options.growth || !watch->prompt)
		added = fresh;
	watch->base = (uint64_t)((int64_t)count->bytes - added);
	watch->ceiling = watch->options.growth ? watch->base + most : most > watch->base ? most : watch->base;
	watch->counted = true;
}

static void conclude(struct disk_watch *watch, uint64_t now_us)
{
	if (!watch->counted)
		find_base(watch);
	uint64_t held = watch->walk.count.bytes, found = risen(watch->base, held);
	uint64_t missing = net_taken(watch) > (int64_t)found ? (uint64_t)net_taken(watch) - found : 0;
	if (held <= watch->ceiling && held + missing > watch->ceiling && hides_something(watch)) {
		held += missing;
		found += missing;
	}
	watch->held = held;
	watch->used = watch->options.growth ? found : held;
	watch->exceeded = held > watch->ceiling;
	watch->taken -= watch->taken_before;
	watch->cost_us = watch->spent_us;
	watch->ended_us = now_us;
	stop_count(watch);
}

/* ---- looking ---------------------------------------------------------------------------------------------------- */

/* Half as long as it would take to pass the limit at the speed that was seen; longer and longer where nothing moves. */
static unsigned next_pause(struct disk_watch *watch, uint64_t added, uint64_t passed_us)
{
	uint64_t rest = risen(watch->taken, left(watch)), pause_ms = (uint64_t)watch->pause_ms * 2;
	if (added)
		pause_ms = (uint64_t)((double)rest / (double)added * (double)passed_us / 2000);
	watch->pause_ms = (unsigned)clamp(pause_ms, DISK_FIRST_MS, DISK_WATCH_MS);
	return watch->pause_ms;
}

/* True at the end of a count. */
static bool count_on(struct disk_watch *watch, uint64_t now_us, uint64_t step_us)
{
	if (!watch->urgent && now_us < watch->stepped_us + SLOW_PAUSE_US)
		return false;
	watch->stepped_us = now_us;
	bool done = go_on(watch, now_us + step_us);
	uint64_t then_us = disk_now_us();
	watch->spent_us += then_us - now_us;
	if (done)
		conclude(watch, then_us);
	return done;
}

unsigned disk_watch_look(struct disk_watch *watch, int pidfd)
{
	uint64_t now_us = disk_now_us(), passed_us = now_us - watch->looked_us, added = look_at_volumes(watch);
	watch->looked_us = now_us;
	if (!watch->first)
		watch->first = processes_of_pidfd(pidfd);
	/* A count that goes slowly is begun again: what it has seen is old. */
	if (watch->state != DISK_WATCHING && !watch->urgent && watch->taken >= left(watch))
		stop_count(watch);
	if (watch->state == DISK_WATCHING && is_due(watch, now_us))
		begin_count(watch);
	if (watch->state != DISK_WATCHING && count_on(watch, now_us, STEP_US) && watch->exceeded)
		return 0;
	return watch->state != DISK_WATCHING && watch->urgent ? STEP_PAUSE_MS : next_pause(watch, added, passed_us);
}

bool disk_watch_settle(struct disk_watch *watch)
{
	look_at_volumes(watch);
	if (watch->exceeded || !watch->prompt || watch->taken < (watch->counted ? left(watch) : watch->options.most_bytes / 2))
		return watch->exceeded;
	stop_count(watch);
	watch->first = 0;
	watch->urgent = true;
	begin_count(watch);
	if (watch->state == DISK_COUNTING)
		count_on(watch, disk_now_us(), SETTLE_US);
	stop_count(watch);
	return watch->exceeded;
}

void disk_watch_end(struct disk_watch *watch)
{
	stop_count(watch);
	watch->volume_count = 0;
}

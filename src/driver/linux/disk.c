/* The limit on disk space: see disk.h. */
#include "driver/linux/disk.h"

#include <linux/magic.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/after-fork.h"
#include "base/cleanup.h"
#include "driver/linux/pidfd.h"

#define STEP_US 3000
/* With STEP_US, less than a hundredth of a processor. */
#define SLOW_PAUSE_US 400000
/* Between such: this many times as long as a count takes. */
#define RECHECK_FACTOR 100
#define RECHECK_LEAST_US 1000000
#define RECHECK_MOST_US 60000000
#define RECHECK_SHARE 16
#define SETTLE_US 20000
/* Between urgent counts: this many times as long as one takes, but so that what passes the limit is found within a
 * second; and only as long where so much more was taken than is left that it is likely passed. */
#define REST_FACTOR 3
#define LIKELY_FACTOR 4
#define REST_LEAST_US 10000
#define REST_MOST_US 500000
/* Of a workspace that was never counted, this much may be taken before it is: a share of the limit, and less where all
 * that was there before counts and the command may have written that much. */
#define UNCOUNTED_SHARE 4
#define UNCOUNTED_BYTES (1 << 20)
#define UNCOUNTED_WRITTEN_SHARE 16
#define NEAR_SHARE 256
/* A file is seen without so much of it, and seldom that, at the moment when that goes to the disk. */
#define UNSEEN_BYTES (8 << 20)
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
		taken += difference(before.bytes, volume->bytes) +
		         difference(before.inodes, volume->inodes) * DISK_INODE_BYTES;
		watch->prompt &= volume->prompt;
	}
	watch->taken += taken;
	return taken;
}

/* What is gone since the start, when all that was given back is set off, and what others are known to have. */
static int64_t net_taken(const struct disk_watch *watch)
{
	int64_t net = -(int64_t)watch->others;
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

/* The file for that is kept: making one takes longer than all the rest. */
static struct {
	pthread_mutex_t mutex;
	int fd;
} dated = { PTHREAD_MUTEX_INITIALIZER, -1 };

static void begin_anew(void)
{
	dated.mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	dated.fd = -1;
}
AFTER_FORK(begin_anew);

/* A date that none of the files bears that are there, and none is older than that is made from now on. No clock tells
 * it: files are dated by that of the last tick, which may be long ago on a busy machine; but since 6.13 by a finer
 * one if that must be to tell two changes of a file apart, and then all others are not dated before. So a file of
 * ours is changed twice. Where that makes no difference there are ticks only, and what has the date of this one may
 * be older. */
static int64_t date_of_start(void)
{
	struct timespec now;
	struct stat first, second;
	pthread_mutex_lock(&dated.mutex);
	if (dated.fd < 0)
		dated.fd = memfd_create("cordon-date", MFD_CLOEXEC);
	bool known = dated.fd >= 0 && fchmod(dated.fd, 0600) == 0 && fstat(dated.fd, &first) == 0 &&
	             fchmod(dated.fd, 0600) == 0 && fstat(dated.fd, &second) == 0;
	pthread_mutex_unlock(&dated.mutex);
	if (known)
		return to_ns(second.st_ctim) + (to_ns(first.st_ctim) == to_ns(second.st_ctim));
	clock_gettime(CLOCK_REALTIME, &now);
	return to_ns(now);
}

void disk_forget(void)
{
	pthread_mutex_lock(&dated.mutex);
	if (dated.fd >= 0)
		close(take_fd(&dated.fd));
	pthread_mutex_unlock(&dated.mutex);
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
	watch->prompt = true;
	for (size_t i = 0; i < watch->volume_count; i++)
		watch->prompt &= watch->volumes[i].prompt;
}

/* ---- when to count ---------------------------------------------------------------------------------------------- */

/* How much may be taken before the limit may be passed; near to it some more, lest all that others write makes it
 * due. */
static uint64_t left(const struct disk_watch *watch)
{
	uint64_t most = watch->options.most_bytes, least = most / NEAR_SHARE;
	if (watch->counted)
		return watch->ceiling > watch->held + least ? watch->ceiling - watch->held : least;
	if (watch->options.growth || !watch->writes)
		return most / UNCOUNTED_SHARE;
	return most / UNCOUNTED_WRITTEN_SHARE < UNCOUNTED_BYTES ? most / UNCOUNTED_WRITTEN_SHARE : UNCOUNTED_BYTES;
}

static uint64_t clamp(uint64_t value, uint64_t least, uint64_t most)
{
	return value < least ? least : value > most ? most : value;
}

/* What the processes did, unless that was asked just now: it takes time as well. Where it cannot be told, they did it
 * all. */
static void ask(struct disk_watch *watch, uint64_t now_us)
{
	struct processes now;
	if (now_us < watch->ask_us)
		return;
	watch->asked_us = now_us;
	if (!watch->first) {
		watch->acted = watch->wrote_since = watch->writes = true;
		return;
	}
	processes_look(watch->first, &now);
	watch->ran_now = now.ran;
	watch->wrote_now = now.wrote;
	bool unknown = now.partial || now.untold;
	watch->acted = unknown || now.ran != watch->ran;
	watch->wrote_since = unknown || now.wrote != watch->wrote;
	/* What those wrote that are gone is not always known. */
	watch->writes |= unknown || now.written_bytes >= UNCOUNTED_BYTES / 2 || (watch->who && now.who != watch->who);
	watch->who = now.who;
	processes_free(&now);
	uint64_t then_us = disk_now_us();
	watch->ask_us = then_us + clamp((then_us - now_us) * ASK_FACTOR, ASK_LEAST_US, ASK_MOST_US);
}

/* Sets `urgent`. */
static bool is_due(struct disk_watch *watch, uint64_t now_us)
{
	uint64_t age_us = now_us - watch->ended_us;
	bool likely = watch->taken / LIKELY_FACTOR >= left(watch);
	bool rested = age_us >= clamp(watch->cost_us * (likely ? 1 : REST_FACTOR), REST_LEAST_US, REST_MOST_US);
	bool old = age_us >= clamp(watch->cost_us * RECHECK_FACTOR, RECHECK_LEAST_US, RECHECK_MOST_US) &&
	           (!watch->prompt || watch->suspect || watch->taken > left(watch) / RECHECK_SHARE);
	watch->urgent = watch->taken >= left(watch);
	if (!(watch->urgent || !watch->prompt ? rested : old))
		return false;
	ask(watch, now_us);
	if (watch->asked_us != now_us)
		return false;
	/* If it did nothing since the last count, it was others. */
	if (!watch->acted)
		watch->taken = 0;
	watch->urgent |= (!watch->prompt && watch->wrote_since) || (old && watch->suspect);
	return (watch->acted || watch->suspect) && (watch->urgent || old);
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

/* What the command added, by a first count: what was made since the start. What is not known is how large files were
 * that have changed or are gone; but how much of the filesystem was taken or given back. That others may have done,
 * too, so it is believed within bounds: it ends nothing by itself, and makes room for no more than the limit once
 * more. */
static int64_t first_added(const struct disk_watch *watch)
{
	const struct disk_count *count = &watch->walk.count;
	int64_t fresh = (int64_t)count->fresh_bytes, most = (int64_t)watch->options.most_bytes;
	int64_t changed = (int64_t)clamp(count->changed_bytes, 0, watch->options.most_bytes / UNCOUNTED_SHARE);
	int64_t grown = watch->net_before - fresh, gone = fresh - net_taken(watch);
	if (!watch->options.growth || !watch->prompt)
		return fresh;
	if (grown > 0)
		return fresh + (grown < changed ? grown : changed);
	return gone > 0 ? fresh - (gone < most ? gone : most) : fresh;
}

static void set_base(struct disk_watch *watch, uint64_t base)
{
	uint64_t most = watch->options.most_bytes;
	watch->base = base;
	watch->ceiling = watch->options.growth ? base + most : most > base ? most : base;
}

/* From the first count; and a later one may have seen more of what is neither new nor changed. */
static void find_base(struct disk_watch *watch)
{
	const struct disk_count *count = &watch->walk.count;
	uint64_t untouched = count->bytes - count->fresh_bytes - count->changed_bytes;
	if (!watch->counted)
		set_base(watch, (uint64_t)((int64_t)count->bytes - first_added(watch)));
	else if (untouched > watch->base && (watch->options.growth || watch->base > watch->options.most_bytes))
		set_base(watch, untouched);
	watch->counted = true;
}

/* Whatever else there is, it is too much. */
static bool is_over(const struct disk_watch *watch)
{
	uint64_t most = watch->options.most_bytes;
	uint64_t slack = most / UNCOUNTED_SHARE > UNSEEN_BYTES ? most / UNCOUNTED_SHARE : UNSEEN_BYTES;
	if (watch->counted)
		return watch->walk.count.bytes > watch->ceiling + slack;
	return watch->options.growth && first_added(watch) > (int64_t)most;
}

/* True at the end, or where there is more already than there may be. */
static bool go_on(struct disk_watch *watch, uint64_t until_us)
{
	bool walked = watch->state == DISK_COUNTING && disk_walk_step(&watch->walk, until_us);
	if (is_over(watch))
		return true;
	if (walked) {
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
	if (watch->walk.count.closed || watch->walk.count.moved || watch->processes.partial)
		return true;
	for (size_t i = 0; i < watch->volume_count; i++)
		devices[i] = watch->volumes[i].device;
	for (size_t i = 0; i < watch->processes.count; i++)
		if (processes_hides(watch->processes.pids[i], devices, watch->volume_count))
			return true;
	return false;
}

/* CPU time of this thread, so that a busy machine does not make counting look expensive. */
static uint64_t processor_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* What is gone from the filesystem and was found nowhere. */
static uint64_t missing(const struct disk_watch *watch)
{
	int64_t more = net_taken(watch) - (int64_t)risen(watch->base, watch->walk.count.bytes);
	return more > 0 ? (uint64_t)more : 0;
}

static bool may_be_missed(const struct disk_watch *watch)
{
	uint64_t bytes = watch->walk.count.bytes;
	return bytes <= watch->ceiling && bytes + missing(watch) > watch->ceiling;
}

/* Did the command do nothing since the count before this one? Then nothing was kept out of the way of this one. What
 * it did meanwhile alone would not tell: the kernel notes it late of a process that does not sleep. */
static bool was_idle(const struct disk_watch *watch)
{
	const struct processes *now = &watch->processes;
	return !watch->acted && watch->state == DISK_ASKING && !now->partial && !now->untold && now->ran == watch->ran;
}

static void conclude(struct disk_watch *watch, uint64_t now_us)
{
	uint64_t hidden = 0;
	look_at_volumes(watch);
	find_base(watch);
	watch->suspect = may_be_missed(watch);
	if (watch->suspect && hides_something(watch)) {
		hidden = missing(watch);
	} else if (watch->suspect && was_idle(watch)) {
		watch->others += missing(watch);
		watch->suspect = false;
	}
	watch->held = watch->walk.count.bytes + hidden;
	watch->used = watch->options.growth ? risen(watch->base, watch->walk.count.bytes) + hidden : watch->held;
	watch->exceeded = watch->held > watch->ceiling;
	watch->taken -= watch->taken_before;
	watch->cost_us = watch->spent_us;
	watch->ended_us = now_us;
	stop_count(watch);
}

/* ---- looking ---------------------------------------------------------------------------------------------------- */

/* Half as long as it would take to pass the limit at the speed that was seen; longer and longer where nothing moves. */
static int next_pause(struct disk_watch *watch, uint64_t added, uint64_t passed_us)
{
	uint64_t rest = risen(watch->taken, left(watch)), pause_ms = (uint64_t)watch->pause_ms * 2;
	if (added)
		pause_ms = (uint64_t)((double)rest / (double)added * (double)passed_us / 2000);
	watch->pause_ms = (int)clamp(pause_ms, DISK_FIRST_MS, DISK_WATCH_MS);
	return watch->pause_ms;
}

/* True at the end of a count. */
static bool count_on(struct disk_watch *watch, uint64_t now_us, uint64_t step_us)
{
	if (!watch->urgent && now_us < watch->stepped_us + SLOW_PAUSE_US)
		return false;
	uint64_t before_us = processor_us();
	watch->stepped_us = now_us;
	bool done = go_on(watch, now_us + step_us);
	watch->spent_us += processor_us() - before_us;
	if (done)
		conclude(watch, disk_now_us());
	return done;
}

int disk_watch_look(struct disk_watch *watch, int pidfd)
{
	uint64_t now_us = disk_now_us(), passed_us = now_us - watch->looked_us, added = look_at_volumes(watch);
	watch->looked_us = now_us;
	if (!watch->first)
		watch->first = pidfd_number(pidfd);
	if (!watch->counted && !watch->options.growth && !watch->writes && watch->taken)
		ask(watch, now_us);
	/* A count that goes slowly is begun again: what it has seen is old. */
	if (watch->state != DISK_WATCHING && !watch->urgent && watch->taken >= left(watch))
		stop_count(watch);
	if (watch->state == DISK_WATCHING && is_due(watch, now_us))
		begin_count(watch);
	if (watch->state != DISK_WATCHING && count_on(watch, now_us, STEP_US) && watch->exceeded)
		return -1;
	return watch->state != DISK_WATCHING && watch->urgent ? 0 : next_pause(watch, added, passed_us);
}

bool disk_watch_settle(struct disk_watch *watch)
{
	look_at_volumes(watch);
	bool due = watch->suspect || watch->taken >= (watch->counted ? left(watch) : watch->options.most_bytes / 2);
	if (watch->exceeded || !watch->prompt || !due)
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

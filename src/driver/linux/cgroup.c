/* Control groups: see cgroup.h. What both versions share: looking for a place, making leaves in it, removing them, and
 * sweeping those whose supervisor is gone. */
#include "driver/linux/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/after-fork.h"
#include "base/cleanup.h"
#include "base/id.h"
#include "base/text.h"
#include "driver/linux/cgroup-file.h"
#include "driver/linux/launch.h"

#define PREFIX "cordon-"
#define REMOVE_ROUNDS 56
#define MAKE_ATTEMPTS 3
#define LOCKED_BY_MS 60000
#define UNWANTED "the configuration says: without control groups"
#define REMOVE_FIRST_PAUSE_NS 20000L
#define REMOVE_PAUSE_NS 1000000L

static const struct cgroup_ops *const versions[] = { &cgroup_v2, &cgroup_v1 };

/* ---- a place ---------------------------------------------------------------------------------------------------- */

static void close_all(int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (fds[i] >= 0)
			close(take_fd(&fds[i]));
}

static void close_parts(int parts[static CGROUP_PARTS])
{
	close_all(parts, CGROUP_PARTS);
}

static const struct cgroup_place no_place = { .parts = { -1, -1, -1 } };

static bool is_unwanted(const struct cgroup_search *search)
{
	return search->directory && !strcmp(search->directory, CGROUP_NONE);
}

static void find_place(const struct cgroup_search *search, struct cgroup_place *place)
{
	const struct cgroup_search here = {
		.directory = search->directory,
		.root = search->root ? search->root : CGROUP_ROOT,
		.self = search->self ? search->self : CGROUP_SELF,
	};
	uncleared char self[8192];
	self[0] = '\0';
	*place = no_place;
	if (is_unwanted(search)) {
		snprintf(place->why, sizeof(place->why), UNWANTED);
		return;
	}
	if (!here.directory)
		cgroup_file_read(AT_FDCWD, here.self, self, sizeof(self));
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		struct cgroup_place found = no_place;
		if (versions[i]->find(&here, self, &found)) {
			*place = found;
			place->ops = versions[i];
			return;
		}
		close_parts(found.parts);
		/* The report says what version 2 lacks: it is the one that can be had. */
		if (!*place->why)
			memcpy(place->why, found.why, sizeof(place->why));
	}
}

bool cgroup_shows(const char *path, int known_fd)
{
	if (path_within(path, CGROUP_ROOT) || path_within(CGROUP_ROOT, path))
		return true;
	if (known_fd >= 0)
		return cgroup_file_version(known_fd);
	auto_close int fd = open(path, O_PATH | O_CLOEXEC);
	return fd >= 0 && cgroup_file_version(fd);
}

void cgroup_look(const struct cgroup_search *search, struct cgroup_place *ret_place)
{
	find_place(search, ret_place);
	close_parts(ret_place->parts);
}

/* ---- removing ---------------------------------------------------------------------------------------------------- */

/* By way of its own directory: the place may have been found anew meanwhile. */
static bool remove_directory(int fd, const char *name)
{
	char path[CGROUP_NAME_SIZE + 4];
	snprintf(path, sizeof(path), "../%s", name);
	return unlinkat(fd, path, AT_REMOVEDIR) == 0 || errno != EBUSY;
}

/* The last process may be gone from /proc and not yet from the group; usually for moments only. */
static void pause_before(int round)
{
	long pause_ns = round < 6 ? REMOVE_FIRST_PAUSE_NS << round : REMOVE_PAUSE_NS;
	nanosleep(&(struct timespec){ .tv_nsec = pause_ns }, NULL);
}

static bool remove_part(struct cgroup *group, int fd, const char *name, int rounds)
{
	bool gone = fd < 0 || remove_directory(fd, name);
	for (int round = 0; !gone && round < rounds; round++) {
		group->ops->kill(group);
		pause_before(round);
		gone = remove_directory(fd, name);
	}
	return gone;
}

static void remove_leaf(struct cgroup *group, int rounds)
{
	close_parts(group->joins);
	close_all(group->counters, CGROUP_COUNTER_MAX);
	bool gone = remove_part(group, group->aside, group->aside_name, rounds);
	for (int part = 0; gone && part < CGROUP_PARTS; part++)
		remove_part(group, group->parts[part], group->name, rounds);
	close_all(&group->aside, 1);
	close_parts(group->parts);
	group->ops = NULL;
}

void cgroup_remove(struct cgroup *group)
{
	if (group->ops)
		remove_leaf(group, REMOVE_ROUNDS);
}

/* Found once, and again where it is gone or another one is wanted. */
static pthread_mutex_t place_lock = PTHREAD_MUTEX_INITIALIZER;
static struct cgroup_place kept = { .parts = { -1, -1, -1 } };
static struct cgroup_search kept_for;
static bool is_kept, is_swept;

static void begin_anew(void)
{
	place_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	kept = (struct cgroup_place){ .parts = { -1, -1, -1 } };
	kept_for = (struct cgroup_search){ 0 };
	is_kept = is_swept = false;
}
AFTER_FORK(begin_anew);

/* ---- leaves that nobody owns any more --------------------------------------------------------------------------- */

static void empty_group(const struct cgroup_ops *ops, struct cgroup *ret_group)
{
	*ret_group = (struct cgroup){ .ops = ops,
		                      .parts = { -1, -1, -1 },
		                      .joins = { -1, -1, -1 },
		                      .born = -1,
		                      .aside = -1,
		                      .counters = { -1, -1, -1, -1, -1 } };
}

static int open_leaf(const struct cgroup_place *place, struct cgroup *group)
{
	int opened = 0;
	for (int i = 0; i < CGROUP_PARTS; i++) {
		if (place->parts[i] < 0)
			continue;
		group->parts[i] = cgroup_file_open_own(place->parts[i], group->name);
		opened += group->parts[i] >= 0;
	}
	return opened;
}

/* Each part: a sweep may see another first, or one alone. Only the owner may open them: a process that can open them
 * can also lock them, and so keep a command from having a group, or a stale one from being removed. */
static bool lock_leaf(const struct cgroup *group)
{
	for (int i = 0; i < CGROUP_PARTS; i++)
		if (group->parts[i] >= 0 && flock(group->parts[i], LOCK_EX | LOCK_NB) < 0)
			return false;
	return true;
}

/* Its supervisor's pid is unused; or it was made so long ago that its supervisor, if alive, has locked it. By now the
 * pid may belong to another process. */
static bool may_be_abandoned(const char *name)
{
	char *end;
	struct timespec now;
	long pid = strtol(name + strlen(PREFIX), &end, 10);
	if (pid < 1 || *end != '-')
		return false;
	if (kill((pid_t)pid, 0) < 0 && errno == ESRCH)
		return true;
	uint64_t made_ms = id_time_ms(end + 1);
	clock_gettime(CLOCK_REALTIME, &now);
	return made_ms && made_ms + LOCKED_BY_MS < (uint64_t)now.tv_sec * 1000;
}

/* Its supervisor may be in another pid namespace: then only the lock shows that it is alive. */
static void sweep_one(const struct cgroup_place *place, const char *name)
{
	struct cgroup group;
	if (!may_be_abandoned(name))
		return;
	empty_group(place->ops, &group);
	if (snprintf(group.name, sizeof(group.name), "%s", name) >= (int)sizeof(group.name))
		return;
	/* What is not gone at once is left to the next. */
	if (open_leaf(place, &group) && lock_leaf(&group))
		remove_leaf(&group, 1);
	close_parts(group.parts);
}

static void sweep_part(const struct cgroup_place *place, int part)
{
	uncleared _Alignas(struct dirent64) char entries[8192];
	auto_close int fd = openat(place->parts[part], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (ssize_t length; fd >= 0 && (length = getdents64(fd, entries, sizeof(entries))) > 0;)
		for (ssize_t at = 0; at < length;) {
			const struct dirent64 *entry = (const void *)(entries + at);
			at += entry->d_reclen;
			if (!strncmp(entry->d_name, PREFIX, strlen(PREFIX)))
				sweep_one(place, entry->d_name);
		}
}

/* A caller may be in different places of different trees, and one of these gone with all that was in it. */
static void sweep(const struct cgroup_place *place)
{
	for (int part = 0; part < CGROUP_PARTS; part++)
		if (place->parts[part] >= 0)
			sweep_part(place, part);
}

/* ---- a leaf ----------------------------------------------------------------------------------------------------- */

void cgroup_name(char ret_name[static CGROUP_NAME_SIZE])
{
	char id[ID_SIZE];
	id_make(id);
	snprintf(ret_name, CGROUP_NAME_SIZE, PREFIX "%d-%s", (int)getpid(), id);
}

static bool make_leaf(const struct cgroup_place *place, struct cgroup *group)
{
	cgroup_name(group->name);
	int wanted = 0, made = 0;
	for (int i = 0; i < CGROUP_PARTS && made == wanted; i++)
		if (place->parts[i] >= 0) {
			wanted++;
			made += mkdirat(place->parts[i], group->name, 0700) == 0;
		}
	if (made == wanted && open_leaf(place, group) == wanted && lock_leaf(group))
		return true;
	int saved = errno;
	close_parts(group->parts);
	/* It is empty still; and a part that could not be opened must not be left, either. */
	for (int i = 0; i < CGROUP_PARTS && made; i++)
		if (place->parts[i] >= 0) {
			unlinkat(place->parts[i], group->name, AT_REMOVEDIR);
			made--;
		}
	errno = saved;
	return false;
}

static bool same(const char *one, const char *other)
{
	return one == other || (one && other && !strcmp(one, other));
}

static void drop_place(void)
{
	close_parts(kept.parts);
	free((char *)kept_for.directory);
	free((char *)kept_for.root);
	free((char *)kept_for.self);
	kept_for = (struct cgroup_search){ 0 };
	is_kept = false;
}

void cgroup_forget(void)
{
	pthread_mutex_lock(&place_lock);
	drop_place();
	pthread_mutex_unlock(&place_lock);
}

static void keep_place(const struct cgroup_search *search)
{
	drop_place();
	find_place(search, &kept);
	kept_for = (struct cgroup_search){
		.directory = search->directory ? strdup(search->directory) : NULL,
		.root = search->root ? strdup(search->root) : NULL,
		.self = search->self ? strdup(search->self) : NULL,
	};
	is_kept = true;
	is_swept = !kept.ops;
}

static bool fits(const struct cgroup_search *search)
{
	return is_kept && same(search->directory, kept_for.directory) && same(search->root, kept_for.root) &&
	       same(search->self, kept_for.self);
}

static void make_in_place(const struct cgroup_search *search, struct cgroup *group)
{
	if (is_unwanted(search)) {
		empty_group(NULL, group);
		snprintf(group->why, sizeof(group->why), UNWANTED);
		return;
	}
	/* The place may be gone, or a sweep was faster: one that cannot see this process removes what is not locked
	 * yet. */
	for (int attempt = 0; attempt < MAKE_ATTEMPTS; attempt++) {
		if (attempt || !fits(search))
			keep_place(search);
		empty_group(kept.ops, group);
		if (!kept.ops) {
			memcpy(group->why, kept.why, sizeof(group->why));
			return;
		}
		if (make_leaf(&kept, group))
			return;
		empty_group(NULL, group);
		snprintf(group->why, sizeof(group->why), "no group can be made in %.160s: %s", kept.path,
		         strerror(errno));
	}
}

static int open_counter(const struct cgroup *group, enum cgroup_counter counter)
{
	int part = group->parts[group->ops->counters[counter].part];
	return part < 0 ? -1 : openat(part, group->ops->counters[counter].file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
}

static void limit(struct cgroup *group, const struct cgroup_bounds *bounds)
{
	group->bounds = *bounds;
	if (bounds->processes && !bounds->without_init)
		group->bounds.processes -= group->ops->outside;
	group->ops->limit(group, &group->bounds);
}

void cgroup_make(const struct cgroup_search *search, const struct cgroup_bounds *bounds, struct cgroup *ret_group)
{
	pthread_mutex_lock(&place_lock);
	make_in_place(search, ret_group);
	pthread_mutex_unlock(&place_lock);
	if (!ret_group->ops)
		return;
	limit(ret_group, bounds);
	ret_group->ops->open_joins(ret_group);
	/* Not at the end, where a caller waits. */
	for (int i = 0; i < CGROUP_COUNTER_MAX; i++)
		if (i != CGROUP_PROCESS_REFUSALS)
			ret_group->counters[i] = open_counter(ret_group, i);
}

void cgroup_enter(struct cgroup *group, struct launch *launch)
{
	_Static_assert(ARRAY_SIZE(launch->group_joins) == ARRAY_SIZE(group->joins), "a file for each part");
	launch->group_fd = group->ops ? group->born : -1;
	launch->in_group = group->ops;
	launch->command_joins = group->ops && group->ops->outside;
	for (int i = 0; i < CGROUP_PARTS; i++)
		launch->group_joins[i] = group->ops ? group->joins[i] : -1;
	launch->group_most = launch->group_fd >= 0 && group->bounds.at_birth ? group->bounds.processes : 0;
	if (launch->group_most && !launch->become)
		cgroup_file_write_number(launch->group_fd, "pids.max", launch->group_most);
}

static uint64_t read_counter(const struct cgroup *group, enum cgroup_counter counter)
{
	int fd = group->counters[counter];
	return fd < 0 ? 0 :
	                cgroup_file_number(fd, group->ops->counters[counter].key) / group->ops->counters[counter].unit;
}

/* Once for each place that was found. */
static void sweep_once(void)
{
	pthread_mutex_lock(&place_lock);
	if (!is_swept)
		sweep(&kept);
	is_swept = true;
	pthread_mutex_unlock(&place_lock);
}

void cgroup_entered(struct cgroup *group)
{
	if (!group->ops)
		return;
	close_parts(group->joins);
	if (group->ops->entered)
		group->ops->entered(group);
	sweep_once();
}

void cgroup_sweep_now(const struct cgroup_search *search)
{
	if (is_unwanted(search))
		return;
	pthread_mutex_lock(&place_lock);
	if (!fits(search))
		keep_place(search);
	is_swept = !kept.ops;
	pthread_mutex_unlock(&place_lock);
	sweep_once();
}

bool cgroup_kill(struct cgroup *group)
{
	return !group->ops || group->ops->kill(group);
}

bool cgroup_freeze(struct cgroup *group, pid_t init)
{
	return group->ops && group->ops->freeze && group->ops->freeze(group, init);
}

bool cgroup_thaw(struct cgroup *group, pid_t init)
{
	return group->ops->thaw(group, init);
}

void cgroup_give_way(const struct cgroup *group)
{
	if (group->ops && group->parts[group->ops->lesser.part] >= 0)
		cgroup_file_write(group->parts[group->ops->lesser.part], group->ops->lesser.file,
		                  group->ops->lesser.value);
}

void cgroup_usage(const struct cgroup *group, struct cgroup_usage *ret_usage)
{
	*ret_usage = (struct cgroup_usage){ 0 };
	if (!group->ops)
		return;
	*ret_usage = (struct cgroup_usage){
		.memory_peak_bytes = read_counter(group, CGROUP_MEMORY_PEAK),
		.oom_kills = read_counter(group, CGROUP_OOM_KILLS),
		.process_peak = read_counter(group, CGROUP_PROCESS_PEAK),
		.cpu_us = read_counter(group, CGROUP_CPU_TIME),
	};
	/* A command that was never near the limit was not refused by it. The peak is not exact: the kernel counts it
	 * without a lock. */
	if (!ret_usage->process_peak || ret_usage->process_peak > group->bounds.processes / 2) {
		auto_close int fd = open_counter(group, CGROUP_PROCESS_REFUSALS);
		ret_usage->process_refusals =
			fd < 0 ? 0 : cgroup_file_number(fd, group->ops->counters[CGROUP_PROCESS_REFUSALS].key);
	}
	if (ret_usage->process_peak && !group->bounds.without_init)
		ret_usage->process_peak += group->ops->outside;
}


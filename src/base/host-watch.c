/* See host-watch.h. inotify queues an event before the system call that caused it returns, and reports an overflow of
 * its queue. Changes that it does not report are excluded: only filesystems that change through this kernel alone are
 * watched; a path is watched by every directory on the way (host-watch-way.c), since a watch is on an inode and not on
 * a name; mounts are compared by the caller (`version`). A write through a mapping is reported when the mapping is
 * removed.
 *
 * An event is about a name in a directory, or about the inode itself. A claim says which set depends on which name;
 * events without a claim are ignored, so a busy /tmp on the way to a path invalidates nothing. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>

#include "base/cleanup.h"
#include "base/host-watch-claim.h"

#define BUCKETS 512
#define CLAIMS_MAX 16384
#define EVENTS_SIZE 4096
/* More events than this at once: everything may have changed. */
#define READS_MAX 256

struct claim {
	struct claim *next;
	struct host_watch_set *watches;
	int watch;
	unsigned era;                   /* of the set, when the claim was last made */
	bool all;                       /* any name in it */
	char name[];                    /* or this one; or "": the inode itself alone */
};

struct host_watch_set {
	struct host_watch *host_watch;
	struct host_watch_set *next;
	bool begun, watching, broken;
	bool unfit;                     /* cannot be watched: not tried again */
	unsigned era;                   /* how often it was begun */
	bool tracks;                    /* records which watches had events, instead of breaking */
	int changed[HOST_WATCH_CHANGED_MAX];
	size_t changed_count;
	uint64_t version;
};

struct host_watch {
	pthread_mutex_t mutex;
	int fd;                         /* or -1: nothing is watched yet, or cannot be */
	bool paused;
	pid_t pid;                      /* a forked child shares the queue and would take the events */
	struct host_watch_set *sets;
	size_t claim_count;
	struct claim *claims[BUCKETS];
};

struct host_watch *host_watch_new(void)
{
	struct host_watch *host_watch = calloc(1, sizeof(*host_watch));
	if (!host_watch)
		return NULL;
	pthread_mutex_init(&host_watch->mutex, NULL);
	host_watch->fd = -1;
	host_watch->pid = getpid();
	return host_watch;
}

struct host_watch_set *host_watch_set_new(struct host_watch *host_watch)
{
	struct host_watch_set *watches = calloc(1, sizeof(*watches));
	if (!watches)
		return NULL;
	watches->host_watch = host_watch;
	pthread_mutex_lock(&host_watch->mutex);
	watches->next = host_watch->sets;
	host_watch->sets = watches;
	pthread_mutex_unlock(&host_watch->mutex);
	return watches;
}

void host_watch_pause(struct host_watch *host_watch, bool paused)
{
	pthread_mutex_lock(&host_watch->mutex);
	host_watch->paused = paused;
	pthread_mutex_unlock(&host_watch->mutex);
}

static struct claim **bucket(struct host_watch *host_watch, int watch)
{
	return &host_watch->claims[(unsigned)watch % BUCKETS];
}

/* The claim that *at leads to, and the watch with the last claim to it. */
static void drop_claim(struct host_watch *host_watch, struct claim **at)
{
	struct claim *claim = *at;
	*at = claim->next;
	struct claim *other = *bucket(host_watch, claim->watch);
	while (other && other->watch != claim->watch)
		other = other->next;
	if (!other && host_watch->fd >= 0)
		inotify_rm_watch(host_watch->fd, claim->watch);
	free(claim);
	host_watch->claim_count--;
}

/* Drops the claims of a set that were made before this era; NULL: all claims. */
static void drop_claims(struct host_watch *host_watch, const struct host_watch_set *watches, unsigned era)
{
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct claim **at = &host_watch->claims[i], *claim; (claim = *at);) {
			if (watches && (claim->watches != watches || claim->era >= era)) {
				at = &claim->next;
				continue;
			}
			drop_claim(host_watch, at);
		}
}

void host_watch_set_free(struct host_watch_set *watches)
{
	if (!watches)
		return;
	struct host_watch *host_watch = watches->host_watch;
	pthread_mutex_lock(&host_watch->mutex);
	drop_claims(host_watch, watches, UINT_MAX);
	for (struct host_watch_set **at = &host_watch->sets; *at; at = &(*at)->next)
		if (*at == watches) {
			*at = watches->next;
			break;
		}
	pthread_mutex_unlock(&host_watch->mutex);
	free(watches);
}

void host_watch_free(struct host_watch *host_watch)
{
	if (!host_watch)
		return;
	if (host_watch->fd >= 0)
		close(take_fd(&host_watch->fd));
	drop_claims(host_watch, NULL, 0);
	pthread_mutex_destroy(&host_watch->mutex);
	free(host_watch);
}

/* ---- hearing ---------------------------------------------------------------------------------------------------- */

static void break_all(struct host_watch *host_watch)
{
	for (struct host_watch_set *watches = host_watch->sets; watches; watches = watches->next)
		watches->broken = true;
}

static void tell(struct host_watch_set *watches, int watch)
{
	if (watches->tracks && watches->changed_count && watches->changed[watches->changed_count - 1] == watch)
		return;
	if (watches->tracks && watches->changed_count < HOST_WATCH_CHANGED_MAX)
		watches->changed[watches->changed_count++] = watch;
	else
		watches->broken = true;
}

static void take_event(struct host_watch *host_watch, const struct inotify_event *event)
{
	if (event->mask & IN_Q_OVERFLOW) {
		break_all(host_watch);
		return;
	}
	for (struct claim *claim = *bucket(host_watch, event->wd); claim; claim = claim->next)
		if (claim->watch == event->wd && claim->era == claim->watches->era &&
		    (!event->len || claim->all || !strcmp(claim->name, event->name)))
			tell(claim->watches, event->wd);
}

/* False if events may have been lost. */
static bool read_events(struct host_watch *host_watch)
{
	_Alignas(struct inotify_event) uncleared char events[EVENTS_SIZE];
	for (int reads = 0; reads < READS_MAX; reads++) {
		ssize_t size = read(host_watch->fd, events, sizeof(events));
		if (size < 0 && errno == EINTR)
			continue;
		if (size <= 0)
			return size < 0 && errno == EAGAIN;
		for (ssize_t at = 0; at < size;) {
			const struct inotify_event *event = (const void *)(events + at);
			take_event(host_watch, event);
			at += (ssize_t)(sizeof(*event) + event->len);
		}
	}
	return false;
}

bool host_watch_poll(struct host_watch *host_watch)
{
	pthread_mutex_lock(&host_watch->mutex);
	bool watching = host_watch->fd >= 0;
	if (watching && (host_watch->pid != getpid() || !read_events(host_watch)))
		break_all(host_watch);
	pthread_mutex_unlock(&host_watch->mutex);
	return watching;
}

bool host_watch_unchanged(const struct host_watch_set *watches, uint64_t version)
{
	pthread_mutex_lock(&watches->host_watch->mutex);
	bool stands = watches->watching && !watches->broken && watches->version == version;
	pthread_mutex_unlock(&watches->host_watch->mutex);
	return stands;
}

/* ---- watching --------------------------------------------------------------------------------------------------- */

void host_watch_begin(struct host_watch_set *watches, uint64_t version)
{
	struct host_watch *host_watch = watches->host_watch;
	pthread_mutex_lock(&host_watch->mutex);
	/* What is watched still, and will be again, is not given up in between: where a directory has many names, the
	 * kernel goes over all of them when the first watch comes. */
	drop_claims(host_watch, watches, watches->era++);
	bool watch = watches->begun && !host_watch->paused && host_watch->pid == getpid();
	if (watch && host_watch->fd < 0)
		host_watch->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	watches->watching = watch && !watches->unfit && host_watch->fd >= 0;
	watches->begun = true;
	watches->broken = watches->tracks = false;
	watches->changed_count = 0;
	watches->version = version;
	pthread_mutex_unlock(&host_watch->mutex);
}

int host_watch_take_changed(struct host_watch_set *watches, uint64_t version,
                            int ret_watches[static HOST_WATCH_CHANGED_MAX])
{
	int count = -1;
	pthread_mutex_lock(&watches->host_watch->mutex);
	if (watches->watching && !watches->broken && watches->version == version) {
		count = (int)watches->changed_count;
		memcpy(ret_watches, watches->changed, watches->changed_count * sizeof(*ret_watches));
		watches->changed_count = 0;
	}
	pthread_mutex_unlock(&watches->host_watch->mutex);
	return count;
}

bool host_watch_is_active(const struct host_watch_set *watches)
{
	if (!watches)
		return false;
	pthread_mutex_lock(&watches->host_watch->mutex);
	bool active = watches->watching && !watches->broken;
	pthread_mutex_unlock(&watches->host_watch->mutex);
	return active;
}

/* An existing claim of this set. */
static struct claim *find_claim(struct host_watch *host_watch, const struct host_watch_set *watches, int watch,
                                const char *name)
{
	struct claim *claim = *bucket(host_watch, watch);
	while (claim && (claim->watch != watch || claim->watches != watches || claim->all != !name ||
	                 (name && strcmp(claim->name, name))))
		claim = claim->next;
	return claim;
}

/* `name`: in the directory, NULL for any. False where it cannot be watched. */
static bool add_claim(struct host_watch_set *watches, int watch, const char *name)
{
	struct host_watch *host_watch = watches->host_watch;
	size_t length = name ? strlen(name) : 0;
	struct claim *claim = find_claim(host_watch, watches, watch, name);
	if (claim) {
		claim->era = watches->era;
		return true;
	}
	claim = host_watch->claim_count < CLAIMS_MAX ? malloc(sizeof(*claim) + length + 1) : NULL;
	if (!claim)
		return false;
	*claim = (struct claim){ .next = *bucket(host_watch, watch),
		                 .watches = watches,
		                 .watch = watch,
		                 .era = watches->era,
		                 .all = !name };
	memcpy(claim->name, name ? name : "", length + 1);
	*bucket(host_watch, watch) = claim;
	host_watch->claim_count++;
	return true;
}

int host_watch_claim(struct host_watch_set *watches, const char *path, uint32_t mask, const char *name)
{
	int watch = inotify_add_watch(watches->host_watch->fd, path, mask);
	if (watch < 0)
		return -errno;
	return add_claim(watches, watch, name) ? watch : -ENOMEM;
}

int host_watch_fd(struct host_watch_set *watches, int fd)
{
	char path[64];
	int watch = -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d/.", fd);
	pthread_mutex_lock(&watches->host_watch->mutex);
	if (watches->watching && !watches->broken && host_watch_is_local(fd))
		watch = host_watch_claim(watches, path, HOST_WATCH_DIRECTORY, NULL);
	watches->tracks |= watch >= 0;
	pthread_mutex_unlock(&watches->host_watch->mutex);
	return watch < 0 ? -1 : watch;
}

void host_watch_remove(struct host_watch_set *watches, int watch)
{
	struct host_watch *host_watch = watches->host_watch;
	pthread_mutex_lock(&host_watch->mutex);
	for (struct claim **at = bucket(host_watch, watch); *at; at = &(*at)->next)
		if ((*at)->watch == watch && (*at)->watches == watches) {
			drop_claim(host_watch, at);
			break;
		}
	pthread_mutex_unlock(&host_watch->mutex);
}

void host_watch_way(struct host_watch_set *watches, const char *path, enum host_watch_end end)
{
	if (!watches)
		return;
	pthread_mutex_lock(&watches->host_watch->mutex);
	if (watches->watching && !watches->broken && host_watch_claim_way(watches, path, end) < 0)
		watches->broken = watches->unfit = true;
	pthread_mutex_unlock(&watches->host_watch->mutex);
}

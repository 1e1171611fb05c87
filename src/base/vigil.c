/* See vigil.h. inotify tells of a change before the call that made it returns, so whoever reads after it has been told; and
 * it says so where it had to leave something out. What it does not tell is ruled out: only filesystems that change by this
 * kernel's calls alone are watched, a path is watched by every directory on the way (vigil-way.c), since a watch is on an
 * inode and not on a name, and mounts are the caller's to compare (`version`). What is written through a mapping is told
 * when that is gone.
 *
 * An event is about a name in a directory, or about the inode itself. A claim says which post cares for which name; those
 * nobody cares for are passed over, so that a busy /tmp on the way to somewhere breaks nothing. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>

#include "base/cleanup.h"
#include "base/vigil-claim.h"

#define BUCKETS 512
#define CLAIMS_MAX 16384
#define EVENTS_SIZE 4096
/* However much is told at once: then everything may have changed. */
#define READS_MAX 256

struct claim {
	struct claim *next;
	struct vigil_post *post;
	int watch;
	unsigned era;                   /* of the post, when it was last made */
	bool all;                       /* any name in it */
	char name[];                    /* or this one; or "": the inode itself alone */
};

struct vigil_post {
	struct vigil *vigil;
	struct vigil_post *next;
	bool begun, watching, broken;
	bool unfit;                     /* cannot be watched: not tried again */
	unsigned era;                   /* how often it was begun */
	bool tracks;                    /* which of its watches were told of, instead of breaking */
	int changed[VIGIL_CHANGED_MAX];
	size_t changed_count;
	uint64_t version;
};

struct vigil {
	pthread_mutex_t mutex;
	int fd;                         /* or -1: nothing is watched yet, or cannot be */
	bool asleep;
	pid_t pid;                      /* a forked child shares what is told, and would take it away */
	struct vigil_post *posts;
	size_t claim_count;
	struct claim *claims[BUCKETS];
};

struct vigil *vigil_new(void)
{
	struct vigil *vigil = calloc(1, sizeof(*vigil));
	if (!vigil)
		return NULL;
	pthread_mutex_init(&vigil->mutex, NULL);
	vigil->fd = -1;
	vigil->pid = getpid();
	return vigil;
}

struct vigil_post *vigil_post_new(struct vigil *vigil)
{
	struct vigil_post *post = calloc(1, sizeof(*post));
	if (!post)
		return NULL;
	post->vigil = vigil;
	pthread_mutex_lock(&vigil->mutex);
	post->next = vigil->posts;
	vigil->posts = post;
	pthread_mutex_unlock(&vigil->mutex);
	return post;
}

void vigil_sleep(struct vigil *vigil, bool asleep)
{
	pthread_mutex_lock(&vigil->mutex);
	vigil->asleep = asleep;
	pthread_mutex_unlock(&vigil->mutex);
}

static struct claim **bucket(struct vigil *vigil, int watch)
{
	return &vigil->claims[(unsigned)watch % BUCKETS];
}

/* The claim that *at leads to, and the watch with the last claim to it. */
static void drop_claim(struct vigil *vigil, struct claim **at)
{
	struct claim *claim = *at;
	*at = claim->next;
	struct claim *other = *bucket(vigil, claim->watch);
	while (other && other->watch != claim->watch)
		other = other->next;
	if (!other && vigil->fd >= 0)
		inotify_rm_watch(vigil->fd, claim->watch);
	free(claim);
	vigil->claim_count--;
}

/* Drops the claims of a post that were made before this era; or all there are: NULL. */
static void drop_claims(struct vigil *vigil, const struct vigil_post *post, unsigned era)
{
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct claim **at = &vigil->claims[i], *claim; (claim = *at);) {
			if (post && (claim->post != post || claim->era >= era)) {
				at = &claim->next;
				continue;
			}
			drop_claim(vigil, at);
		}
}

void vigil_post_free(struct vigil_post *post)
{
	if (!post)
		return;
	struct vigil *vigil = post->vigil;
	pthread_mutex_lock(&vigil->mutex);
	drop_claims(vigil, post, UINT_MAX);
	for (struct vigil_post **at = &vigil->posts; *at; at = &(*at)->next)
		if (*at == post) {
			*at = post->next;
			break;
		}
	pthread_mutex_unlock(&vigil->mutex);
	free(post);
}

void vigil_free(struct vigil *vigil)
{
	if (!vigil)
		return;
	if (vigil->fd >= 0)
		close(take_fd(&vigil->fd));
	drop_claims(vigil, NULL, 0);
	pthread_mutex_destroy(&vigil->mutex);
	free(vigil);
}

/* ---- hearing ---------------------------------------------------------------------------------------------------- */

static void break_all(struct vigil *vigil)
{
	for (struct vigil_post *post = vigil->posts; post; post = post->next)
		post->broken = true;
}

static void tell(struct vigil_post *post, int watch)
{
	if (post->tracks && post->changed_count && post->changed[post->changed_count - 1] == watch)
		return;
	if (post->tracks && post->changed_count < VIGIL_CHANGED_MAX)
		post->changed[post->changed_count++] = watch;
	else
		post->broken = true;
}

static void take_event(struct vigil *vigil, const struct inotify_event *event)
{
	if (event->mask & IN_Q_OVERFLOW) {
		break_all(vigil);
		return;
	}
	for (struct claim *claim = *bucket(vigil, event->wd); claim; claim = claim->next)
		if (claim->watch == event->wd && claim->era == claim->post->era &&
		    (!event->len || claim->all || !strcmp(claim->name, event->name)))
			tell(claim->post, event->wd);
}

/* False where it is not known what was told. */
static bool read_events(struct vigil *vigil)
{
	_Alignas(struct inotify_event) uncleared char events[EVENTS_SIZE];
	for (int reads = 0; reads < READS_MAX; reads++) {
		ssize_t size = read(vigil->fd, events, sizeof(events));
		if (size < 0 && errno == EINTR)
			continue;
		if (size <= 0)
			return size < 0 && errno == EAGAIN;
		for (ssize_t at = 0; at < size;) {
			const struct inotify_event *event = (const void *)(events + at);
			take_event(vigil, event);
			at += (ssize_t)(sizeof(*event) + event->len);
		}
	}
	return false;
}

bool vigil_hear(struct vigil *vigil)
{
	pthread_mutex_lock(&vigil->mutex);
	bool watching = vigil->fd >= 0;
	if (watching && (vigil->pid != getpid() || !read_events(vigil)))
		break_all(vigil);
	pthread_mutex_unlock(&vigil->mutex);
	return watching;
}

bool vigil_stands(const struct vigil_post *post, uint64_t version)
{
	pthread_mutex_lock(&post->vigil->mutex);
	bool stands = post->watching && !post->broken && post->version == version;
	pthread_mutex_unlock(&post->vigil->mutex);
	return stands;
}

/* ---- watching --------------------------------------------------------------------------------------------------- */

void vigil_begin(struct vigil_post *post, uint64_t version)
{
	struct vigil *vigil = post->vigil;
	pthread_mutex_lock(&vigil->mutex);
	/* What is watched still, and will be again, is not given up in between: where a directory has many names, the kernel goes
	 * over all of them when the first watch comes. */
	drop_claims(vigil, post, post->era++);
	bool watch = post->begun && !vigil->asleep && vigil->pid == getpid();
	if (watch && vigil->fd < 0)
		vigil->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	post->watching = watch && !post->unfit && vigil->fd >= 0;
	post->begun = true;
	post->broken = post->tracks = false;
	post->changed_count = 0;
	post->version = version;
	pthread_mutex_unlock(&vigil->mutex);
}

int vigil_take_changed(struct vigil_post *post, uint64_t version, int ret_watches[static VIGIL_CHANGED_MAX])
{
	int count = -1;
	pthread_mutex_lock(&post->vigil->mutex);
	if (post->watching && !post->broken && post->version == version) {
		count = (int)post->changed_count;
		memcpy(ret_watches, post->changed, post->changed_count * sizeof(*ret_watches));
		post->changed_count = 0;
	}
	pthread_mutex_unlock(&post->vigil->mutex);
	return count;
}

bool vigil_watches(const struct vigil_post *post)
{
	if (!post)
		return false;
	pthread_mutex_lock(&post->vigil->mutex);
	bool watches = post->watching && !post->broken;
	pthread_mutex_unlock(&post->vigil->mutex);
	return watches;
}

/* What is claimed already, by this post. */
static struct claim *find_claim(struct vigil *vigil, const struct vigil_post *post, int watch, const char *name)
{
	struct claim *claim = *bucket(vigil, watch);
	while (claim && (claim->watch != watch || claim->post != post || claim->all != !name ||
	                 (name && strcmp(claim->name, name))))
		claim = claim->next;
	return claim;
}

/* `name`: in the directory, NULL for any. False where it cannot be watched. */
static bool add_claim(struct vigil_post *post, int watch, const char *name)
{
	struct vigil *vigil = post->vigil;
	size_t length = name ? strlen(name) : 0;
	struct claim *claim = find_claim(vigil, post, watch, name);
	if (claim) {
		claim->era = post->era;
		return true;
	}
	claim = vigil->claim_count < CLAIMS_MAX ? malloc(sizeof(*claim) + length + 1) : NULL;
	if (!claim)
		return false;
	*claim = (struct claim){ .next = *bucket(vigil, watch), .post = post, .watch = watch, .era = post->era, .all = !name };
	memcpy(claim->name, name ? name : "", length + 1);
	*bucket(vigil, watch) = claim;
	vigil->claim_count++;
	return true;
}

int vigil_claim(struct vigil_post *post, const char *path, uint32_t mask, const char *name)
{
	int watch = inotify_add_watch(post->vigil->fd, path, mask);
	if (watch < 0)
		return -errno;
	return add_claim(post, watch, name) ? watch : -ENOMEM;
}

int vigil_watch_open(struct vigil_post *post, int fd)
{
	char path[64];
	int watch = -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d/.", fd);
	pthread_mutex_lock(&post->vigil->mutex);
	if (post->watching && !post->broken && vigil_is_local(fd))
		watch = vigil_claim(post, path, VIGIL_DIRECTORY, NULL);
	post->tracks |= watch >= 0;
	pthread_mutex_unlock(&post->vigil->mutex);
	return watch < 0 ? -1 : watch;
}

void vigil_unwatch(struct vigil_post *post, int watch)
{
	struct vigil *vigil = post->vigil;
	pthread_mutex_lock(&vigil->mutex);
	for (struct claim **at = bucket(vigil, watch); *at; at = &(*at)->next)
		if ((*at)->watch == watch && (*at)->post == post) {
			drop_claim(vigil, at);
			break;
		}
	pthread_mutex_unlock(&vigil->mutex);
}

void vigil_watch_way(struct vigil_post *post, const char *path, enum vigil_end end)
{
	if (!post)
		return;
	pthread_mutex_lock(&post->vigil->mutex);
	if (post->watching && !post->broken && vigil_claim_way(post, path, end) < 0)
		post->broken = post->unfit = true;
	pthread_mutex_unlock(&post->vigil->mutex);
}

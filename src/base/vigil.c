/* See vigil.h. inotify tells of a change before the call that made it returns, so whoever reads after it has been told; and
 * it says so where it had to leave something out. What it does not tell is ruled out here: only filesystems that change by
 * this kernel's calls alone are watched, a path is watched by every directory on the way, since a watch is on an inode and
 * not on a name, and mounts are the caller's to compare (`version`). What is written through a mapping is told when that is
 * gone.
 *
 * An event is about a name in a directory, or about the inode itself. A claim says which post cares for which name; those
 * nobody cares for are passed over, so that a busy /tmp on the way to somewhere breaks nothing. */
#include "base/vigil.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/cleanup.h"

#define BUCKETS 512
#define CLAIMS_MAX 16384
#define LINKS_MAX 40
#define EVENTS_SIZE 4096
/* However much is told at once: then everything may have changed. */
#define READS_MAX 256

#define MASK_ANY (IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF)
#define MASK_DIRECTORY (MASK_ANY | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR | IN_DONT_FOLLOW)
#define MASK_FILE (MASK_ANY | IN_MODIFY | IN_CLOSE_WRITE | IN_DONT_FOLLOW)

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

static const uint32_t local_filesystems[] = {
	EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, F2FS_SUPER_MAGIC, TMPFS_MAGIC, RAMFS_MAGIC, SQUASHFS_MAGIC,
};

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
	uint64_t version;
};

struct vigil {
	pthread_mutex_t mutex;
	int fd;                         /* or -1: nothing is watched yet, or cannot be */
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

static struct claim **bucket(struct vigil *vigil, int watch)
{
	return &vigil->claims[(unsigned)watch % BUCKETS];
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
			*at = claim->next;
			struct claim *other = *bucket(vigil, claim->watch);
			while (other && other->watch != claim->watch)
				other = other->next;
			if (!other && vigil->fd >= 0)
				inotify_rm_watch(vigil->fd, claim->watch);
			free(claim);
			vigil->claim_count--;
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

static void take_event(struct vigil *vigil, const struct inotify_event *event)
{
	if (event->mask & IN_Q_OVERFLOW) {
		break_all(vigil);
		return;
	}
	for (struct claim *claim = *bucket(vigil, event->wd); claim; claim = claim->next)
		if (claim->watch == event->wd && claim->era == claim->post->era &&
		    (!event->len || claim->all || !strcmp(claim->name, event->name)))
			claim->post->broken = true;
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

void vigil_hear(struct vigil *vigil)
{
	pthread_mutex_lock(&vigil->mutex);
	if (vigil->fd >= 0 && (vigil->pid != getpid() || !read_events(vigil)))
		break_all(vigil);
	pthread_mutex_unlock(&vigil->mutex);
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
	if (post->begun && vigil->fd < 0 && vigil->pid == getpid())
		vigil->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	post->watching = post->begun && !post->unfit && vigil->fd >= 0 && vigil->pid == getpid();
	post->begun = true;
	post->broken = false;
	post->version = version;
	pthread_mutex_unlock(&vigil->mutex);
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

static bool is_local(const char *path)
{
	struct statfs info;
	if (statfs(path, &info) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(local_filesystems); i++)
		if ((uint32_t)info.f_type == local_filesystems[i])
			return true;
	return false;
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

/* What is watched: a directory for `name` in it. 1: it cannot be passed, so that what is beneath it does not matter; the
 * directory it lies in tells of a change of that. */
static int watch_directory(struct vigil_post *post, const char *path, const char *name)
{
	int watch = inotify_add_watch(post->vigil->fd, path, MASK_DIRECTORY);
	if (watch < 0)
		return errno == EACCES && faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0 && errno == EACCES ? 1 : -1;
	return is_local(path) && add_claim(post, watch, name) ? 0 : -1;
}

/* A file that cannot be read has no contents for us; its directory tells if that changes. */
static int watch_file(struct vigil_post *post, const char *path)
{
	int watch = inotify_add_watch(post->vigil->fd, path, MASK_FILE);
	if (watch < 0)
		return errno == EACCES ? 0 : -1;
	return add_claim(post, watch, "") ? 0 : -1;
}

/* What matters of the path's end: what it leads to, which names that has in it, or the end itself where it is a link. */
enum end { END_FILE, END_NAMES, END_LINK };

/* The way so far, without a link in it ("" is the root), and what is left of the path. */
struct way {
	char at[PATH_MAX], rest[PATH_MAX];
	enum end end;
	int links;
};

/* Takes the first component off the rest. 1: there is none left. */
static int next_name(struct way *way, char name[NAME_MAX + 1])
{
	size_t slashes = strspn(way->rest, "/"), length = strcspn(way->rest + slashes, "/");
	if (length > NAME_MAX)
		return -1;
	memcpy(name, way->rest + slashes, length);
	name[length] = '\0';
	memmove(way->rest, way->rest + slashes + length, strlen(way->rest + slashes + length) + 1);
	return length ? 0 : 1;
}

static int follow_link(struct way *way, size_t before)
{
	uncleared char text[PATH_MAX];
	ssize_t length = readlink(way->at, text, sizeof(text) - 1);
	way->at[before] = '\0';
	if (length <= 0 || ++way->links > LINKS_MAX || (size_t)length + strlen(way->rest) + 2 > sizeof(text))
		return -1;
	text[length] = '\0';
	if (*text == '/')
		way->at[0] = '\0';
	strcpy(stpcpy(text + length, "/"), way->rest);
	strcpy(way->rest, text);
	return 0;
}

/* One component. 1: the way ends here, or nothing is there. */
static int step(struct vigil_post *post, struct way *way)
{
	uncleared char name[NAME_MAX + 1];
	struct stat info;
	size_t before = strlen(way->at);
	int status = next_name(way, name);
	if (status != 0 || !strcmp(name, "."))
		return status;
	if (!strcmp(name, "..")) {
		char *slash = strrchr(way->at, '/');
		if (slash)
			*slash = '\0';
		return 0;
	}
	status = watch_directory(post, before ? way->at : "/", name);
	if (status != 0)
		return status;
	if (before + strlen(name) + 2 > sizeof(way->at))
		return -1;
	strcpy(stpcpy(way->at + before, "/"), name);
	if (lstat(way->at, &info) < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == EACCES ? 1 : -1;
	if (S_ISLNK(info.st_mode))
		return way->end == END_LINK && !*way->rest ? 1 : follow_link(way, before);
	if (S_ISDIR(info.st_mode))
		return 0;
	status = watch_file(post, way->at);
	return status < 0 ? -1 : 1;
}

static int watch_way(struct vigil_post *post, const char *path, enum end kind)
{
	uncleared struct way way;
	struct stat info;
	int status = *path == '/' && strlen(path) < sizeof(way.rest) ? 0 : -1;
	if (status < 0)
		return -1;
	strcpy(way.rest, path);
	way.at[0] = '\0';
	way.end = kind;
	way.links = 0;
	while (status == 0)
		status = step(post, &way);
	if (status < 0)
		return -1;
	const char *end = *way.at ? way.at : "/";
	bool is_directory = lstat(end, &info) == 0 && S_ISDIR(info.st_mode);
	return is_directory && watch_directory(post, end, kind == END_NAMES ? NULL : "") < 0 ? -1 : 0;
}

static void watch(struct vigil_post *post, const char *path, enum end kind)
{
	if (!post)
		return;
	pthread_mutex_lock(&post->vigil->mutex);
	if (post->watching && !post->broken && watch_way(post, path, kind) < 0)
		post->broken = post->unfit = true;
	pthread_mutex_unlock(&post->vigil->mutex);
}

void vigil_watch(struct vigil_post *post, const char *path)
{
	watch(post, path, END_FILE);
}

void vigil_watch_link(struct vigil_post *post, const char *path)
{
	watch(post, path, END_LINK);
}

void vigil_watch_names(struct vigil_post *post, const char *directory)
{
	watch(post, directory, END_NAMES);
}

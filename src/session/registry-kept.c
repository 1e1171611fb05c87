/* See registry-kept.h. Before a record is believed, the lock is taken and only then is it heard whether anything changed:
 * who removes the session needs the lock alone, so either it waits, or what it did was told. The commands of a session share
 * the lock, which belongs to the open file and not to them; the last one gives it back. The first use of a session keeps
 * nothing yet. */
#include "session/registry-kept.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "base/lock.h"
#include "session/registry-file.h"

/* Each has a descriptor. The one that was used longest ago makes room. */
#define KEPT_MAX 64

struct kept_session {
	char *id;
	struct vigil_post *post;
	struct arena arena;
	struct session_record record;
	int lock_fd;                    /* or -1 */
	bool known;                     /* the record, and the lock is there */
	pid_t pid;                      /* a forked child shares the lock, and must not give it back */
	unsigned users;
	uint64_t used;
};

struct registry_kept {
	pthread_mutex_t mutex;
	struct vigil *vigil;
	const char *data_dir;
	struct kept_session *sessions[KEPT_MAX];
	size_t count;
	uint64_t clock;
};

struct registry_kept *registry_kept_new(struct vigil *vigil, const char *data_dir)
{
	struct registry_kept *kept = calloc(1, sizeof(*kept));
	if (!kept)
		return NULL;
	kept->vigil = vigil;
	kept->data_dir = data_dir;
	pthread_mutex_init(&kept->mutex, NULL);
	return kept;
}

static void forget(struct kept_session *session)
{
	if (session->pid == getpid())
		lock_release(&session->lock_fd);
	else if (session->lock_fd >= 0)
		close(take_fd(&session->lock_fd));
	arena_free(&session->arena);
}

static void session_free(struct kept_session *session)
{
	if (!session)
		return;
	forget(session);
	vigil_post_free(session->post);
	free(session->id);
	free(session);
}

void registry_kept_free(struct registry_kept *kept)
{
	if (!kept)
		return;
	for (size_t i = 0; i < kept->count; i++)
		session_free(kept->sessions[i]);
	pthread_mutex_destroy(&kept->mutex);
	free(kept);
}

static struct kept_session *session_new(struct vigil *vigil, const char *id)
{
	struct kept_session *session = calloc(1, sizeof(*session));
	if (!session)
		return NULL;
	session->lock_fd = -1;
	session->id = strdup(id);
	session->post = vigil_post_new(vigil);
	if (session->id && session->post)
		return session;
	session_free(session);
	return NULL;
}

/* The one of this id, made if need be; NULL: there is none to be had. */
static struct kept_session *find(struct registry_kept *kept, const char *id)
{
	struct kept_session **oldest = NULL;
	for (size_t i = 0; i < kept->count; i++) {
		struct kept_session **at = &kept->sessions[i];
		if (!strcmp((*at)->id, id))
			return *at;
		if (!(*at)->users && (!oldest || (*at)->used < (*oldest)->used))
			oldest = at;
	}
	struct kept_session *session = session_new(kept->vigil, id);
	if (!session)
		return NULL;
	if (kept->count < KEPT_MAX)
		return kept->sessions[kept->count++] = session;
	if (oldest) {
		session_free(*oldest);
		return *oldest = session;
	}
	session_free(session);
	return NULL;
}

/* With the lock held, is what is known still so? Without, the lock is given back. */
static bool stands(struct registry_kept *kept, struct kept_session *session, uint64_t mounts)
{
	if (!session->known || session->pid != getpid() ||
	    (!session->users && flock(session->lock_fd, LOCK_SH | LOCK_NB) < 0))
		return false;
	vigil_hear(kept->vigil);
	if (vigil_stands(session->post, mounts))
		return true;
	if (!session->users)
		flock(session->lock_fd, LOCK_UN);
	return false;
}

/* Reads it anew, watched; nobody else has it meanwhile. *ret_found is false where it is not there, or cannot be kept. */
static int renew(struct registry_kept *kept, struct kept_session *session, uint64_t mounts, bool *ret_found,
                 struct cordon_error *err)
{
	struct where where = { 0 };
	char path[PATH_MAX + 32];
	*ret_found = false;
	forget(session);
	vigil_begin(session->post, mounts);
	if (!vigil_watches(session->post) || where_find(kept->data_dir, session->id, &where, NULL) < 0)
		return 0;
	snprintf(path, sizeof(path), "%s/" REGISTRY_USE, where.path);
	vigil_watch_name(session->post, path);
	snprintf(path, sizeof(path), "%s/" REGISTRY_RECORD, where.path);
	vigil_watch(session->post, path);
	auto_unlock int lock = -1;
	if (registry_use(&session->arena, kept->data_dir, session->id, NULL, &lock, &session->record, ret_found, err) < 0)
		return -1;
	if (!*ret_found)
		return 0;
	session->pid = getpid();
	session->lock_fd = take_fd(&lock);
	return 0;
}

static void leave(struct kept_session *session)
{
	if (!--session->users && session->known && session->pid == getpid())
		flock(session->lock_fd, LOCK_UN);
}

/* 1: it was used in this way. */
static int use_kept(struct registry_kept *kept, const char *id, const struct session_record *first, uint64_t mounts,
                    struct kept_session **ret_session, struct cordon_error *err)
{
	struct kept_session *session = find(kept, id);
	if (!session)
		return 0;
	bool known = stands(kept, session, mounts);
	/* What is known and no longer so is in use, or somebody reads it just now: this one comes by itself. */
	if (!known && session->users)
		return 0;
	session->users++;
	session->used = ++kept->clock;
	int status = 0;
	if (!known) {
		session->known = false;
		pthread_mutex_unlock(&kept->mutex);
		status = renew(kept, session, mounts, &known, err);
		pthread_mutex_lock(&kept->mutex);
		session->known = known;
	}
	if (known && status == 0)
		status = registry_check_agrees(&session->record, first, err);
	if (!known || status < 0) {
		leave(session);
		return status;
	}
	*ret_session = session;
	return 1;
}

int registry_kept_use(struct registry_kept *kept, struct arena *arena, const char *id, const struct session_record *first,
                      uint64_t mounts, struct session_hold *ret_hold, struct session_record *ret_record, bool *ret_found,
                      struct cordon_error *err)
{
	struct session_hold hold = SESSION_HOLD_NONE;
	pthread_mutex_lock(&kept->mutex);
	int used = use_kept(kept, id, first, mounts, &hold.kept, err);
	pthread_mutex_unlock(&kept->mutex);
	if (used < 0)
		return -1;
	if (used) {
		*ret_record = hold.kept->record;
		*ret_found = true;
	} else if (registry_use(arena, kept->data_dir, id, first, &hold.lock_fd, ret_record, ret_found, err) < 0) {
		return -1;
	}
	*ret_hold = hold;
	return 0;
}

void registry_kept_release(struct registry_kept *kept, struct session_hold *hold)
{
	lock_release(&hold->lock_fd);
	struct kept_session *session = hold->kept;
	hold->kept = NULL;
	if (!session)
		return;
	pthread_mutex_lock(&kept->mutex);
	leave(session);
	pthread_mutex_unlock(&kept->mutex);
}

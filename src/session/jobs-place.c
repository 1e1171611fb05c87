/* A job's place, for the process that runs it: see jobs.h. Its directory is created under a temporary name (.new-…),
 * locked, and only then renamed: a process that finds it finds it complete. A directory without a record and without a
 * lock was left by a killed process. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/lock.h"
#include "base/remove.h"
#include "session/jobs-files.h"
#include "session/workspace.h"

#define RECORD_NEW "job.json.new"
#define END_ROOM 8192                   /* more than its end adds to a record, however its note is escaped */
#define NEW_PREFIX ".new-"

static int make_jobs(const char *data_dir, const char *session_id, int *ret_fd, struct cordon_error *err)
{
	char path[PATH_MAX], hash[WORKSPACE_HASH_LENGTH + 1];
	if (workspace_hash_to(session_id, hash) < 0)
		return fail_oom(err);
	for (int part = 0; part < 2; part++) {
		int length = snprintf(path, sizeof(path), "%s/" JOBS_DIRECTORY "%s%s", data_dir, part ? "/" : "",
		                      part ? hash : "");
		if ((size_t)length >= sizeof(path) || (mkdir(path, 0700) < 0 && errno != EEXIST))
			return jobs_refuse((size_t)length >= sizeof(path) ? ENAMETOOLONG : errno, path,
			                   "the directory of the session's jobs cannot be made", err);
	}
	*ret_fd = jobs_open(data_dir, session_id);
	return *ret_fd >= 0 ? 0 : jobs_refuse(errno, path, "the directory of the session's jobs cannot be opened", err);
}

static bool is_unfinished(const char *name)
{
	return !strncmp(name, NEW_PREFIX, sizeof(NEW_PREFIX) - 1);
}

/* Takes away what is of no use, and counts what runs. The lock is held. */
static int settle(int parent_fd, size_t *ret_running)
{
	struct arena arena = { 0 };
	struct strings unfinished = { 0 }, jobs = { 0 }, ended = { 0 };
	size_t running = 0;
	int result = jobs_names(&arena, parent_fd, is_unfinished, &unfinished);
	if (result == 0)
		result = jobs_names(&arena, parent_fd, jobs_is_id, &jobs);
	for (size_t i = 0; i < unfinished.count; i++)
		remove_tree(parent_fd, unfinished.items[i]);
	for (size_t i = 0; result == 0 && i < jobs.count; i++) {
		auto_close int fd = jobs_open_directory(parent_fd, jobs.items[i]);
		if (fd < 0 ? errno != ENOTDIR && errno != ENOENT : jobs_is_held(fd))
			running++;
		else if (fd < 0 || jobs_has_record(fd))
			result = strings_add(&arena, &ended, jobs.items[i]);
		else
			remove_tree(parent_fd, jobs.items[i]);
	}
	for (size_t i = 0; result == 0 && i + JOBS_KEPT <= ended.count; i++)
		remove_tree(parent_fd, ended.items[i]);
	arena_free(&arena);
	*ret_running = running;
	return result;
}

static int make_place(int parent_fd, struct job_place *place)
{
	char name[sizeof(NEW_PREFIX) + ID_SIZE];
	snprintf(name, sizeof(name), NEW_PREFIX "%s", place->id);
	if (mkdirat(parent_fd, name, 0700) < 0 || (place->fd = jobs_open_directory(parent_fd, name)) < 0)
		return -1;
	place->lock_fd = openat(place->fd, JOBS_LOCK, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (place->lock_fd < 0 || flock(place->lock_fd, LOCK_EX | LOCK_NB) < 0 ||
	    mkfifoat(place->fd, JOBS_CONTROL, 0600) < 0)
		return -1;
	/* Open for writing, too, so that it never ends. */
	place->control_fd = openat(place->fd, JOBS_CONTROL, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return place->control_fd < 0 ? -1 : renameat(parent_fd, name, parent_fd, place->id);
}

int jobs_enter(const char *data_dir, const char *session_id, const char *id, struct job_place *ret_place,
               struct cordon_error *err)
{
	struct job_place place = JOB_PLACE_NONE;
	size_t running = 0;
	snprintf(place.id, sizeof(place.id), "%s", id);
	if (make_jobs(data_dir, session_id, &place.parent_fd, err) < 0)
		return -1;
	auto_close int lock =
		openat(place.parent_fd, JOBS_LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	int result = lock < 0 || lock_wait(lock, LOCK_EX, LOCK_PATIENCE_MS) < 0
	                     ? jobs_refuse(errno, session_id, "the session's jobs cannot be locked", err)
	                     : settle(place.parent_fd, &running) < 0
	                     ? jobs_refuse(errno, session_id, "the session's jobs cannot be counted", err) : 0;
	if (result == 0 && running >= JOBS_MAX) {
		fail(err, CORDON_E_SESSION_BUSY, 0, session_id, "%d jobs run in the session already", JOBS_MAX);
		fail_remedy(err,
		            "wait for one to end (cordon job wait), or end one (cordon job kill): cordon job list");
		result = fail_boundary(err, "session");
	} else if (result == 0 && make_place(place.parent_fd, &place) < 0) {
		result = jobs_refuse(errno, place.id, "the job's directory cannot be made", err);
	}
	if (result < 0)
		jobs_leave(&place, false);
	else
		*ret_place = place;
	return result;
}

/* The disk may be full when it ends. */
static int reserve_end(const struct job_place *place, size_t length)
{
	size_t whole = length + END_ROOM;
	auto_free char *blank = malloc(whole);
	if (!blank)
		return -ENOMEM;
	memset(blank, ' ', whole);
	return file_create(place->fd, RECORD_NEW, blank, whole, NULL);
}

/* In the room that was reserved. */
static bool fill_reserved(const struct job_place *place, const char *text, size_t length)
{
	struct stat info;
	auto_close int fd = openat(place->fd, RECORD_NEW, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && (size_t)info.st_size >= length &&
	       pwrite(fd, text, length, 0) == (ssize_t)length && ftruncate(fd, (off_t)length) == 0;
}

int jobs_write(const struct job_place *place, const struct job_record *record, struct cordon_error *err)
{
	auto_free char *text = job_record_write(record);
	if (!text)
		return fail_oom(err);
	size_t length = strlen(text);
	int result = 0;
	if (record->state == JOB_RUNNING || !fill_reserved(place, text, length)) {
		unlinkat(place->fd, RECORD_NEW, 0);
		result = file_create(place->fd, RECORD_NEW, text, length, NULL);
	}
	if (result == 0 && renameat(place->fd, RECORD_NEW, place->fd, JOBS_RECORD) < 0)
		result = -errno;
	if (result == 0 && record->state == JOB_RUNNING)
		result = reserve_end(place, length);
	return result < 0 ? jobs_refuse(-result, place->id, "the job's record cannot be written", err) : 0;
}

void jobs_leave(struct job_place *place, bool remove)
{
	if (remove && place->parent_fd >= 0)
		remove_tree(place->parent_fd, place->id);
	/* Before it is closed: who watches for that looks at once. */
	if (place->lock_fd >= 0)
		flock(place->lock_fd, LOCK_UN);
	int *const owned[] = { &place->lock_fd, &place->control_fd, &place->fd, &place->parent_fd };
	for (size_t i = 0; i < ARRAY_SIZE(owned); i++) {
		cleanup_close(owned[i]);
		*owned[i] = -1;
	}
}

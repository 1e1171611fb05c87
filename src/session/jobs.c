/* Jobs on disk: see jobs.h. A job's directory is made under a name that nobody looks for (.new-…), locked, and only then
 * renamed: whoever sees one sees it whole. What was never filled with a record, and nobody holds, a killed process left. */
#include "session/jobs.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/lock.h"
#include "base/remove.h"
#include "session/workspace.h"

#define RECORD "job.json"
#define RECORD_NEW "job.json.new"
#define LOCK "lock"
#define CONTROL "control"
#define NEW_PREFIX ".new-"
#define RECORD_SIZE_MAX ((size_t)1 << 20)
#define LOOK_AGAIN_MS 1000              /* the kernel may not tell */
#define LOOK_SOON_MS 20

static int refuse(int number, const char *subject, const char *what, struct cordon_error *err)
{
	fail(err, CORDON_E_INTERNAL, number, subject, "%s", what);
	fail_remedy(err, "check that the data directory can be written to");
	return fail_boundary(err, "session");
}

/* ---- directories ------------------------------------------------------------------------------------------------- */

static int open_directory(int parent_fd, const char *name)
{
	return openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* That of all sessions, or of one. -1 with errno. */
static int open_jobs(const char *data_dir, const char *session_id)
{
	char path[PATH_MAX], hash[WORKSPACE_HASH_LENGTH + 1];
	if (snprintf(path, sizeof(path), "%s/" JOBS_DIRECTORY, data_dir) >= (int)sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	auto_close int all = open_directory(AT_FDCWD, path);
	if (all < 0 || !session_id)
		return take_fd(&all);
	if (workspace_hash_to(session_id, hash) < 0) {
		errno = ENOMEM;
		return -1;
	}
	return open_directory(all, hash);
}

static int make_jobs(const char *data_dir, const char *session_id, int *ret_fd, struct cordon_error *err)
{
	char path[PATH_MAX], hash[WORKSPACE_HASH_LENGTH + 1];
	if (workspace_hash_to(session_id, hash) < 0)
		return fail_oom(err);
	for (int part = 0; part < 2; part++) {
		int length = snprintf(path, sizeof(path), "%s/" JOBS_DIRECTORY "%s%s", data_dir, part ? "/" : "", part ? hash : "");
		if ((size_t)length >= sizeof(path) || (mkdir(path, 0700) < 0 && errno != EEXIST))
			return refuse((size_t)length >= sizeof(path) ? ENAMETOOLONG : errno, path,
			              "the directory of the session's jobs cannot be made", err);
	}
	*ret_fd = open_jobs(data_dir, session_id);
	return *ret_fd >= 0 ? 0 : refuse(errno, path, "the directory of the session's jobs cannot be opened", err);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names that are `wanted`, sorted; or -1: memory or descriptors are short. */
static int list(struct arena *arena, int parent_fd, bool (*wanted)(const char *name), struct strings *ret_names)
{
	int fd = openat(parent_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), result = 0;
	DIR *listing = fd < 0 ? NULL : fdopendir(fd);
	if (!listing) {
		cleanup_close(&fd);
		return -1;
	}
	for (struct dirent *entry; result == 0 && (entry = readdir(listing));)
		if (wanted(entry->d_name))
			result = strings_add(arena, ret_names, arena_strdup(arena, entry->d_name));
	closedir(listing);
	if (ret_names->count)
		qsort(ret_names->items, ret_names->count, sizeof(*ret_names->items), by_text);
	return result;
}

static bool is_job(const char *name)
{
	return id_time_ms(name) != 0;
}

static bool is_unfinished(const char *name)
{
	return !strncmp(name, NEW_PREFIX, sizeof(NEW_PREFIX) - 1);
}

static bool is_session(const char *name)
{
	return strlen(name) == WORKSPACE_HASH_LENGTH && strspn(name, "0123456789abcdef") == WORKSPACE_HASH_LENGTH;
}

/* ---- who runs it ------------------------------------------------------------------------------------------------- */

/* Does a process hold it? Whoever asks holds it for a moment, too, but never so that another's asking would be told so. What
 * cannot be looked at counts as held. */
static bool is_held(int fd)
{
	auto_close int lock = openat(fd, LOCK, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return lock < 0 ? errno != ENOENT : flock(lock, LOCK_SH | LOCK_NB) < 0;
}

static bool has_record(int fd)
{
	return faccessat(fd, RECORD, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Takes away what is of no use, and counts what runs. The lock is held. */
static int settle(int parent_fd, size_t *ret_running)
{
	struct arena arena = { 0 };
	struct strings unfinished = { 0 }, jobs = { 0 }, ended = { 0 };
	size_t running = 0;
	int result = list(&arena, parent_fd, is_unfinished, &unfinished) < 0 ? -1 : list(&arena, parent_fd, is_job, &jobs);
	for (size_t i = 0; i < unfinished.count; i++)
		remove_tree(parent_fd, unfinished.items[i]);
	for (size_t i = 0; result == 0 && i < jobs.count; i++) {
		auto_close int fd = open_directory(parent_fd, jobs.items[i]);
		if (fd < 0 ? errno != ENOTDIR : is_held(fd))
			running++;
		else if (fd < 0 || has_record(fd))
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
	if (mkdirat(parent_fd, name, 0700) < 0 || (place->fd = open_directory(parent_fd, name)) < 0)
		return -1;
	place->lock_fd = openat(place->fd, LOCK, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (place->lock_fd < 0 || flock(place->lock_fd, LOCK_EX | LOCK_NB) < 0 || mkfifoat(place->fd, CONTROL, 0600) < 0)
		return -1;
	/* Open for writing, too, so that it never ends. */
	place->control_fd = openat(place->fd, CONTROL, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
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
	auto_close int lock = openat(place.parent_fd, LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	int result = lock < 0 || lock_wait(lock, LOCK_EX, LOCK_PATIENCE_MS) < 0
	                     ? refuse(errno, session_id, "the session's jobs cannot be locked", err)
	                     : settle(place.parent_fd, &running) < 0
	                     ? refuse(errno, session_id, "the session's jobs cannot be counted", err) : 0;
	if (result == 0 && running >= JOBS_MAX) {
		fail(err, CORDON_E_SESSION_BUSY, 0, session_id, "%d jobs run in the session already", JOBS_MAX);
		fail_remedy(err, "wait for one to end (cordon job wait), or end one (cordon job kill): cordon job list");
		result = fail_boundary(err, "session");
	} else if (result == 0 && make_place(place.parent_fd, &place) < 0) {
		result = refuse(errno, place.id, "the job's directory cannot be made", err);
	}
	if (result < 0)
		jobs_leave(&place, false);
	else
		*ret_place = place;
	return result;
}

int jobs_write(const struct job_place *place, const struct job_record *record, struct cordon_error *err)
{
	auto_free char *text = job_record_write(record);
	if (!text)
		return fail_oom(err);
	unlinkat(place->fd, RECORD_NEW, 0);
	int result = file_create(place->fd, RECORD_NEW, text, strlen(text), NULL);
	if (result == 0 && renameat(place->fd, RECORD_NEW, place->fd, RECORD) < 0)
		result = -errno;
	return result < 0 ? refuse(-result, place->id, "the job's record cannot be written", err) : 0;
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

/* ---- for everybody ----------------------------------------------------------------------------------------------- */

int jobs_find(const char *data_dir, const char *id, int *ret_fd, struct cordon_error *err)
{
	struct arena arena = { 0 };
	struct strings sessions = { 0 };
	auto_close int all = is_job(id) ? open_jobs(data_dir, NULL) : -1, fd = -1;
	int result = all < 0 ? 0 : list(&arena, all, is_session, &sessions);
	for (size_t i = 0; result == 0 && i < sessions.count && fd < 0; i++) {
		auto_close int session = open_directory(all, sessions.items[i]);
		fd = session < 0 ? -1 : open_directory(session, id);
	}
	arena_free(&arena);
	if (result < 0)
		return refuse(errno, id, "the jobs cannot be listed", err);
	if (fd < 0 || !has_record(fd)) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, id, is_job(id) ? "there is no such job" : "this is not the id of a job");
		fail_remedy(err, "see cordon job list");
		return fail_boundary(err, "session");
	}
	*ret_fd = take_fd(&fd);
	return 0;
}

int jobs_read(struct arena *arena, int fd, struct job_record *ret_record, struct cordon_error *err)
{
	/* It is written before the lock is let go: what is not held has had its last word. */
	bool held = is_held(fd);
	auto_free char *text = NULL;
	size_t length = 0;
	int result = file_read(fd, RECORD, RECORD_SIZE_MAX, &text, &length);
	if (result == 0 && job_record_read(arena, text, length, ret_record) < 0)
		result = -EBADMSG;
	if (result < 0)
		return refuse(-result, RECORD, "the job's record cannot be used", err);
	if (!held && ret_record->state == JOB_RUNNING)
		ret_record->state = JOB_LOST;
	return 0;
}

int jobs_tell(int fd, unsigned char what, bool *ret_told, struct cordon_error *err)
{
	struct stat info;
	*ret_told = false;
	if (!is_held(fd))
		return 0;
	/* Open for reading, too: a reader that dies now must not cost the caller a SIGPIPE. */
	auto_close int control = openat(fd, CONTROL, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (control < 0 || fstat(control, &info) < 0 || !S_ISFIFO(info.st_mode))
		return refuse(control < 0 ? errno : 0, CONTROL, "the job cannot be told", err);
	/* One that is full has been told often enough. */
	if (write(control, &what, 1) < 0 && errno != EAGAIN)
		return refuse(errno, CONTROL, "the job cannot be told", err);
	*ret_told = true;
	return 0;
}

int jobs_watch(int fd)
{
	return file_watch(fd, IN_MODIFY | IN_CLOSE_WRITE | IN_MOVED_TO);
}

bool jobs_wait(int fd, int64_t timeout_ms)
{
	int64_t until = timeout_ms < 0 ? INT64_MAX : clock_ms() + timeout_ms, next = LOOK_AGAIN_MS;
	/* Who runs it has the lock open for writing, and dying closes it; a moment later it is let go. */
	auto_close int watch = file_watch(fd, IN_CLOSE_WRITE);
	char events[512];
	for (int64_t left; is_held(fd);) {
		if ((left = until - clock_ms()) <= 0)
			return false;
		int count = poll(&(struct pollfd){ .fd = watch, .events = POLLIN }, 1, (int)(left < next ? left : next));
		next = count > 0 ? LOOK_SOON_MS : LOOK_AGAIN_MS;
		while (count > 0 && read(watch, events, sizeof(events)) > 0)
			;
	}
	return true;
}

/* ---- of a session, or of all ------------------------------------------------------------------------------------- */

struct visit {
	int (*visit)(struct visit *visit, int fd);      /* non-zero ends it */
	jobs_each_fn each;
	void *arg;
	int64_t until;
	bool failed;
};

static int visit_session(struct visit *visit, int parent_fd)
{
	struct arena arena = { 0 };
	struct strings jobs = { 0 };
	int stop = list(&arena, parent_fd, is_job, &jobs);
	visit->failed = stop < 0;
	for (size_t i = 0; !stop && i < jobs.count; i++) {
		auto_close int fd = open_directory(parent_fd, jobs.items[i]);
		stop = fd < 0 ? 0 : visit->visit(visit, fd);
	}
	arena_free(&arena);
	return stop;
}

static int visit_all(struct visit *visit, int all_fd)
{
	struct arena arena = { 0 };
	struct strings sessions = { 0 };
	int stop = list(&arena, all_fd, is_session, &sessions);
	visit->failed = stop < 0;
	for (size_t i = 0; !stop && i < sessions.count; i++) {
		auto_close int fd = open_directory(all_fd, sessions.items[i]);
		stop = fd < 0 ? 0 : visit_session(visit, fd);
	}
	arena_free(&arena);
	return stop;
}

static int visit_record(struct visit *visit, int fd)
{
	struct arena arena = { 0 };
	struct job_record record = { 0 };
	int stop = jobs_read(&arena, fd, &record, NULL) < 0 ? 0 : visit->each(visit->arg, &record, fd);
	arena_free(&arena);
	return stop;
}

int jobs_each(const char *data_dir, const char *session_id, jobs_each_fn each, void *arg, struct cordon_error *err)
{
	struct visit visit = { .visit = visit_record, .each = each, .arg = arg };
	auto_close int fd = open_jobs(data_dir, session_id);
	if (fd < 0)
		return errno == ENOENT ? 0 : refuse(errno, session_id, "the jobs cannot be listed", err);
	if (session_id)
		visit_session(&visit, fd);
	else
		visit_all(&visit, fd);
	return visit.failed ? refuse(errno, session_id, "the jobs cannot be listed", err) : 0;
}

static int visit_tell(struct visit *visit, int fd)
{
	bool told;
	(void)visit;
	(void)!jobs_tell(fd, JOB_END, &told, NULL);
	return 0;
}

static int visit_wait(struct visit *visit, int fd)
{
	int64_t left = visit->until - clock_ms();
	return !jobs_wait(fd, left > 0 ? left : 0);
}

int jobs_end(const char *data_dir, const char *session_id, struct cordon_error *err)
{
	struct visit tell = { .visit = visit_tell }, wait = { .visit = visit_wait, .until = clock_ms() + JOBS_END_PATIENCE_MS };
	auto_close int fd = open_jobs(data_dir, session_id);
	if (fd < 0)
		return errno == ENOENT ? 0 : refuse(errno, session_id, "the session's jobs cannot be listed", err);
	visit_session(&tell, fd);
	int stop = visit_session(&wait, fd);
	if (tell.failed || wait.failed)
		return refuse(errno, session_id, "the session's jobs cannot be listed", err);
	if (!stop)
		return 0;
	fail(err, CORDON_E_SESSION_BUSY, 0, session_id, "a job of the session was told to end, and has not yet");
	fail_remedy(err, "see cordon job list, and try again");
	return fail_boundary(err, "session");
}

/* Jobs on disk, for all processes: see jobs.h. */
#include "session/jobs-files.h"

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
#include "session/workspace.h"

#define RECORD_SIZE_MAX ((size_t)1 << 20)
#define LOOK_AGAIN_MS 1000              /* the kernel may not tell */
#define LOOK_SOON_MS 20

int jobs_refuse(int number, const char *subject, const char *what, struct cordon_error *err)
{
	fail(err, CORDON_E_INTERNAL, number, subject, "%s", what);
	fail_remedy(err, "check that the data directory can be written to");
	return fail_boundary(err, "session");
}

/* ---- directories ------------------------------------------------------------------------------------------------- */

int jobs_open_directory(int parent_fd, const char *name)
{
	return openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int jobs_open(const char *data_dir, const char *session_id)
{
	char path[PATH_MAX], hash[WORKSPACE_HASH_LENGTH + 1];
	if (snprintf(path, sizeof(path), "%s/" JOBS_DIRECTORY, data_dir) >= (int)sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	auto_close int all = jobs_open_directory(AT_FDCWD, path);
	if (all < 0 || !session_id)
		return take_fd(&all);
	if (workspace_hash_to(session_id, hash) < 0) {
		errno = ENOMEM;
		return -1;
	}
	return jobs_open_directory(all, hash);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int jobs_names(struct arena *arena, int parent_fd, bool (*wanted)(const char *name), struct strings *ret_names)
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

bool jobs_is_id(const char *name)
{
	return id_time_ms(name) != 0;
}

static bool is_session(const char *name)
{
	return strlen(name) == WORKSPACE_HASH_LENGTH && strspn(name, "0123456789abcdef") == WORKSPACE_HASH_LENGTH;
}

/* ---- who runs it ------------------------------------------------------------------------------------------------- */

/* Does a process hold it? This check holds the lock for a moment, too, but in a mode that another check does not see.
 * If it cannot be checked, it counts as held. */
bool jobs_is_held(int fd)
{
	auto_close int lock = openat(fd, JOBS_LOCK, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return lock < 0 ? errno != ENOENT : flock(lock, LOCK_SH | LOCK_NB) < 0;
}

bool jobs_has_record(int fd)
{
	return faccessat(fd, JOBS_RECORD, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* ---- for everybody ----------------------------------------------------------------------------------------------- */

static int refuse_missing(const char *id, const char *what, struct cordon_error *err)
{
	fail(err, CORDON_E_NOT_FOUND, 0, id, "%s", what);
	fail_remedy(err, "see cordon job list");
	return fail_boundary(err, "session");
}

int jobs_find(const char *data_dir, const char *id, int *ret_fd, struct cordon_error *err)
{
	struct arena arena = { 0 };
	struct strings sessions = { 0 };
	auto_close int all = jobs_is_id(id) ? jobs_open(data_dir, NULL) : -1, fd = -1;
	int result = all < 0 ? 0 : jobs_names(&arena, all, is_session, &sessions);
	for (size_t i = 0; result == 0 && i < sessions.count && fd < 0; i++) {
		auto_close int session = jobs_open_directory(all, sessions.items[i]);
		fd = session < 0 ? -1 : jobs_open_directory(session, id);
	}
	arena_free(&arena);
	if (result < 0)
		return jobs_refuse(errno, id, "the jobs cannot be listed", err);
	if (fd < 0 || !jobs_has_record(fd))
		return refuse_missing(id, jobs_is_id(id) ? "there is no such job" : "this is not the id of a job", err);
	*ret_fd = take_fd(&fd);
	return 0;
}

static int refuse_damaged(struct cordon_error *err)
{
	fail(err, CORDON_E_INTERNAL, 0, JOBS_RECORD, "the job's record was damaged");
	fail_remedy(err, "end its session and remove it: cordon session end, cordon session rm");
	return fail_boundary(err, "session");
}

int jobs_read(struct arena *arena, int fd, struct job_record *ret_record, struct cordon_error *err)
{
	/* It is written before the lock is let go: what is not held has had its last word. */
	bool held = jobs_is_held(fd);
	auto_free char *text = NULL;
	size_t length = 0;
	int result = file_read(fd, JOBS_RECORD, RECORD_SIZE_MAX, &text, &length);
	if (result == 0 && job_record_read(arena, text, length, ret_record) < 0 &&
	    job_record_read_newer(arena, text, length, ret_record) < 0)
		return refuse_damaged(err);
	if (result == -ENOENT)
		return refuse_missing(NULL, "the job was removed, with its session or as one of the oldest", err);
	if (result < 0)
		return jobs_refuse(-result, JOBS_RECORD, "the job's record cannot be used", err);
	if (!held && ret_record->state == JOB_RUNNING)
		ret_record->state = JOB_LOST;
	return 0;
}

int jobs_tell(int fd, unsigned char what, bool *ret_told, struct cordon_error *err)
{
	struct stat info;
	*ret_told = false;
	if (!jobs_is_held(fd))
		return 0;
	/* Open for reading, too: a reader that dies now must not cost the caller a SIGPIPE. */
	auto_close int control = openat(fd, JOBS_CONTROL, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (control < 0 || fstat(control, &info) < 0 || !S_ISFIFO(info.st_mode))
		return jobs_refuse(control < 0 ? errno : 0, JOBS_CONTROL, "the job cannot be signalled", err);
	/* One that is full has been told often enough. */
	if (write(control, &what, 1) < 0 && errno != EAGAIN)
		return jobs_refuse(errno, JOBS_CONTROL, "the job cannot be signalled", err);
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
	/* The process that runs the job has the lock open for writing, and its death closes it; a moment later the
	 * lock is free. */
	auto_close int watch = file_watch(fd, IN_CLOSE_WRITE);
	char events[512];
	for (int64_t left; jobs_is_held(fd);) {
		if ((left = until - clock_ms()) <= 0)
			return false;
		int count =
			poll(&(struct pollfd){ .fd = watch, .events = POLLIN }, 1, (int)(left < next ? left : next));
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
	int stop = jobs_names(&arena, parent_fd, jobs_is_id, &jobs);
	visit->failed = stop < 0;
	for (size_t i = 0; !stop && i < jobs.count; i++) {
		auto_close int fd = jobs_open_directory(parent_fd, jobs.items[i]);
		stop = fd < 0 ? 0 : visit->visit(visit, fd);
	}
	arena_free(&arena);
	return stop;
}

static int visit_all(struct visit *visit, int all_fd)
{
	struct arena arena = { 0 };
	struct strings sessions = { 0 };
	int stop = jobs_names(&arena, all_fd, is_session, &sessions);
	visit->failed = stop < 0;
	for (size_t i = 0; !stop && i < sessions.count; i++) {
		auto_close int fd = jobs_open_directory(all_fd, sessions.items[i]);
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
	auto_close int fd = jobs_open(data_dir, session_id);
	if (fd < 0)
		return errno == ENOENT ? 0 : jobs_refuse(errno, session_id, "the jobs cannot be listed", err);
	if (session_id)
		visit_session(&visit, fd);
	else
		visit_all(&visit, fd);
	return visit.failed ? jobs_refuse(errno, session_id, "the jobs cannot be listed", err) : 0;
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
	struct visit tell = { .visit = visit_tell },
		     wait = { .visit = visit_wait, .until = clock_ms() + JOBS_END_PATIENCE_MS };
	auto_close int fd = jobs_open(data_dir, session_id);
	if (fd < 0)
		return errno == ENOENT ? 0 : jobs_refuse(errno, session_id, "the session's jobs cannot be listed", err);
	visit_session(&tell, fd);
	int stop = visit_session(&wait, fd);
	if (tell.failed || wait.failed)
		return jobs_refuse(errno, session_id, "the session's jobs cannot be listed", err);
	if (!stop)
		return 0;
	fail(err, CORDON_E_SESSION_BUSY, 0, session_id, "a job of the session has not ended yet");
	fail_remedy(err, "see cordon job list, and try again");
	return fail_boundary(err, "session");
}

/* Jobs on disk, so that any process of the same user can follow and end a job, whichever process runs it:
 *
 *     jobs/<hash of the session's id>/lock         held while a job enters, so that they are counted
 *                                    /<job>/       named after the audit id of its command
 *                                      job.json    replaced whole, by rename; created when the command has started
 *                                      job.json.new      space for the last record, in case the disk is full then
 *                                      stdout, stderr    the last output (ring.h)
 *                                      lock        held by the process that runs it; free if it has ended or died
 *                                      control     a named pipe for requests to that process
 *
 * A job enters while its session is in use, and its directory is moved away (discard.h) only when the session is no
 * longer in use: no directory is removed while a process works in it. */
#pragma once
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/id.h"

#define JOBS_DIRECTORY "jobs"
#define JOBS_MAX 8              /* of a session, at a time */
#define JOBS_KEPT 32            /* of those that have ended */
#define JOBS_GRACE_MS 3000      /* from being asked to end to being killed */
#define JOBS_END_PATIENCE_MS (JOBS_GRACE_MS + 20000)

struct json;

enum job_state {
	JOB_RUNNING,
	JOB_ENDED,
	JOB_LOST,               /* the process that ran it was killed, and the command with it; never written, only
	                           found */
	JOB_NEWER,              /* its record needs a newer version of cordon; never written, only found */
	JOB_STATE_MAX
};
extern const char *const job_state_names[JOB_STATE_MAX];

struct job_record {
	const char *id, *session;
	enum job_state state;
	struct strings command;         /* as much of it as is of use to people */
	const char *started, *ended;    /* UTC; `ended` is NULL while it runs */
	uint64_t pid;                   /* of the process that runs it */
	uint64_t timeout_ms;            /* 0: any time */
	/* Once it has ended: */
	int exit_code, signal;          /* `killed`: it was ended on request, or with its session */
	bool timed_out, oom_killed, killed;     /* `killed`: it was told to end, by people or with its session */
	const char *limit_hit;          /* or NULL */
	const char *note;               /* what else to know: why its end is not known or not recorded, what is not
	                                   kept, what was denied; or NULL */
	uint64_t duration_ms;
	bool shares;                    /* the session's sandbox in that process; only said while it runs. Not a member
	                                   of those below: later versions of records have it */
};

/* As text (jobs-json.c): what cordon writes and nothing else. To be free()d; NULL when memory is short. */
char *job_record_write(const struct job_record *record);
/* The same as members of an object that was begun. */
void job_record_members(struct json *json, const struct job_record *record);
int job_record_read(struct arena *arena, const char *text, size_t length, struct job_record *ret_record) must_check;
/* Of one that needs a newer version: which job it is. -1: it is no such record. */
int job_record_read_newer(struct arena *arena, const char *text, size_t length,
                          struct job_record *ret_record) must_check;

/* ---- For the process that runs one ------------------------------------------------------------------------------- */

struct job_place {
	char id[ID_SIZE];
	int parent_fd, fd;              /* of the session's jobs; of this one */
	int lock_fd, control_fd;        /* it was ended on request */
	bool killed;                    /* it was told to end */
};
#define JOB_PLACE_NONE ((struct job_place){ .parent_fd = -1, .fd = -1, .lock_fd = -1, .control_fd = -1 })

/* Takes a place among the session's jobs, or tells that there are JOBS_MAX: `session_busy`. The session is in use. */
int jobs_enter(const char *data_dir, const char *session_id, const char *id, struct job_place *ret_place,
               struct cordon_error *err) must_check;
int jobs_write(const struct job_place *place, const struct job_record *record, struct cordon_error *err) must_check;
/* Gives the place back; with `remove`, as if it had never been. */
void jobs_leave(struct job_place *place, bool remove);

/* What a job is told: a signal for the command, or one of these. */
enum { JOB_END = 128, JOB_KILL = 129 };

/* ---- For everybody ----------------------------------------------------------------------------------------------- */

/* The directory of a job of this id; none: `invalid_request`. */
int jobs_find(const char *data_dir, const char *id, int *ret_fd, struct cordon_error *err) must_check;
/* Its record, with the state it is in. */
int jobs_read(struct arena *arena, int fd, struct job_record *ret_record, struct cordon_error *err) must_check;
/* False where it has ended already. */
int jobs_tell(int fd, unsigned char what, bool *ret_told, struct cordon_error *err) must_check;
/* Readable when something changed there; or -1. */
int jobs_watch(int fd) must_check;
/* Waits until it has ended; for at most `timeout_ms`, -1 is for ever. */
bool jobs_wait(int fd, int64_t timeout_ms);

/* Every job of the session, or of all (NULL), the oldest first; damaged records are left out. */
typedef int (*jobs_each_fn)(void *arg, const struct job_record *record, int fd);
int jobs_each(const char *data_dir, const char *session_id, jobs_each_fn each, void *arg, struct cordon_error *err)
	must_check;

/* Ends all that run in the session, those that are about to start too, and waits until they are gone. */
int jobs_end(const char *data_dir, const char *session_id, struct cordon_error *err) must_check;

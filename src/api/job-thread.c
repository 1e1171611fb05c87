/* Jobs: commands of a session that nobody waits for. The walk is that of any command; step 1 takes a place among the
 * session's jobs (session/jobs.h), and once the command runs a thread follows it to its end, in which every signal is
 * blocked:
 *
 *     what it writes          into the rings
 *     what comes by `control` to the command: a signal, or the end, which is SIGTERM and after a while SIGKILL
 *     its end                 ledger, then the record, then the lock is let go */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "base/utc.h"
#include "session/jobs.h"
#include "session/ring.h"
#include "walk.h"

/* The part of the command that is kept to recognise the job by. */
#define WHAT_SHOWN 200
#define WORDS_MAX 32
#define WORD_MAX 512

struct job {
	struct job *next;
	struct cordon *cordon;
	struct cordon_request request, *kept;   /* ours, with what `kept` holds */
	struct cordon_execution *execution;
	struct job_place place;
	struct job_record record;
	struct ring rings[3];                   /* [CORDON_STDOUT], [CORDON_STDERR] */
	struct arena arena;
	pthread_t thread;
	bool has_thread, done;
	int64_t kill_at_ms;                     /* 0: it was not told to end */
};

static void on_output(void *arg, enum cordon_stream stream, const void *data, size_t length)
{
	struct job *job = arg;
	ring_add(&job->rings[stream], data, length);
}

static void job_free(struct job *job)
{
	cordon_execution_unref(job->execution);
	ring_close(&job->rings[CORDON_STDOUT]);
	ring_close(&job->rings[CORDON_STDERR]);
	jobs_leave(&job->place, false);
	cordon_request_unref(job->kept);
	arena_free(&job->arena);
	free(job);
}

/* ---- following --------------------------------------------------------------------------------------------------- */

static void obey(struct job *job)
{
	unsigned char told[64];
	ssize_t count = read(job->place.control_fd, told, sizeof(told));
	for (ssize_t i = 0; i < count; i++) {
		if (told[i] < JOB_END) {
			cordon_execution_signal(job->execution, told[i]);
			continue;
		}
		job->place.killed = true;
		/* A job that is frozen with its session takes no request. */
		if (told[i] == JOB_KILL ||
		    job->execution->walk->run.running->ops->is_still(job->execution->walk->run.running)) {
			job->kill_at_ms = clock_ms();
		} else if (!job->kill_at_ms) {
			cordon_execution_signal(job->execution, SIGTERM);
			/* Nor does one that was stopped. */
			cordon_execution_signal(job->execution, SIGCONT);
			job->kill_at_ms = clock_ms() + JOBS_GRACE_MS;
		}
	}
}

static int follow(struct job *job, struct cordon_error *err)
{
	for (bool finished = false; !finished;) {
		struct pollfd ready[] = { { .fd = cordon_execution_fd(job->execution), .events = POLLIN },
			                  { .fd = job->place.control_fd, .events = POLLIN } };
		int64_t left = job->kill_at_ms ? job->kill_at_ms - clock_ms() : -1;
		int count = poll(ready, ARRAY_SIZE(ready), !job->kill_at_ms ? -1 : left > 0 ? (int)left : 0);
		if (count < 0 && errno != EINTR)
			return fail(err, CORDON_E_INTERNAL, errno, NULL, "waiting for the job failed");
		if (ready[1].revents)
			obey(job);
		if (job->kill_at_ms && clock_ms() >= job->kill_at_ms) {
			cordon_execution_signal(job->execution, SIGKILL);
			job->kill_at_ms = clock_ms() + JOBS_GRACE_MS;
		}
		if (cordon_execution_step(job->execution, &finished, err) < 0)
			return -1;
	}
	return 0;
}

/* A place in the record for what is not text yet. */
static const char *keep(struct job *job, const char *text)
{
	return text ? arena_strdup(&job->arena, text) : NULL;
}

/* What was written when there was no more room for it. */
static const char *unkept(struct job *job)
{
	for (int stream = CORDON_STDOUT; stream <= CORDON_STDERR; stream++)
		if (job->rings[stream].error)
			return arena_printf(&job->arena, "not all that it wrote is kept: %s",
			                    strerror(job->rings[stream].error));
	return NULL;
}

/* How it ended, also where the ledger could not be told. */
static void fill_end(struct job *job)
{
	const struct execution *walk = job->execution->walk;
	const struct outcome *outcome = &walk->run.outcome;
	struct job_record *record = &job->record;
	record->exit_code = walk->run.ended ? walk->run.outcome.exit_code : -1;
	if (!walk->run.ended)
		return;
	record->signal = walk->run.outcome.signal;
	record->timed_out = outcome->timed_out;
	record->oom_killed = walk->run.outcome.oom_kills;
	record->limit_hit = walk->run.outcome.limit_hit.name;
	record->duration_ms = outcome->duration_ms;
}

/* What was refused or removed: a user who looks at the job may never look into the ledger, where all of it is. The
 * space suffices for a part of a path, however it is escaped. */
static const char *denied(struct job *job, const struct cordon_result *result)
{
	const struct cordon_denial *first = NULL;
	size_t count = 0;
	for (size_t i = 0; i < result->denial_count; i++) {
		/* Agents read this, too: what is hidden from them is told in the ledger alone. */
		if (!strcmp(result->denials[i].wall, cordon_wall_name(CORDON_WALL_MASKED)))
			continue;
		first = first ? first : &result->denials[i];
		count++;
	}
	if (!first)
		return NULL;
	return arena_printf(&job->arena, "%.*s%s: %s%s", WHAT_SHOWN, first->what,
	                    strlen(first->what) > WHAT_SHOWN ? "..." : "", first->note,
	                    count == 1 ?
	                            "" :
	                            arena_printf(&job->arena, "; and %zu more denials: cordon audit show %s", count - 1,
	                                         job->record.id));
}

static const char *join(struct job *job, const char *first, const char *second)
{
	return first && second ? arena_printf(&job->arena, "%s; %s", first, second) : first ? first : second;
}

static const char *note_of(struct job *job, const struct cordon_result *result)
{
	const char *failed = result->error ? keep(job, result->error->reason) : NULL;
	return join(job, failed, join(job, unkept(job), denied(job, result)));
}

static void conclude(struct job *job)
{
	struct job_record *record = &job->record;
	struct cordon_result *result = NULL;
	struct cordon_error err;
	char now[UTC_SIZE];
	bool failed = follow(job, &err) < 0 || cordon_execution_result(job->execution, &result, &err) < 0;
	record->note = failed && !result ? keep(job, err.reason) : note_of(job, result);
	fill_end(job);
	utc_now(now);
	record->state = JOB_ENDED;
	record->killed = job->place.killed;
	record->ended = keep(job, now);
	cordon_result_unref(result);
	/* The session is released before the job is seen as ended. */
	cordon_execution_unref(job->execution);
	job->execution = NULL;
	/* There is space for it. If it cannot be written nevertheless, the job counts as lost. */
	if (record->ended)
		(void)!jobs_write(&job->place, record, &err);
}

static void *work(void *arg)
{
	struct job *job = arg;
	conclude(job);
	pthread_mutex_lock(&job->cordon->jobs_lock);
	job->done = true;
	jobs_leave(&job->place, false);
	pthread_mutex_unlock(&job->cordon->jobs_lock);
	return NULL;
}

/* ---- starting ---------------------------------------------------------------------------------------------------- */

static int fill_record(struct job *job, struct cordon_error *err)
{
	struct execution *walk = job->execution->walk;
	const struct strings *argv = &job->request.argv;
	char now[UTC_SIZE];
	utc_now(now);
	job->record = (struct job_record){
		.id = job->place.id,
		.session = keep(job, walk->verdict.session.id),
		.state = JOB_RUNNING,
		.started = keep(job, now),
		.pid = (uint64_t)getpid(),
		.timeout_ms = walk->verdict.profile.limits.wall_ms,
		.shares = walk->run.place.live && !walk->cordon->one_command,
	};
	/* The record is for people to read, and stays: as in the ledger's rows, no secret is in it. */
	for (size_t i = 0; i < argv->count && i < WORDS_MAX; i++) {
		const char *word = argv->items[i];
		if (leaks_clean_text(walk, &word) < 0 ||
		    strings_add(&job->arena, &job->record.command,
		                arena_printf(&job->arena, "%.*s", WORD_MAX, word)) < 0)
			return fail_oom(err);
	}
	return job->record.session && job->record.started ? 0 : fail_oom(err);
}

static int make_rings(struct job *job, struct cordon_error *err)
{
	uint64_t asked = job->request.granted.limits.stdout_bytes, size = asked ? asked : RING_SIZE_DEFAULT;
	return ring_make(job->place.fd, "stdout", size, &job->rings[CORDON_STDOUT], err) < 0 ||
	       ring_make(job->place.fd, "stderr", size, &job->rings[CORDON_STDERR], err) < 0 ? -1 : 0;
}

static int start_thread(struct job *job, struct cordon_error *err)
{
	int result = thread_start(&job->thread, 0, work, job);
	job->has_thread = result == 0;
	return result == 0 ? 0 : fail(err, CORDON_E_INTERNAL, result, "pthread_create", "cannot start a thread");
}

/* What has started, and cannot be followed, is ended, and its rows say so. */
static int give_up(struct job *job)
{
	bool told;
	struct job_place place = job->place;
	(void)!jobs_tell(place.fd, JOB_KILL, &told, NULL);
	conclude(job);
	jobs_leave(&job->place, true);
	job_free(job);
	return -1;
}

/* Joins those that are done; with `all` every one, after asking it to end. */
static void reap(struct cordon *cordon, bool all)
{
	pthread_mutex_lock(&cordon->jobs_lock);
	for (struct job **at = &cordon->jobs; *at;) {
		struct job *job = *at;
		if (!job->done && !all) {
			at = &job->next;
			continue;
		}
		*at = job->next;
		bool told;
		if (!job->done)
			(void)!jobs_tell(job->place.fd, JOB_KILL, &told, NULL);
		pthread_mutex_unlock(&cordon->jobs_lock);
		pthread_join(job->thread, NULL);
		job_free(job);
		pthread_mutex_lock(&cordon->jobs_lock);
		at = &cordon->jobs;
	}
	pthread_mutex_unlock(&cordon->jobs_lock);
}

void job_end_all(struct cordon *cordon)
{
	reap(cordon, true);
}

static struct job *job_new(struct cordon *cordon, struct cordon_request *request)
{
	struct job *job = calloc(1, sizeof(*job));
	if (!job)
		return NULL;
	atomic_fetch_add(&request->refs, 1);
	job->cordon = cordon;
	job->kept = request;
	job->request = *request;
	job->request.stdin_fd = -1;
	job->request.output = on_output;
	job->request.output_arg = job;
	job->request.job = &job->place;
	job->place = JOB_PLACE_NONE;
	job->rings[CORDON_STDOUT].fd = job->rings[CORDON_STDERR].fd = -1;
	return job;
}

int job_start(struct cordon *cordon, struct cordon_request *request, char ret_id[ID_SIZE], struct cordon_error *err)
{
	if (request->tty) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, "tty", "a job has no terminal");
		return fail_remedy(err, "leave it out, or use cordon run");
	}
	reap(cordon, false);
	struct job *job = job_new(cordon, request);
	if (!job)
		return fail_oom(err);
	if (cordon_execution_start(cordon, &job->request, &job->execution, err) < 0) {
		job_free(job);
		return -1;
	}
	memcpy(ret_id, job->place.id, ID_SIZE);
	if (fill_record(job, err) < 0 || make_rings(job, err) < 0 || jobs_write(&job->place, &job->record, err) < 0)
		return give_up(job);
	pthread_mutex_lock(&cordon->jobs_lock);
	int result = start_thread(job, err);
	if (result == 0) {
		job->next = cordon->jobs;
		cordon->jobs = job;
	}
	pthread_mutex_unlock(&cordon->jobs_lock);
	return result < 0 ? give_up(job) : 0;
}

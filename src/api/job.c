/* Jobs, public calls: started here; listed, followed and ended by what is on disk, so that it does not matter which
 * process runs them. */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "api/policy.h"
#include "api/session-json.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/utf8.h"
#include "session/jobs.h"
#include "walk.h"
#include "session/ring.h"

#define OUTPUT_MAX ((size_t)256 << 10)          /* of each stream, told at once */
#define LOOK_AGAIN_MS 1000
#define STREAMS 3                               /* the first is none */

static const char *const stream_names[STREAMS] = { NULL, "stdout", "stderr" };

/* ---- as JSON ----------------------------------------------------------------------------------------------------- */

/* Not the half of a character that is still being written. */
static void trim(struct ring_part *part, const char *text, bool runs)
{
	size_t cut = runs || part->from + part->length < part->end ? utf8_cut_tail(text, part->length) : 0;
	part->length -= cut < part->length ? cut : 0;
}

static int write_stream(struct json *json, int fd, const char *name, const uint64_t *from, bool runs)
{
	struct ring_part part = { 0 };
	auto_close int ring = -1;
	auto_free char *text = from ? malloc(OUTPUT_MAX) : NULL;
	if (from && !text)
		return -1;
	bool there = ring_open(fd, name, &ring) == 0 &&
	             ring_read(ring, from ? *from : 0, text, from ? OUTPUT_MAX : 0, &part) == 0;
	if (there && from)
		trim(&part, text, runs);
	json_key(json, name);
	json_object_begin(json);
	json_key_uint(json, "bytes", part.end);
	json_key_uint(json, "from", part.from);
	if (from) {
		json_key_uint(json, "missed", part.from > *from ? part.from - *from : 0);
		json_key_uint(json, "next", part.from + part.length);
		json_key_bytes(json, "data", text, part.length);
	}
	json_object_end(json);
	return 0;
}

/* With `from`, what it wrote from these places on; else only how much. */
static int write_job(struct json *json, const struct job_record *record, int fd, const uint64_t from[STREAMS])
{
	json_object_begin(json);
	job_record_members(json, record);
	for (int stream = CORDON_STDOUT; stream <= CORDON_STDERR; stream++)
		if (write_stream(json, fd, stream_names[stream], from ? &from[stream] : NULL,
		                 record->state == JOB_RUNNING) < 0)
			return -1;
	json_object_end(json);
	return 0;
}

static int tell_job(int fd, const uint64_t from[STREAMS], char **ret_json, struct cordon_error *err)
{
	struct arena arena = { 0 };
	struct job_record record = { 0 };
	struct json json;
	int result = jobs_read(&arena, fd, &record, err);
	if (result == 0) {
		json_init(&json);
		json.failed = write_job(&json, &record, fd, from) < 0 || json.failed;
		result = session_take_json(&json, ret_json, err);
	}
	arena_free(&arena);
	return result;
}

/* ---- the public calls -------------------------------------------------------------------------------------------- */

static int find(struct cordon *cordon, const char *id, int *ret_fd, struct cordon_error *err)
{
	return policy_check(cordon, err) < 0 ? -1 : jobs_find(cordon->data_dir, id, ret_fd, err);
}

int cordon_job_start(struct cordon *cordon, struct cordon_request *request, char **ret_json, struct cordon_error *err)
{
	char id[ID_SIZE];
	auto_close int fd = -1;
	if (call_check(err, cordon, request, ret_json) < 0 || handle_check(cordon, err) < 0 ||
	    job_start(cordon, request, id, err) < 0 || jobs_find(cordon->data_dir, id, &fd, err) < 0)
		return -1;
	return tell_job(fd, NULL, ret_json, err);
}

static int add_listed(void *arg, const struct job_record *record, int fd)
{
	return write_job(arg, record, fd, NULL);
}

int cordon_job_list(struct cordon *cordon, const char *session, char **ret_json, struct cordon_error *err)
{
	struct json json;
	if (call_check(err, cordon, ret_json) < 0 || (session && registry_check_id(session, err) < 0) ||
	    policy_check(cordon, err) < 0)
		return -1;
	json_init(&json);
	json_object_begin(&json);
	json_key(&json, "jobs");
	json_array_begin(&json);
	if (jobs_each(cordon->data_dir, session, add_listed, &json, err) < 0) {
		json_free(&json);
		return -1;
	}
	json_array_end(&json);
	json_object_end(&json);
	return session_take_json(&json, ret_json, err);
}

int cordon_job_poll(struct cordon *cordon, const char *id, uint64_t stdout_from, uint64_t stderr_from, char **ret_json,
                    struct cordon_error *err)
{
	const uint64_t from[STREAMS] = { 0, stdout_from, stderr_from };
	auto_close int fd = -1;
	return call_check(err, cordon, id, ret_json) < 0 || find(cordon, id, &fd, err) < 0
	               ? -1 : tell_job(fd, from, ret_json, err);
}

/* What there is, and whether there will be more. */
static int look(int fd, int ring, uint64_t from, void *buffer, size_t size, struct cordon_job_output *ret_output,
                struct cordon_error *err)
{
	struct arena arena = { 0 };
	struct job_record record = { 0 };
	struct ring_part part;
	/* Before the ring is: what was written before the end is in it then. */
	int result = jobs_read(&arena, fd, &record, err);
	bool over = record.state != JOB_RUNNING && (record.state != JOB_NEWER || jobs_wait(fd, 0));
	arena_free(&arena);
	if (result < 0)
		return -1;
	result = ring_read(ring, from, buffer, size, &part);
	if (result < 0)
		return fail(err, CORDON_E_INTERNAL, -result, NULL, "what the job wrote cannot be read");
	*ret_output = (struct cordon_job_output){ .from = part.from, .length = part.length, .written = part.end,
	                                          .ended = over && part.from + part.length == part.end };
	return 0;
}

int cordon_job_read(struct cordon *cordon, const char *id, enum cordon_stream stream, uint64_t from, void *buffer,
                    size_t size, int wait_ms, struct cordon_job_output *ret_output, struct cordon_error *err)
{
	struct cordon_job_output output;
	auto_close int fd = -1, ring = -1;
	if (call_check(err, cordon, id, buffer, ret_output) < 0)
		return -1;
	if (stream != CORDON_STDOUT && stream != CORDON_STDERR)
		return fail(err, CORDON_E_INVALID_REQUEST, 0, NULL, "there is no such stream");
	if (find(cordon, id, &fd, err) < 0)
		return -1;
	int opened = ring_open(fd, stream_names[stream], &ring);
	if (opened < 0)
		return fail(err, CORDON_E_INTERNAL, -opened, id, "what the job wrote cannot be read");
	auto_close int watch = wait_ms ? jobs_watch(fd) : -1;
	int64_t until = wait_ms < 0 ? INT64_MAX : clock_ms() + wait_ms;
	for (char events[4096];;) {
		if (look(fd, ring, from, buffer, size, &output, err) < 0)
			return -1;
		int64_t left = until - clock_ms();
		if (output.length || output.ended || left <= 0)
			break;
		poll(&(struct pollfd){ .fd = watch, .events = POLLIN }, 1,
		     (int)(left < LOOK_AGAIN_MS ? left : LOOK_AGAIN_MS));
		while (watch >= 0 && read(watch, events, sizeof(events)) > 0)
			;
	}
	*ret_output = output;
	return 0;
}

int cordon_job_wait(struct cordon *cordon, const char *id, int64_t timeout_ms, char **ret_json,
                    struct cordon_error *err)
{
	auto_close int fd = -1;
	if (call_check(err, cordon, id, ret_json) < 0 || find(cordon, id, &fd, err) < 0)
		return -1;
	jobs_wait(fd, timeout_ms);
	return tell_job(fd, NULL, ret_json, err);
}

int cordon_job_kill(struct cordon *cordon, const char *id, int signal, struct cordon_error *err)
{
	auto_close int fd = -1;
	bool told = false;
	if (call_check(err, cordon, id) < 0)
		return -1;
	if (signal < 0 || signal >= NSIG)
		return fail(err, CORDON_E_INVALID_REQUEST, 0, NULL, "there is no such signal");
	if (find(cordon, id, &fd, err) < 0 || jobs_tell(fd, signal ? (unsigned char)signal : JOB_END, &told, err) < 0)
		return -1;
	if (signal && !told) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, id, "the job has ended");
		return fail_boundary(err, "session");
	}
	if (!signal && !jobs_wait(fd, JOBS_END_PATIENCE_MS)) {
		fail(err, CORDON_E_SESSION_BUSY, 0, id, "the job was asked to end and is still running");
		return fail_boundary(err, "session");
	}
	return 0;
}

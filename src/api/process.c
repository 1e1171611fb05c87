/* The public calls about processes: see process.h. */
#include "api/process.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/error.h"
#include "session/current.h"

#define TERMINAL_MOST 9999

/* ---- the process ----------------------------------------------------------------------------------------------- */

static void process_free(struct process *process)
{
	for (struct process_event *event = process->events, *next; event; event = next) {
		next = event->next;
		json_decref(event->tree);
		free(event);
	}
	for (int stream = CORDON_STDOUT; stream <= CORDON_STDERR; stream++)
		free(process->streams[stream].bytes);
	json_decref(process->result);
	json_decref(process->last_words ? process->last_words->tree : NULL);
	free(process->last_words);
	cleanup_close(&process->interrupt_fd);
	cleanup_close(&process->poke_fd);
	cleanup_close(&process->input_fd);
	cleanup_close(&process->input_given_fd);
	cordon_request_unref(process->kept);
	pthread_mutex_destroy(&process->lock);
	pthread_cond_destroy(&process->changed);
	free(process);
}

static struct process *process_new(struct cordon *cordon, struct cordon_request *request)
{
	pthread_condattr_t attributes;
	struct process *process = calloc(1, sizeof(*process));
	struct process_event *last_words = calloc(1, sizeof(*last_words));
	char id[ID_SIZE];
	id_make(id);
	if (last_words)
		last_words->tree = json_pack("{s:s, s:s}", "event", "ended", "id", id);
	if (!process || !last_words || !last_words->tree) {
		free(last_words);
		free(process);
		return NULL;
	}
	memcpy(process->id, id, sizeof(id));
	process->last_words = last_words;
	atomic_fetch_add(&request->refs, 1);
	process->cordon = cordon;
	process->kept = request;
	process->request = *request;
	process->interrupt_fd = process->poke_fd = process->input_fd = process->input_given_fd = -1;
	process->last_event = &process->events;
	pthread_mutex_init(&process->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&process->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	return process;
}

/* Told by whom, with so long a time to end by itself. False: it has ended. */
static bool tell_end(struct process *process, const char *by, int64_t grace_ms)
{
	uint64_t one = 1;
	pthread_mutex_lock(&process->lock);
	process->told_by = by;
	process->grace_ms = grace_ms;
	if (process->state == PROCESS_STARTING)
		(void)!write(process->interrupt_fd, &one, sizeof(one));
	bool over = process->state == PROCESS_ENDED;
	process_poke(process);
	pthread_mutex_unlock(&process->lock);
	return !over;
}

static bool is_over(struct process *process, bool *ret_has_handles)
{
	pthread_mutex_lock(&process->lock);
	bool done = process->done;
	*ret_has_handles = process->handles != NULL;
	pthread_mutex_unlock(&process->lock);
	return done;
}

/* Once: a process that is kept has no thread. */
static void join(struct process *process)
{
	if (!process->joined)
		process->joined = pthread_join(process->thread, NULL) == 0;
}

/* Of one that has ended and was detached: is it among the last? */
static bool is_kept(const struct process *process, unsigned *kept, size_t *bytes)
{
	if (!process->detached)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(process->streams); i++)
		*bytes += process->streams[i].size;
	return ++*kept <= PROCESS_ENDED_KEPT || (*kept <= PROCESS_ENDED_MOST && *bytes <= PROCESS_ENDED_BYTES);
}

/* Frees those that have ended and that no call can ask for any more. Under the cordon's lock. */
static void sweep(struct cordon *cordon)
{
	unsigned kept = 0;
	size_t bytes = 0;
	for (struct process **at = &cordon->processes; *at;) {
		struct process *process = *at;
		bool has_handles;
		bool over = is_over(process, &has_handles);
		if (over)
			join(process);
		if (!over || has_handles || is_kept(process, &kept, &bytes)) {
			at = &process->next;
			continue;
		}
		*at = process->next;
		process_free(process);
	}
}

static void end_later(struct process *process, int64_t drain_ms, int64_t grace_ms)
{
	pthread_mutex_lock(&process->lock);
	process->end_at_ms = clock_ms() + drain_ms;
	process->end_grace_ms = grace_ms;
	process_poke(process);
	pthread_mutex_unlock(&process->lock);
}

void process_stop_all(struct cordon *cordon, int64_t drain_ms, int64_t grace_ms)
{
	pthread_mutex_lock(&cordon->jobs_lock);
	for (struct process *process = cordon->processes; process; process = process->next)
		if (drain_ms)
			end_later(process, drain_ms, grace_ms);
		else
			tell_end(process, "daemon", grace_ms);
	pthread_mutex_unlock(&cordon->jobs_lock);
}

/* A handle that is still there keeps what it tells. */
void process_end_all(struct cordon *cordon)
{
	for (struct process *process = cordon->processes; process; process = process->next)
		tell_end(process, "daemon", 0);
	for (struct process *process = cordon->processes, *next; process; process = next) {
		next = process->next;
		join(process);
		pthread_mutex_lock(&process->lock);
		process->cordon = NULL;
		bool has_handles = process->handles != NULL;
		pthread_mutex_unlock(&process->lock);
		if (!has_handles)
			process_free(process);
	}
	cordon->processes = NULL;
}

/* ---- handles --------------------------------------------------------------------------------------------------- */

static struct cordon_process *handle_new(struct process *process, struct cordon_error *err)
{
	struct cordon_process *handle = calloc(1, sizeof(*handle));
	int fd = handle ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
	if (fd < 0) {
		fail(err, CORDON_E_RESOURCE_EXHAUSTED, errno, NULL, "no descriptor for the events of the process");
		free(handle);
		return NULL;
	}
	handle->fd = fd;
	handle->process = process;
	return handle;
}

int process_check_owner(const struct cordon_process *handle, struct cordon_error *err)
{
	return handle->process->cordon ? handle_check(handle->process->cordon, err) : 0;
}

/* Is it of this process, and its cordon open? One that was opened before fork() belongs to another. */
static int check(const struct cordon_process *handle, struct cordon_error *err)
{
	const struct cordon *cordon = handle->process->cordon;
	if (cordon)
		return handle_check(cordon, err);
	fail(err, CORDON_E_INVALID_REQUEST, 0, "cordon_unref", "the cordon of this process was released");
	return fail_boundary(err, "request");
}

int cordon_start(struct cordon *cordon, struct cordon_request *request, struct cordon_process **ret_process,
                 struct cordon_error *err)
{
	if (call_check(err, cordon, request, ret_process) < 0 || handle_check(cordon, err) < 0)
		return -1;
	if (!request->argv.count)
		return fail(err, CORDON_E_INVALID_REQUEST, 0, "", "there is no command to run");
	struct process *process = process_new(cordon, request);
	if (!process)
		return fail_oom(err);
	/* The session that is current in this thread is none in the other. */
	const char *current = request->session ? NULL : current_session();
	if (current && !(process->request.session = arena_strdup(&request->arena, current))) {
		process_free(process);
		return fail_oom(err);
	}
	struct cordon_process *handle = handle_new(process, err);
	process->handles = handle;
	pthread_mutex_lock(&cordon->jobs_lock);
	sweep(cordon);
	int result = handle ? process_begin(process, err) : -1;
	if (result == 0) {
		process->next = cordon->processes;
		cordon->processes = process;
	}
	pthread_mutex_unlock(&cordon->jobs_lock);
	if (result < 0) {
		if (handle)
			cleanup_close(&handle->fd);
		free(handle);
		process_free(process);
		return -1;
	}
	*ret_process = handle;
	return 0;
}

static struct process *find(struct cordon *cordon, const char *id)
{
	struct process *process = cordon->processes;
	while (process && strcmp(process->id, id) != 0)
		process = process->next;
	return process;
}

int process_attach(struct cordon *cordon, const char *id, uint64_t stdout_from, uint64_t stderr_from,
                   struct cordon_process **ret_handle, struct cordon_error *err)
{
	const uint64_t from[] = { 0, stdout_from, stderr_from };
	struct cordon_process *handle = NULL;
	int result = 0;
	pthread_mutex_lock(&cordon->jobs_lock);
	sweep(cordon);
	struct process *process = find(cordon, id);
	if (!process) {
		fail(err, CORDON_E_NOT_FOUND, 0, id, "there is no such process here");
		result = fail_remedy(err, "it has ended long ago, or another process of this machine runs it");
	} else if (!(handle = handle_new(process, err))) {
		result = -1;
	} else {
		pthread_mutex_lock(&process->lock);
		/* A place that is not reached yet is the end. */
		for (int stream = CORDON_STDOUT; stream <= CORDON_STDERR; stream++)
			handle->at[stream] = from[stream] < process->streams[stream].end ? from[stream] :
			                                                                   process->streams[stream].end;
		handle->next = process->handles;
		process->handles = handle;
		process_wake(process);
		pthread_mutex_unlock(&process->lock);
		*ret_handle = handle;
	}
	pthread_mutex_unlock(&cordon->jobs_lock);
	return result;
}

int cordon_process_attach(struct cordon *cordon, const char *id, uint64_t stdout_from, uint64_t stderr_from,
                          struct cordon_process **ret_process, struct cordon_error *err)
{
	if (call_check(err, cordon, id, ret_process) < 0 || handle_check(cordon, err) < 0)
		return -1;
	return process_attach(cordon, id, stdout_from, stderr_from, ret_process, err);
}

/* Detached, the process goes on without it. */
static void release(struct cordon_process *handle, bool detach)
{
	struct process *process = handle->process;
	struct cordon *cordon = process->cordon;
	if (cordon)
		pthread_mutex_lock(&cordon->jobs_lock);
	pthread_mutex_lock(&process->lock);
	struct cordon_process **at = &process->handles;
	while (*at != handle)
		at = &(*at)->next;
	*at = handle->next;
	process->detached |= detach;
	bool ends = !process->handles && !process->detached && process->state != PROCESS_ENDED,
	     last = !process->handles;
	process_poke(process);
	pthread_mutex_unlock(&process->lock);
	cleanup_close(&handle->fd);
	free(handle);
	if (ends)
		tell_end(process, "cancel", 0);
	if (cordon) {
		sweep(cordon);
		pthread_mutex_unlock(&cordon->jobs_lock);
	} else if (last) {
		process_free(process);
	}
}

void cordon_process_unref(struct cordon_process *process)
{
	if (process && (!process->process->cordon || check(process, NULL) == 0))
		release(process, false);
}

int cordon_process_detach(struct cordon_process *process, struct cordon_error *err)
{
	if (call_check(err, process) < 0 || check(process, err) < 0)
		return -1;
	release(process, true);
	return 0;
}

int cordon_process_fd(const struct cordon_process *process)
{
	return process ? process->fd : -1;
}

const char *cordon_process_id(const struct cordon_process *process)
{
	return process ? process->process->id : NULL;
}

/* ---- what is wanted of it -------------------------------------------------------------------------------------- */

int cordon_process_write(struct cordon_process *process, const void *data, size_t length, size_t *ret_taken,
                         struct cordon_error *err)
{
	if (call_check(err, process, data, ret_taken) < 0 || check(process, err) < 0)
		return -1;
	struct process *written = process->process;
	ssize_t taken = 0;
	int error = 0;
	pthread_mutex_lock(&written->lock);
	bool has_input = written->input_fd >= 0;
	if (has_input && length) {
		taken = send(written->input_fd, data, length, MSG_DONTWAIT | MSG_NOSIGNAL);
		error = taken < 0 ? errno : 0;
		if ((taken >= 0 ? (size_t)taken : 0) < length && (!error || error == EAGAIN || error == EINTR)) {
			written->wants_room = true;
			process_poke(written);
		}
	}
	pthread_mutex_unlock(&written->lock);
	if (!has_input || (error && error != EAGAIN && error != EINTR)) {
		fail(err, CORDON_E_INVALID_REQUEST, error, "stdin", "the process takes no input, or no more");
		return fail_boundary(err, "request");
	}
	*ret_taken = taken > 0 ? (size_t)taken : 0;
	return 0;
}

int cordon_process_close_stdin(struct cordon_process *process, struct cordon_error *err)
{
	if (call_check(err, process) < 0 || check(process, err) < 0)
		return -1;
	pthread_mutex_lock(&process->process->lock);
	/* The thread may be waiting on it: it is closed at the end. */
	if (process->process->input_fd >= 0)
		shutdown(process->process->input_fd, SHUT_WR);
	process->process->wants_room = false;
	pthread_mutex_unlock(&process->process->lock);
	return 0;
}

static int refuse_ended(const struct process *process, struct cordon_error *err)
{
	return fail(err, CORDON_E_NOT_FOUND, 0, process->id, "the process has ended");
}

int cordon_process_signal(struct cordon_process *process, int signal, struct cordon_error *err)
{
	uint64_t one = 1;
	if (call_check(err, process) < 0 || check(process, err) < 0)
		return -1;
	if (signal < 1 || signal >= 64)
		return fail(err, CORDON_E_INVALID_REQUEST, 0, NULL, "there is no such signal");
	struct process *told = process->process;
	pthread_mutex_lock(&told->lock);
	bool over = told->state == PROCESS_ENDED;
	if (signal == SIGCONT || signal == SIGSTOP)
		told->signals &= ~(UINT64_C(1) << (signal == SIGCONT ? SIGSTOP : SIGCONT));
	told->signals |= UINT64_C(1) << signal;
	/* Of a command that does not run yet, these end the waiting for an answer. */
	if (told->state == PROCESS_STARTING &&
	    (signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT || signal == SIGKILL))
		(void)!write(told->interrupt_fd, &one, sizeof(one));
	process_poke(told);
	pthread_mutex_unlock(&told->lock);
	return over ? refuse_ended(told, err) : 0;
}

int cordon_process_cancel(struct cordon_process *process, int64_t grace_ms, struct cordon_error *err)
{
	if (call_check(err, process) < 0 || check(process, err) < 0)
		return -1;
	if (grace_ms < 0)
		return fail(err, CORDON_E_INVALID_REQUEST, 0, "grace_ms", "must not be below 0");
	return tell_end(process->process, "cancel", grace_ms) ? 0 : refuse_ended(process->process, err);
}

int cordon_process_resize(struct cordon_process *process, unsigned short rows, unsigned short columns,
                          struct cordon_error *err)
{
	if (call_check(err, process) < 0 || check(process, err) < 0)
		return -1;
	struct process *resized = process->process;
	if (!resized->request.tty || !rows || !columns || rows > TERMINAL_MOST || columns > TERMINAL_MOST) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, resized->id,
		     resized->request.tty ? "a terminal has 1 to 9999 rows and columns"
		                          : "the process has no terminal");
		return fail_boundary(err, "request");
	}
	pthread_mutex_lock(&resized->lock);
	bool over = resized->state == PROCESS_ENDED;
	resized->rows = rows;
	resized->columns = columns;
	resized->resized = true;
	process_poke(resized);
	pthread_mutex_unlock(&resized->lock);
	return over ? refuse_ended(resized, err) : 0;
}

int cordon_process_answer(struct cordon_process *process, const char *card, const char *hash, enum cordon_answer answer,
                          const char *reason, struct cordon_error *err)
{
	if (call_check(err, process, card) < 0 || check(process, err) < 0)
		return -1;
	struct process *asking = process->process;
	pthread_mutex_lock(&asking->lock);
	bool asks = *asking->asks && !strcmp(asking->asks, card);
	pthread_mutex_unlock(&asking->lock);
	if (asks)
		return cordon_approvals_answer(asking->cordon, card, hash, answer, reason, err);
	fail(err, CORDON_E_NOT_FOUND, 0, card, "the process does not ask this, or no longer");
	return fail_boundary(err, "request");
}

int cordon_process_wait(struct cordon_process *process, int64_t timeout_ms, struct cordon_value **ret_result,
                        struct cordon_error *err)
{
	if (call_check(err, process, ret_result) < 0 || process_check_owner(process, err) < 0)
		return -1;
	struct process *awaited = process->process;
	int64_t until = timeout_ms < 0 ? -1 : clock_ms() + timeout_ms;
	const struct timespec time = { .tv_sec = until / 1000, .tv_nsec = until % 1000 * 1000000 };
	int waited = 0;
	pthread_mutex_lock(&awaited->lock);
	process->waits = true;
	process_poke(awaited);
	while (awaited->state != PROCESS_ENDED && waited == 0)
		waited = until < 0 ? pthread_cond_wait(&awaited->changed, &awaited->lock)
		                   : pthread_cond_timedwait(&awaited->changed, &awaited->lock, &time);
	process->waits = false;
	bool ended = awaited->state == PROCESS_ENDED;
	pthread_mutex_unlock(&awaited->lock);
	/* Nothing of what follows changes any more. */
	if (!ended) {
		*ret_result = NULL;
		return 0;
	}
	if (awaited->result && value_take(json_incref(awaited->result), ret_result, err) < 0)
		return -1;
	if (awaited->error.class == CORDON_OK)
		return 0;
	*err = awaited->error;
	return -1;
}

/* ---- the list -------------------------------------------------------------------------------------------------- */

json_t *process_tell(struct process *process)
{
	static const char *const states[] = { "starting", "running", "ended" };
	json_t *command = json_array();
	for (size_t i = 0; command && i < process->request.argv.count; i++) {
		const char *word = process->request.argv.items[i];
		json_array_append_new(command, value_bytes(word, strlen(word)));
	}
	pthread_mutex_lock(&process->lock);
	json_t *told =
		json_pack("{s:s, s:s, s:s?, s:o, s:b, s:{s:I, s:I}, s:{s:I, s:I}}", "id", process->id, "state",
	                  states[process->state], "session", process->request.session, "command", command, "detached",
	                  (int)process->detached, "stdout", "from", (json_int_t)process->streams[CORDON_STDOUT].from,
	                  "bytes", (json_int_t)process->streams[CORDON_STDOUT].end, "stderr", "from",
	                  (json_int_t)process->streams[CORDON_STDERR].from, "bytes",
	                  (json_int_t)process->streams[CORDON_STDERR].end);
	if (told && process->state == PROCESS_ENDED && process->result)
		json_object_set(told, "exit_code", json_object_get(process->result, "exit_code"));
	if (told && process->state == PROCESS_ENDED && process->error.class != CORDON_OK)
		json_object_set_new(told, "error", value_error(&process->error));
	pthread_mutex_unlock(&process->lock);
	return told;
}

json_t *process_list(struct cordon *cordon)
{
	json_t *list = json_array();
	pthread_mutex_lock(&cordon->jobs_lock);
	sweep(cordon);
	for (struct process *process = cordon->processes; process; process = process->next)
		json_array_append_new(list, process_tell(process));
	pthread_mutex_unlock(&cordon->jobs_lock);
	return json_pack("{s:o}", "processes", list);
}

size_t process_count(struct cordon *cordon)
{
	size_t count = 0;
	pthread_mutex_lock(&cordon->jobs_lock);
	for (struct process *process = cordon->processes; process; process = process->next) {
		pthread_mutex_lock(&process->lock);
		count += process->state != PROCESS_ENDED;
		pthread_mutex_unlock(&process->lock);
	}
	pthread_mutex_unlock(&cordon->jobs_lock);
	return count;
}

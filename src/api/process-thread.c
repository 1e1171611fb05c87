/* The thread that follows a process: see process.h. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "api/process.h"
#include "api/result.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"

#define KILL_AGAIN_MS 3000
#define WAIT_MOST_MS 60000
#define THREAD_STACK ((size_t)2 << 20)

static void poke(int fd)
{
	uint64_t one = 1;
	(void)!write(fd, &one, sizeof(one));
}

static void push(struct process *process, json_t *event)
{
	pthread_mutex_lock(&process->lock);
	process_push(process, event);
	pthread_mutex_unlock(&process->lock);
}

/* ---- what the library calls ------------------------------------------------------------------------------------ */

static void on_output(void *arg, enum cordon_stream stream, const void *data, size_t length)
{
	struct process *process = arg;
	pthread_mutex_lock(&process->lock);
	process_add_output(process, stream, data, length);
	process_wake(process);
	pthread_mutex_unlock(&process->lock);
}

static void note_card(struct process *process, const char *card)
{
	pthread_mutex_lock(&process->lock);
	snprintf(process->asks, sizeof(process->asks), "%s", card);
	pthread_mutex_unlock(&process->lock);
}

/* A question becomes an event, and is answered through the queue like one that is asked nowhere; then another event
 * says that it is settled. */
static enum cordon_answer ask(void *arg, const struct cordon_card *card, char reason[256])
{
	struct process *process = arg;
	struct pollfd ready[] = { { .fd = card->settled_fd, .events = POLLIN },
		                  { .fd = process->interrupt_fd, .events = POLLIN } };
	(void)reason;
	note_card(process, card->id);
	push(process, json_pack("{s:s, s:s, s:s, s:o?, s:I}", "event", "asks", "card", card->id, "hash", card->hash,
	                        "question", value_parse(card->json), "timeout_ms", (json_int_t)card->timeout_ms));
	/* Where the kernel cannot tell that it is settled, the queue can. */
	int64_t until = clock_ms() + (int64_t)card->timeout_ms;
	for (int64_t left;
	     card->settled_fd >= 0 && (left = until - clock_ms()) > 0 && !ready[0].revents && !ready[1].revents;)
		poll(ready, ARRAY_SIZE(ready), left < 60000 ? (int)left : 60000);
	note_card(process, "");
	push(process, json_pack("{s:s, s:s}", "event", "settled", "card", card->id));
	return CORDON_UNANSWERED;
}

/* ---- the loop -------------------------------------------------------------------------------------------------- */

struct following {
	struct process *process;
	struct cordon_execution *execution;
	bool told;                      /* it was told to end */
	int64_t kill_at_ms;             /* 0: it will not be killed */
	int64_t end_at_ms;              /* 0: it will not be told to end */
};

static void end_by(struct following *following, const char *by, int64_t grace_ms)
{
	if (following->told && grace_ms)
		return;
	following->told = true;
	following->execution->walk->run.told_by = by;
	/* One that is frozen with its session takes no signal. */
	bool at_once = !grace_ms ||
	               following->execution->walk->run.running->ops->is_still(following->execution->walk->run.running);
	cordon_execution_signal(following->execution, at_once ? SIGKILL : SIGTERM);
	cordon_execution_signal(following->execution, SIGCONT);
	following->kill_at_ms = clock_ms() + (at_once ? KILL_AGAIN_MS : grace_ms);
}

/* A handle that does not take the output holds the command, unless that was told to end. */
static void hold(struct following *following, int stream)
{
	struct process *process = following->process;
	bool held = process->streams[stream].held;
	uint64_t behind = process_behind(process, stream);
	bool hold = !following->told && (held ? behind > PROCESS_BEHIND / 2 : behind > PROCESS_BEHIND);
	if (hold != held)
		cordon_execution_hold_output(following->execution, (enum cordon_stream)stream, hold);
	process->streams[stream].held = hold;
}

/* What callers want of it. */
static void obey(struct following *following)
{
	struct process *process = following->process;
	pthread_mutex_lock(&process->lock);
	uint64_t signals = process->signals;
	const char *told_by = process->told_by;
	int64_t grace_ms = process->grace_ms;
	bool resized = process->resized;
	unsigned short rows = process->rows, columns = process->columns;
	if (!told_by && process->end_at_ms && clock_ms() >= process->end_at_ms) {
		told_by = "daemon";
		grace_ms = process->end_grace_ms;
		process->end_at_ms = 0;
	}
	following->end_at_ms = process->end_at_ms;
	process->signals = 0;
	process->resized = false;
	process->told_by = NULL;
	for (int signal = 1; signals && signal < 64; signal++)
		if (signals & UINT64_C(1) << signal)
			cordon_execution_signal(following->execution, signal);
	if (resized)
		cordon_execution_resize(following->execution, rows, columns);
	if (told_by)
		end_by(following, told_by, grace_ms);
	for (int stream = CORDON_STDOUT; stream <= CORDON_STDERR; stream++)
		hold(following, stream);
	pthread_mutex_unlock(&process->lock);
}

static bool wants_room(struct process *process, int *ret_fd)
{
	pthread_mutex_lock(&process->lock);
	bool wants = process->wants_room && process->input_fd >= 0;
	*ret_fd = process->input_fd;
	pthread_mutex_unlock(&process->lock);
	return wants;
}

static void tell_room(struct process *process)
{
	pthread_mutex_lock(&process->lock);
	process->wants_room = false;
	for (struct cordon_process *handle = process->handles; handle; handle = handle->next)
		handle->has_room = true;
	process_wake(process);
	pthread_mutex_unlock(&process->lock);
}

static int wait_ms(const struct following *following)
{
	int64_t until = following->kill_at_ms ? following->kill_at_ms : following->end_at_ms;
	if (!until)
		return -1;
	int64_t left = until - clock_ms();
	return left <= 0 ? 0 : left < WAIT_MOST_MS ? (int)left : WAIT_MOST_MS;
}

static int follow(struct following *following, struct cordon_error *err)
{
	struct process *process = following->process;
	for (bool finished = false; !finished;) {
		int input_fd;
		uint64_t count;
		bool room = wants_room(process, &input_fd);
		obey(following);
		struct pollfd ready[] = { { .fd = cordon_execution_fd(following->execution), .events = POLLIN },
			                  { .fd = process->poke_fd, .events = POLLIN },
			                  { .fd = room ? input_fd : -1, .events = POLLOUT } };
		if (poll(ready, ARRAY_SIZE(ready), wait_ms(following)) < 0 && errno != EINTR)
			return fail(err, CORDON_E_INTERNAL, errno, NULL, "waiting for the process failed");
		if (ready[1].revents)
			(void)!read(process->poke_fd, &count, sizeof(count));
		if (ready[2].revents)
			tell_room(process);
		if (following->kill_at_ms && clock_ms() >= following->kill_at_ms)
			end_by(following, following->execution->walk->run.told_by, 0);
		if (cordon_execution_step(following->execution, &finished, err) < 0)
			return -1;
	}
	return 0;
}

/* ---- its life -------------------------------------------------------------------------------------------------- */

static json_t *started_event(const struct process *process, const struct execution *walk)
{
	return json_pack("{s:s, s:s, s:s, s:s?, s:s, s:s}", "event", "started", "id", process->id, "audit_id",
	                 walk->audit.id, "session", walk->verdict.session.one_off ? NULL : walk->verdict.session.id,
	                 "workspace", walk->verdict.session.workspace.path, "cwd", walk->verdict.cwd.path);
}

/* The result without the output, which its events have told. */
static json_t *ended_event(const struct process *process)
{
	json_t *event = json_pack("{s:s, s:s}", "event", "ended", "id", process->id),
	       *copy = json_copy(process->result);
	json_object_del(copy, "stdout");
	json_object_del(copy, "stderr");
	if (copy)
		json_object_set_new(event, "result", copy);
	if (process->error.class != CORDON_OK)
		json_object_set_new(event, "error", value_error(&process->error));
	return event;
}

static void conclude(struct process *process, json_t *result, const struct cordon_error *error)
{
	pthread_mutex_lock(&process->lock);
	process->result = result;
	process->error = *error;
	process->state = PROCESS_ENDED;
	close_fd(&process->input_fd);
	process_push_end(process, ended_event(process));
	pthread_cond_broadcast(&process->changed);
	pthread_mutex_unlock(&process->lock);
}

/* What was taken back before it ran was not refused. */
static void refuse(struct process *process, struct cordon_error *err)
{
	pthread_mutex_lock(&process->lock);
	bool told = process->told_by != NULL;
	pthread_mutex_unlock(&process->lock);
	if (told) {
		fail(err, CORDON_E_CANCELLED, 0, err->subject, "the process was told to end before its command ran");
		fail_remedy(err, "start it again");
	}
	conclude(process, NULL, err);
}

static void run(struct process *process)
{
	struct following following = { .process = process };
	struct cordon_error err = { .class = CORDON_OK };
	struct cordon_result *result = NULL;
	if (cordon_execution_start(process->cordon, &process->request, &following.execution, &err) < 0)
		return refuse(process, &err);
	pthread_mutex_lock(&process->lock);
	process->state = PROCESS_RUNNING;
	process_push(process, started_event(process, following.execution->walk));
	pthread_mutex_unlock(&process->lock);
	bool failed = follow(&following, &err) < 0 || cordon_execution_result(following.execution, &result, &err) < 0;
	json_t *tree = result ? result_tree(result) : NULL;
	if (!tree && !failed)
		fail_oom(&err);
	cordon_result_unref(result);
	/* The session is free before a caller knows that it has ended. */
	cordon_execution_unref(following.execution);
	conclude(process, tree, &err);
}

static void *work(void *arg)
{
	struct process *process = arg;
	run(process);
	pthread_mutex_lock(&process->lock);
	/* Hundreds of those that have ended may be kept. Who tells one something has the lock. */
	close_fd(&process->interrupt_fd);
	close_fd(&process->poke_fd);
	close_fd(&process->input_given_fd);
	process->done = true;
	pthread_cond_broadcast(&process->changed);
	pthread_mutex_unlock(&process->lock);
	return NULL;
}

/* Its input: what the caller gave, or our end of a pair of sockets, which raises no SIGPIPE. */
static int open_input(struct process *process, struct cordon_error *err)
{
	int ends[2], given = process->request.stdin_fd;
	if (given >= 0) {
		process->input_given_fd = fcntl(given, F_DUPFD_CLOEXEC, 3);
		if (process->input_given_fd < 0)
			return fail(err, CORDON_E_INVALID_REQUEST, errno, "stdin",
			            "the descriptor for the input cannot be used");
	} else if (process->request.stream_input || process->request.tty) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
			return fail(err, CORDON_E_INTERNAL, errno, "stdin", "the input of the process cannot be made");
		process->input_fd = ends[0];
		process->input_given_fd = ends[1];
		shutdown(ends[1], SHUT_WR);
	}
	process->request.stdin_fd = process->input_given_fd;
	return 0;
}

static void choose_approver(struct process *process)
{
	struct cordon_request *request = &process->request;
	const struct approver *asked = walk_approver(process->cordon, request);
	struct approver chosen = { request->ask_events ? ask : asked->fn, request->ask_events ? process : asked->arg,
		                   process->interrupt_fd, asked->pid, asked->is_client };
	request->has_approver = true;
	request->approver = chosen;
}

int process_begin(struct process *process, struct cordon_error *err)
{
	process->interrupt_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	process->poke_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (process->interrupt_fd < 0 || process->poke_fd < 0)
		return fail(err, CORDON_E_INTERNAL, errno, NULL, "the process has no descriptors to be told by");
	if (open_input(process, err) < 0)
		return -1;
	choose_approver(process);
	process->request.output = on_output;
	process->request.output_arg = process;
	int result = thread_start(&process->thread, THREAD_STACK, work, process);
	if (result == 0)
		return 0;
	fail(err, CORDON_E_RESOURCE_EXHAUSTED, result, "pthread_create", "cannot start a thread");
	return fail_remedy(err, "try again when fewer processes run");
}

void process_poke(struct process *process)
{
	poke(process->poke_fd);
}

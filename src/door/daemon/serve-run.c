/* One command in the daemon:
 *
 *     begin  -->  worker: admit, cordon_execution_start(), its first moments  -->  conclude
 *                    |                                                        ^
 *                    +-->  loop: steps while it runs  -->  worker: result ----+
 *
 * Most commands are over soon, and then cost one hand-over. A command whose client goes away is ended as one whose
 * terminal does: SIGHUP, and a second later SIGKILL. With the daemon it ends by SIGTERM, and then so; its client is
 * told how it ended. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "cordon-internal.h"
#include "door/daemon/serve.h"

#define FIRST_MOMENTS_MS 20
#define GRACE_S 1

static uint64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void poke(int fd)
{
	uint64_t one = 1;
	(void)!write(fd, &one, sizeof(one));
}

/* ---- signals and the end --------------------------------------------------------------------------------------- */

/* By the owner of the run. */
static void deliver(struct served *run)
{
	unsigned long long signals = atomic_exchange(&run->signals, 0);
	for (int signal = 1; signals && signal < 64; signal++)
		if (signals & 1ull << signal)
			cordon_execution_signal(run->execution, signal);
}

void run_signal(struct served *run, int signal)
{
	static const int ending[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	if (signal < 1 || signal >= 64)
		return;
	if (signal == SIGCONT || signal == SIGSTOP)
		atomic_fetch_and(&run->signals, ~(1ull << (signal == SIGCONT ? SIGSTOP : SIGCONT)));
	atomic_fetch_or(&run->signals, 1ull << signal);
	if (run->in_loop)
		return deliver(run);
	for (size_t i = 0; i < ARRAY_SIZE(ending) && !atomic_load(&run->started); i++)
		if (signal == ending[i])
			poke(run->interrupt_fd);
}

static void on_grace(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	run_end(arg, SIGKILL);
}

/* Whether it waits until its client has read what it wrote. */
static bool is_paced(const struct served *run)
{
	int signal = atomic_load(&run->end_by);
	return !signal || signal == SIGTERM;
}

/* Once the loop has it. */
static void obey_end(struct served *run)
{
	int signal = atomic_load(&run->end_by);
	if (!signal)
		return;
	run->ends_with_us = atomic_load(&run->server->is_ending);
	cordon_execution_signal(run->execution, signal);
	/* A stopped command takes no other signal. */
	cordon_execution_signal(run->execution, SIGCONT);
	evtimer_add(&run->grace, &(struct timeval){ .tv_sec = GRACE_S });
	if (!is_paced(run))
		run_go_on(run);
}

void run_end(struct served *run, int signal)
{
	if (atomic_load(&run->end_by) && signal != SIGKILL)
		return;
	atomic_store(&run->end_by, signal);
	poke(run->interrupt_fd);
	if (run->in_loop)
		obey_end(run);
}

/* ---- asking ---------------------------------------------------------------------------------------------------- */

void run_answer(struct served *run, const char *card, const char *hash, unsigned answer, const char *reason)
{
	pthread_mutex_lock(&run->lock);
	if (run->answer_fd >= 0 && !strcmp(card, run->card)) {
		bool counts = !strcmp(hash, run->hash) && answer < CORDON_ANSWER_MAX;
		run->answer = counts ? (enum cordon_answer)answer : CORDON_UNANSWERED;
		snprintf(run->reason, sizeof(run->reason), "%s", reason);
		poke(run->answer_fd);
	}
	pthread_mutex_unlock(&run->lock);
}

/* Puts the question where the answer can find it. */
static bool open_question(struct served *run, const struct cordon_card *card)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd < 0)
		return false;
	pthread_mutex_lock(&run->lock);
	run->answer_fd = fd;
	run->answer = CORDON_UNANSWERED;
	snprintf(run->card, sizeof(run->card), "%s", card->id);
	snprintf(run->hash, sizeof(run->hash), "%s", card->hash);
	pthread_mutex_unlock(&run->lock);
	return true;
}

static enum cordon_answer close_question(struct served *run, char reason[256])
{
	pthread_mutex_lock(&run->lock);
	enum cordon_answer answer = run->answer;
	memcpy(reason, run->reason, sizeof(run->reason));
	close(run->answer_fd);
	run->answer_fd = -1;
	pthread_mutex_unlock(&run->lock);
	return answer;
}

/* A cordon_approver_fn, in whatever thread the library asks from. */
static enum cordon_answer ask(void *arg, const struct cordon_card *card, char reason[256])
{
	struct served *run = arg;
	if (!open_question(run, card))
		return CORDON_UNANSWERED;
	if (run->kind->ask(run, card)) {
		uint64_t until = now_ms() + card->timeout_ms, now;
		struct pollfd ready[] = { { .fd = run->answer_fd, .events = POLLIN },
			                  { .fd = card->settled_fd, .events = POLLIN },
			                  { .fd = run->interrupt_fd, .events = POLLIN } };
		int count = 0;
		while ((now = now_ms()) < until && count <= 0 && (count == 0 || errno == EINTR))
			count = poll(ready, ARRAY_SIZE(ready), until - now < 60000 ? (int)(until - now) : 60000);
		if (!ready[0].revents)
			run->kind->settled(run);
	}
	return close_question(run, reason);
}

/* ---- in a worker ----------------------------------------------------------------------------------------------- */

static void on_output(void *arg, enum cordon_stream stream, const void *data, size_t length)
{
	struct served *run = arg;
	run->kind->output(run, stream, data, length);
}

/* In the loop: it is over. */
static void leave(struct post *post)
{
	struct served *run = (struct served *)((char *)post - offsetof(struct served, post));
	struct client *client = run->client;
	*run->previous = run->next;
	if (run->next)
		run->next->previous = run->previous;
	stdin_close(run);
	close(run->interrupt_fd);
	pthread_mutex_destroy(&run->lock);
	run->server->run_count--;
	run->kind->free(run);
	client_settle(client);
}

/* Of the worker that has it, the last. */
static void let_go(struct served *run)
{
	cordon_result_unref(run->result);
	cordon_execution_unref(run->execution);
	cordon_request_unref(run->request);
	free(run->job);
	free(run->note);
	run->post.act = leave;
	server_post(run->server, &run->post);
}

/* What the library cannot know. */
static void add_note(struct served *run, const char *text)
{
	const char *before = run->result->note;
	char *joined;
	if (asprintf(&joined, "%s%s%s", before ? before : "", before ? "; " : "", text) < 0)
		return;
	free(run->note);
	run->result->note = run->note = joined;
}

static void add_notes(struct served *run)
{
	int error = atomic_load(&run->input.error);
	char text[128];
	snprintf(text, sizeof(text), TEXT_INPUT_CUT, strerror(error));
	if (error)
		add_note(run, text);
	if (run->ends_with_us)
		add_note(run, "the daemon is ending, and it ended the command");
}

static void finish(struct task *task)
{
	struct served *run = (struct served *)((char *)task - offsetof(struct served, task));
	/* An error after the command had ended is reported with its result. */
	if (!run->failed && !run->is_job)
		run->failed = cordon_execution_result(run->execution, &run->result, &run->err) < 0 && !run->result;
	if (run->result)
		add_notes(run);
	atomic_store(&run->is_told, true);
	run->kind->conclude(run);
	let_go(run);
}

/* True: it has ended, or cannot continue. */
static bool follow_first_moments(struct served *run)
{
	struct pollfd ready = { .fd = cordon_execution_fd(run->execution), .events = POLLIN };
	uint64_t until = now_ms() + FIRST_MOMENTS_MS, now;
	bool finished = false;
	while (!finished && (now = now_ms()) < until && !atomic_load(&run->end_by) &&
	       !pool_is_pressed(&run->server->starts) && client_unread(run->client) <= UNREAD_MAX) {
		deliver(run);
		poll(&ready, 1, (int)(until - now));
		if (cordon_execution_step(run->execution, &finished, &run->err) < 0)
			return run->failed = true;
	}
	return finished;
}

static void adopt(struct post *post);

static bool set_up(struct served *run)
{
	if (!run->request)
		return false;
	cordon_request_output(run->request, on_output, run);
	cordon_request_approver(run->request, run->can_ask ? ask : NULL, run, run->interrupt_fd, run->client->pid);
	return !run->takes_input || stdin_open(run, &run->err) == 0;
}

static int launch(struct served *run)
{
	struct cordon *cordon = run->server->cordon;
	if (run->is_job)
		return cordon_job_start(cordon, run->request, &run->job, &run->err);
	return cordon_execution_start(cordon, run->request, &run->execution, &run->err);
}

static void start(struct task *task)
{
	struct served *run = (struct served *)((char *)task - offsetof(struct served, task));
	if (!run->kind->admit(run)) {
		atomic_store(&run->is_told, true);
		return let_go(run);
	}
	run->failed = !set_up(run) || launch(run) < 0;
	atomic_store(&run->started, !run->failed);
	if (run->failed || run->is_job)
		return finish(task);
	run->kind->started(run);
	if (!run->is_long && follow_first_moments(run))
		return finish(task);
	run->post.act = adopt;
	server_post(run->server, &run->post);
}

void run_begin(struct served *run, struct client *client, const struct served_kind *kind)
{
	run->server = client->server;
	run->client = client;
	run->kind = kind;
	run->answer_fd = run->input.read_fd = run->input.write_fd = -1;
	run->interrupt_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_init(&run->lock, NULL);
	run->next = client->runs;
	run->previous = &client->runs;
	if (run->next)
		run->next->previous = &run->next;
	client->runs = run;
	client->pending++;
	run->server->run_count++;
	run->server->served_count++;
	run->task.act = start;
	server_start(run->server, &run->task);
}

/* ---- in the loop ----------------------------------------------------------------------------------------------- */

static void leave_loop(struct served *run)
{
	event_del(&run->ready);
	event_del(&run->grace);
	run->in_loop = false;
	run->task.act = finish;
	server_start(run->server, &run->task);
}

/* A client that does not read its output leaves its command waiting, as a pipe would. */
static void stall(struct served *run, bool stalled)
{
	run->is_stalled = stalled;
	cordon_execution_hold_output(run->execution, CORDON_STDOUT, stalled);
	cordon_execution_hold_output(run->execution, CORDON_STDERR, stalled);
}

static void on_ready(evutil_socket_t fd, short what, void *arg)
{
	struct served *run = arg;
	bool finished = false;
	(void)fd, (void)what;
	run->failed = cordon_execution_step(run->execution, &finished, &run->err) < 0;
	if (run->failed || finished)
		return leave_loop(run);
	bool stalled = client_unread(run->client) > UNREAD_MAX && is_paced(run);
	if (stalled != run->is_stalled)
		stall(run, stalled);
}

void run_go_on(struct served *run)
{
	if (!run->in_loop || !run->is_stalled)
		return;
	stall(run, false);
}

static void adopt(struct post *post)
{
	struct served *run = (struct served *)((char *)post - offsetof(struct served, post));
	run->in_loop = true;
	evtimer_assign(&run->grace, run->server->base, on_grace, run);
	event_assign(&run->ready, run->server->base, cordon_execution_fd(run->execution), EV_READ | EV_PERSIST,
	             on_ready, run);
	event_add(&run->ready, NULL);
	deliver(run);
	if (run->input.waiting || run->input.has_ended)
		stdin_put(run, "", 0);
	obey_end(run);
}

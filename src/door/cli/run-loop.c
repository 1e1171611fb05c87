/* One loop over what carries the command out, signals (run-signals.c), the two outputs while something waits to be
 * written to them, and their readers. Signals sent to cordon go on to the command, as if cordon were not there; being
 * stopped stops the command too. What is written slowly is taken slowly. When the reader of the output goes away, the
 * command's next write ends by SIGPIPE, as in a pipeline.
 *
 * While the command runs, a connection of its may wait for an answer, and people are asked from another thread. What
 * the command writes then waits, too: on the terminal with the question there is nothing of its. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "door/cli/run.h"
#include "door/cli/terminal.h"

/* With so much of a stream unwritten, no more of it is taken until little is left: the command waits, as at any
 * pipe. */
#define HOLD_BYTES (256u << 10)
#define RESUME_BYTES (64u << 10)
/* The same where streams come together, from a daemon; what else that says is looked at so often. */
#define WAITING_MAX (1u << 20)
#define STALLED_MS 1000
#define SIGPIPE_GRACE_MS 1000

static uint64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- output ------------------------------------------------------------------------------------------------------ */

void run_output(void *arg, enum cordon_stream stream, const void *data, size_t length)
{
	struct run *run = arg;
	pthread_mutex_lock(&run->lock);
	sink_live(stream == CORDON_STDERR ? &run->err : &run->out, data, length);
	pthread_mutex_unlock(&run->lock);
}

static void hold_output(struct run *run, bool hold)
{
	pthread_mutex_lock(&run->lock);
	run->out.held = hold && run->out.portion.is_terminal;
	run->err.held = hold && run->err.portion.is_terminal;
	pthread_mutex_unlock(&run->lock);
	if (!hold)
		run_wake(run);
}

enum cordon_answer run_ask(struct run *run, const struct cordon_card *card, bool running, char reason[256])
{
	/* What the command wrote may have left colours, another character set, a part of the screen to scroll in. */
	static const char plain[] = "\017\033[!p\033[0m\n";
	if (!running)
		return prompt_ask(&run->prompt, card, reason);
	hold_output(run, true);
	if (run->out.held || run->err.held)
		(void)!write(run->prompt.tty, plain, sizeof(plain) - 1);
	enum cordon_answer answer = prompt_ask(&run->prompt, card, reason);
	hold_output(run, false);
	return answer;
}

static void pump_output(struct run *run)
{
	run_wake_taken(run);
	pthread_mutex_lock(&run->lock);
	sink_pump(&run->out);
	sink_pump(&run->err);
	pthread_mutex_unlock(&run->lock);
}

static void hold_stream(struct run *run, enum cordon_stream stream, const struct sink *sink)
{
	size_t waiting = sink_waiting(sink);
	if (waiting > HOLD_BYTES)
		run->carrier->hold(run, stream, true);
	else if (waiting <= RESUME_BYTES)
		run->carrier->hold(run, stream, false);
}

static void hold_streams(struct run *run)
{
	if (!run->carrier->hold)
		return;
	pthread_mutex_lock(&run->lock);
	hold_stream(run, CORDON_STDOUT, &run->out);
	hold_stream(run, CORDON_STDERR, &run->err);
	pthread_mutex_unlock(&run->lock);
}

static void note_reader(struct sink *sink, short events)
{
	if (events & POLLERR && !sink->error)
		sink->error = EPIPE;
}

/* ---- signals ----------------------------------------------------------------------------------------------------- */

static void resize(struct run *run)
{
	unsigned short rows, columns;
	terminal_size(&rows, &columns);
	cordon_execution_resize(run->execution, rows, columns);
}

/* The command is in a session of its own, where SIGTSTP would be ignored: no shell there waits for it to stop. */
static void stop_both(struct run *run)
{
	run->carrier->signal(run, SIGSTOP);
	terminal_restore();
	kill(getpid(), SIGSTOP);
	if (run->terminal && terminal_is_ours()) {
		terminal_raw();
		resize(run);
	}
	run->carrier->signal(run, SIGCONT);
}

static void handle_signals(struct run *run)
{
	for (int number; (number = run_take_signal(run));) {
		if (number == SIGWINCH)
			resize(run);
		else if (number == SIGTSTP && run->terminal && !cordon_execution_press_stop(run->execution))
			continue;
		else if (number == SIGTSTP)
			stop_both(run);
		else
			run->carrier->signal(run, number);
	}
}

/* Where the command's own pipe can be closed it finds out as it would outside: when it writes next. */
static void close_broken(struct run *run, enum cordon_stream stream, const struct sink *sink, bool *closed)
{
	/* A stream that was closed before cordon began is no reader that went away. */
	if (!sink->error || sink->error == EBADF || *closed)
		return;
	*closed = true;
	run->carrier->close(run, stream);
}

static void handle_broken_pipe(struct run *run)
{
	if (run->carrier->close && !run->tty) {
		close_broken(run, CORDON_STDOUT, &run->out, &run->out_closed);
		close_broken(run, CORDON_STDERR, &run->err, &run->err_closed);
		return;
	}
	if (run->out.error != EPIPE && run->err.error != EPIPE)
		return;
	if (!run->broken_at_ms) {
		run->broken_at_ms = now_ms();
		run->carrier->signal(run, SIGPIPE);
	} else if (now_ms() - run->broken_at_ms >= SIGPIPE_GRACE_MS) {
		run->carrier->signal(run, SIGKILL);
	}
}

enum ready {
	READY_CARRIER,
	READY_SIGNAL,
	READY_ANSWERED,
	READY_OUT,
	READY_ERR,
	READY_OUT_READER,
	READY_ERR_READER,
	READY_MAX
};

/* *ret_steps: what carries the command out is to be stepped. A negative number: waiting failed. */
static int wait_ready(struct run *run, struct pollfd ready[READY_MAX], bool *ret_steps)
{
	pthread_mutex_lock(&run->lock);
	bool stalled = !run->carrier->hold && sink_waiting(&run->out) + sink_waiting(&run->err) > WAITING_MAX;
	const struct pollfd wanted[READY_MAX] = {
		[READY_CARRIER] = { .fd = stalled ? -1 : run->carrier->fd(run), .events = POLLIN },
		[READY_SIGNAL] = { .fd = run->signal_fd, .events = POLLIN },
		[READY_ANSWERED] = { .fd = run->answered_fd, .events = POLLIN },
		[READY_OUT] = { .fd = sink_fd(&run->out), .events = POLLOUT },
		[READY_ERR] = { .fd = sink_fd(&run->err), .events = POLLOUT },
		[READY_OUT_READER] = { .fd = sink_reader_fd(&run->out) },
		[READY_ERR_READER] = { .fd = sink_reader_fd(&run->err) },
	};
	pthread_mutex_unlock(&run->lock);
	memcpy(ready, wanted, sizeof(wanted));
	int most_ms = stalled || run->broken_at_ms ? STALLED_MS : -1, look_ms = run_look_ms(run);
	int count = poll(ready, READY_MAX, look_ms >= 0 && (most_ms < 0 || look_ms < most_ms) ? look_ms : most_ms);
	*ret_steps = !stalled || count == 0;
	return count < 0 && errno != EINTR ? -1 : 0;
}

int run_loop(struct run *run, struct cordon_error *err)
{
	struct pollfd ready[READY_MAX];
	for (bool finished = false; !finished;) {
		bool steps;
		if (wait_ready(run, ready, &steps) < 0)
			return fail(err, CORDON_E_INTERNAL, errno, NULL, "waiting for the command failed");
		handle_signals(run);
		pump_output(run);
		note_reader(&run->out, ready[READY_OUT_READER].revents);
		note_reader(&run->err, ready[READY_ERR_READER].revents);
		if (steps && run->carrier->step(run, &finished, err) < 0)
			return -1;
		hold_streams(run);
		handle_broken_pipe(run);
	}
	return 0;
}

/* `cordon run`: one command, its streams and its signals.
 *
 * One loop over four descriptors: the execution, a signalfd, and the two outputs while something waits to be written
 * to them. Signals sent to cordon go on to the command, as if cordon were not there; being stopped stops the command
 * too. When the reader of the output goes away the command ends by SIGPIPE, as in a pipeline.
 *
 * While the command runs, a connection of its may wait for an answer, and the library asks from another thread. What the
 * command writes then waits, too: on the terminal with the question there is nothing of its. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "door/cli.h"
#include "door/prompt.h"
#include "door/report.h"
#include "door/request.h"
#include "door/sink.h"
#include "door/terminal.h"

#define STDOUT_KEPT (1u << 20)
#define STDERR_KEPT (256u << 10)
/* Beyond this much unwritten output the command is left waiting... */
#define WAITING_MAX (1u << 20)
/* ...but for this often, so that its timeout is not missed. */
#define STALLED_MS 1000
#define SIGPIPE_GRACE_MS 1000

struct run {
	struct cordon *cordon;
	struct cordon_request *request;
	struct cordon_execution *execution;
	struct sink out, err;
	sigset_t mask_before;
	int signal_fd;
	int interrupt_fd;               /* readable when one of the signals that end things waits */
	struct prompt prompt;
	pthread_t main;
	pthread_mutex_t lock;           /* over the sinks while the command runs */
	int answered_fd;                /* readable: what was held may be written */
	bool json, tty, terminal;       /* `terminal`: the caller's is raw while the command runs */
	uint64_t broken_at_ms;          /* when the reader was found gone, or 0 */
};

static const int forwarded[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };
#define ENDING 4        /* the first so many of these */

static uint64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void on_output(void *arg, enum cordon_stream stream, const void *data, size_t length)
{
	struct run *run = arg;
	pthread_mutex_lock(&run->lock);
	sink_live(stream == CORDON_STDERR ? &run->err : &run->out, data, length);
	pthread_mutex_unlock(&run->lock);
}

static void hold_output(struct run *run, bool hold)
{
	uint64_t one = 1;
	pthread_mutex_lock(&run->lock);
	run->out.held = hold && run->out.is_terminal;
	run->err.held = hold && run->err.is_terminal;
	pthread_mutex_unlock(&run->lock);
	if (!hold)
		(void)!write(run->answered_fd, &one, sizeof(one));
}

/* Before the command starts, in the main thread; while it runs, in another. Where the command has the terminal to itself,
 * it is for others to answer: in another terminal, with cordon approvals. */
static enum cordon_answer ask(void *arg, const struct cordon_card *card, char reason[256])
{
	/* What the command wrote may have left colours, another character set, a part of the screen to scroll in. */
	static const char plain[] = "\017\033[!p\033[0m\n";
	struct run *run = arg;
	if (pthread_equal(pthread_self(), run->main))
		return prompt_ask(&run->prompt, card, reason);
	if (run->tty)
		return CORDON_UNANSWERED;
	hold_output(run, true);
	if (run->out.held || run->err.held)
		(void)!write(run->prompt.tty, plain, sizeof(plain) - 1);
	enum cordon_answer answer = prompt_ask(&run->prompt, card, reason);
	hold_output(run, false);
	return answer;
}

static void pump_output(struct run *run)
{
	uint64_t answers;
	(void)!read(run->answered_fd, &answers, sizeof(answers));
	pthread_mutex_lock(&run->lock);
	sink_pump(&run->out);
	sink_pump(&run->err);
	pthread_mutex_unlock(&run->lock);
}

static void open_sinks(struct run *run, const struct options *options)
{
	const char *text = options_value(options, "max-output");
	uint64_t kept = 0;
	if (text && !text_parse_size(text, &kept))
		kept = UINT64_MAX; /* "unlimited": the library took the value, so it is one of the two */
	sink_open(&run->out, STDOUT_FILENO, text ? kept : STDOUT_KEPT);
	sink_open(&run->err, STDERR_FILENO, text ? kept : STDERR_KEPT);
	cordon_request_output(run->request, on_output, run);
}

static int open_signals(struct run *run, struct cordon_error *err)
{
	sigset_t mask, ending;
	sigemptyset(&mask);
	sigemptyset(&ending);
	for (size_t i = 0; i < ARRAY_SIZE(forwarded); i++) {
		sigaddset(&mask, forwarded[i]);
		if (i < ENDING)
			sigaddset(&ending, forwarded[i]);
	}
	sigaddset(&mask, SIGTSTP);
	if (run->tty)
		sigaddset(&mask, SIGWINCH);
	signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_BLOCK, &mask, &run->mask_before);
	run->signal_fd = signalfd(-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC);
	run->interrupt_fd = signalfd(-1, &ending, SFD_NONBLOCK | SFD_CLOEXEC);
	run->answered_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (run->signal_fd < 0 || run->interrupt_fd < 0 || run->answered_fd < 0)
		return fail(err, CORDON_E_INTERNAL, errno, NULL, "signals cannot be received");
	return 0;
}

static void resize(struct run *run)
{
	unsigned short rows, columns;
	terminal_size(&rows, &columns);
	cordon_execution_resize(run->execution, rows, columns);
}

/* The command is in a session of its own, where SIGTSTP would be ignored: no shell there waits for it to stop. */
static void stop_both(struct run *run)
{
	cordon_execution_signal(run->execution, SIGSTOP);
	terminal_restore();
	kill(getpid(), SIGSTOP);
	if (run->terminal && terminal_is_ours()) {
		terminal_raw();
		resize(run);
	}
	cordon_execution_signal(run->execution, SIGCONT);
}

static void handle_signals(struct run *run)
{
	struct signalfd_siginfo info;
	while (read(run->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGWINCH)
			resize(run);
		else if (info.ssi_signo == SIGTSTP)
			stop_both(run);
		else
			cordon_execution_signal(run->execution, (int)info.ssi_signo);
	}
}

static void handle_broken_pipe(struct run *run)
{
	if (run->out.error != EPIPE && run->err.error != EPIPE)
		return;
	if (!run->broken_at_ms) {
		run->broken_at_ms = now_ms();
		cordon_execution_signal(run->execution, SIGPIPE);
	} else if (now_ms() - run->broken_at_ms >= SIGPIPE_GRACE_MS) {
		cordon_execution_signal(run->execution, SIGKILL);
	}
}

static int loop(struct run *run, struct cordon_error *err)
{
	for (bool finished = false; !finished;) {
		pthread_mutex_lock(&run->lock);
		bool stalled = sink_waiting(&run->out) + sink_waiting(&run->err) > WAITING_MAX;
		struct pollfd ready[] = {
			{ .fd = stalled ? -1 : cordon_execution_fd(run->execution), .events = POLLIN },
			{ .fd = run->signal_fd, .events = POLLIN },
			{ .fd = sink_fd(&run->out), .events = POLLOUT },
			{ .fd = sink_fd(&run->err), .events = POLLOUT },
			{ .fd = run->answered_fd, .events = POLLIN },
		};
		pthread_mutex_unlock(&run->lock);
		int count = poll(ready, ARRAY_SIZE(ready), stalled || run->broken_at_ms ? STALLED_MS : -1);
		if (count < 0 && errno != EINTR)
			return fail(err, CORDON_E_INTERNAL, errno, NULL, "waiting for the command failed");
		if (ready[1].revents)
			handle_signals(run);
		pump_output(run);
		if ((!stalled || count == 0) && cordon_execution_step(run->execution, &finished, err) < 0)
			return -1;
		handle_broken_pipe(run);
	}
	return 0;
}

static int set_size(struct run *run, struct cordon_error *err)
{
	char size[32];
	unsigned short rows, columns;
	terminal_size(&rows, &columns);
	snprintf(size, sizeof(size), "%hux%hu", rows, columns);
	return cordon_request_set(run->request, "tty", size, err);
}

/* Until the command runs, a signal that ends things ends the waiting for an answer. */
static void open_prompt(struct run *run, const struct options *options)
{
	cordon_approver_interrupt(run->cordon, run->interrupt_fd);
	if (!options_flag(options, "no-ask") && prompt_open(&run->prompt, run->interrupt_fd))
		cordon_approver(run->cordon, ask, run);
}

static int start(struct run *run, const struct options *options, struct cordon_error *err)
{
	bool is_terminal = isatty(STDIN_FILENO), ours = is_terminal && terminal_is_ours();
	if (request_build(options, &run->request, err) < 0 || cli_open(options, &run->cordon, err) < 0)
		return -1;
	/* Reading the terminal from the background would stop us, and the command with us. */
	if (ours || !is_terminal)
		cordon_request_stdin(run->request, STDIN_FILENO);
	if (!run->json)
		open_sinks(run, options);
	if (run->tty && set_size(run, err) < 0)
		return -1;
	if (open_signals(run, err) < 0)
		return -1;
	open_prompt(run, options);
	if (cordon_start(run->cordon, run->request, &run->execution, err) < 0)
		return -1;
	run->terminal = run->tty && ours;
	if (run->terminal)
		terminal_raw();
	return 0;
}

static int result_status(const struct cordon_result *result)
{
	if (result->timed_out)
		return STATUS_TIMED_OUT;
	return result->signal ? STATUS_SIGNAL + result->signal : result->exit_code;
}

static int conclude_json(const struct cordon_result *result)
{
	auto_free char *text = cordon_result_json(result);
	struct cordon_error err;
	if (!text) {
		fail_oom(&err);
		report_error(&err, true);
		return STATUS_REFUSED;
	}
	printf("%s\n", text);
	return result_status(result);
}

static int conclude(struct run *run, const struct cordon_result *result, bool quiet)
{
	struct cordon_error err;
	if (run->json)
		return conclude_json(result);
	sink_finish(&run->out, result->stdout_data, result->stdout_length);
	sink_finish(&run->err, result->stderr_data, result->stderr_length);
	if (!quiet)
		report_remarks(result, !run->out.is_terminal, !run->err.is_terminal);
	if (run->out.error == EPIPE || run->err.error == EPIPE)
		return STATUS_SIGNAL + SIGPIPE;
	int error = run->out.error ? run->out.error : run->err.error;
	if (error) {
		fail(&err, CORDON_E_INTERNAL, error, NULL, "the output could not be written");
		report_error(&err, false);
		return STATUS_REFUSED;
	}
	return result_status(result);
}

static int run_command(const struct options *options)
{
	struct run run = {
		.signal_fd = -1,
		.interrupt_fd = -1,
		.answered_fd = -1,
		.main = pthread_self(),
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.prompt.tty = -1,
		.json = options_flag(options, "json"),
		.tty = options_flag(options, "tty"),
		.out.own_fd = -1,
		.err.own_fd = -1,
	};
	struct cordon_result *result = NULL;
	struct cordon_error err;
	int failed = start(&run, options, &err) < 0 || loop(&run, &err) < 0 ||
	             cordon_execution_result(run.execution, &result, &err) < 0;
	terminal_restore();
	/* From here on writing may block, and whoever interrupts it means cordon. */
	if (run.signal_fd >= 0)
		sigprocmask(SIG_SETMASK, &run.mask_before, NULL);
	int status;
	if (failed) {
		sink_finish(&run.out, NULL, 0);
		sink_finish(&run.err, NULL, 0);
		report_error(&err, run.json);
		status = report_error_status(&err);
	} else {
		status = conclude(&run, result, options_flag(options, "quiet"));
	}
	cordon_result_unref(result);
	cordon_execution_unref(run.execution);
	cordon_request_unref(run.request);
	cordon_unref(run.cordon);
	sink_close(&run.out);
	sink_close(&run.err);
	prompt_close(&run.prompt);
	cleanup_close(&run.signal_fd);
	cleanup_close(&run.interrupt_fd);
	cleanup_close(&run.answered_fd);
	return status;
}

int cli_run(char **words)
{
	struct options options;
	int status;
	if (!cli_options(COMMAND_RUN, words, SIZE_MAX, &options, &status))
		return status;
	status = run_command(&options);
	options_free(&options);
	return status;
}

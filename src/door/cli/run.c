/* `cordon run`: one command. If there is a daemon and the command belongs to a session, the daemon runs it; otherwise
 * the library does, in this process. To the caller both look the same. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "door/cli/cli.h"
#include "door/cli/report.h"
#include "door/cli/request.h"
#include "door/cli/run-remote.h"
#include "door/cli/run.h"
#include "door/cli/terminal.h"

/* ---- carried out here -------------------------------------------------------------------------------------------- */

static int local_fd(const struct run *run)
{
	return cordon_execution_fd(run->execution);
}

static int local_step(struct run *run, bool *ret_finished, struct cordon_error *err)
{
	return cordon_execution_step(run->execution, ret_finished, err);
}

static void local_signal(struct run *run, int signal)
{
	cordon_execution_signal(run->execution, signal);
}

static void local_hold(struct run *run, enum cordon_stream stream, bool hold)
{
	cordon_execution_hold_output(run->execution, stream, hold);
}

static void local_close(struct run *run, enum cordon_stream stream)
{
	cordon_execution_close_output(run->execution, stream);
}

static const struct carrier local = { local_fd, local_step, local_signal, local_hold, local_close };

/* Before the command starts, in the main thread; while it runs, in another. Where the command has the terminal to
 * itself, it is for others to answer: in another terminal, with cordon approvals. */
static enum cordon_answer ask(void *arg, const struct cordon_card *card, char reason[256])
{
	struct run *run = arg;
	bool running = !pthread_equal(pthread_self(), run->main);
	return running && run->tty ? CORDON_UNANSWERED : run_ask(run, card, running, reason);
}

static void open_sinks(struct run *run)
{
	sink_open(&run->out, STDOUT_FILENO, 0);
	sink_open(&run->err, STDERR_FILENO, 0);
	cordon_request_output(run->request, run_output, run);
}

/* What is kept is for the walk to decide: by options, configuration and session. */
static void keep_as_decided(struct run *run)
{
	portion_keep(&run->out.portion, cordon_execution_kept(run->execution, CORDON_STDOUT));
	portion_keep(&run->err.portion, cordon_execution_kept(run->execution, CORDON_STDERR));
}

/* Where pipes have no number none is known to be another. */
bool run_has_one_stream(void)
{
	struct stat out, err;
	return fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &err) == 0 && out.st_dev == err.st_dev &&
	       out.st_ino && out.st_ino == err.st_ino && out.st_rdev == err.st_rdev;
}

static mode_t own_umask(void)
{
	mode_t mask = umask(0);
	umask(mask);
	return mask;
}

static int set_streams(struct run *run, struct cordon_error *err)
{
	char mask[8];
	snprintf(mask, sizeof(mask), "%03o", (unsigned)own_umask());
	if (cordon_request_set(run->request, "umask", mask, err) < 0)
		return -1;
	if (!run->json && cordon_request_set(run->request, "hand-on", "true", err) < 0)
		return -1;
	if (run->plain && cordon_request_set(run->request, "plain", "true", err) < 0)
		return -1;
	run->one_stream = !run->json && !run->tty && run_has_one_stream();
	return run->one_stream ? cordon_request_set(run->request, "one-stream", "true", err) : 0;
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

static int start_here(struct run *run, const struct options *options, struct cordon_error *err)
{
	run->carrier = &local;
	if (request_build(options, NULL, &run->request, err) < 0 || cli_open(options, &run->cordon, err) < 0)
		return -1;
	bool is_terminal = isatty(STDIN_FILENO), ours = is_terminal && terminal_is_ours();
	/* Reading the terminal from the background would stop this process, and the command with it. */
	if ((ours || !is_terminal) && !options_flag(options, "no-stdin"))
		cordon_request_stdin(run->request, STDIN_FILENO);
	if (!run->json)
		open_sinks(run);
	if (set_streams(run, err) < 0 || (run->tty && set_size(run, err) < 0))
		return -1;
	if (run->signal_fd < 0 && run_open_signals(run, err) < 0)
		return -1;
	open_prompt(run, options);
	if (cordon_execution_start(run->cordon, run->request, &run->execution, err) < 0)
		return -1;
	keep_as_decided(run);
	run->terminal = run->tty && ours;
	if (run->terminal)
		terminal_raw();
	return 0;
}

/* Writing the output may have failed, independently of the command. Lost output shows in the status, even if the
 * command succeeded. */
static int output_status(const struct run *run, int status)
{
	bool is_told = (run->out.error != EPIPE || run->out_closed) && (run->err.error != EPIPE || run->err_closed);
	if (run->out.error == EPIPE || run->err.error == EPIPE)
		return is_told && status ? status : STATUS_SIGNAL + SIGPIPE;
	int error = run->out.error ? run->out.error : run->err.error;
	return error ? report_unwritten(error, false) : status;
}

static int conclude_json(struct run *run, const struct cordon_result *result)
{
	auto_free char *text = cordon_result_json(result);
	struct cordon_error err;
	if (!text) {
		fail_oom(&err);
		report_error(&err, true);
		return STATUS_REFUSED;
	}
	sink_open(&run->out, STDOUT_FILENO, 0);
	sink_write(&run->out, text, strlen(text), &run->mask_before);
	sink_write(&run->out, "\n", 1, &run->mask_before);
	return output_status(run, report_result_status(result));
}

/* They are not the command's output: where they cannot be written, nothing is made of it. */
static void tell_remarks(const struct run *run, const struct cordon_result *result, bool quiet)
{
	auto_free char *text = NULL;
	size_t length = 0;
	struct sink sink = run->err;
	FILE *out = open_memstream(&text, &length);
	if (!out)
		return;
	const struct report_place place = {
		.stdout_as_kept = !portion_is_whole(&run->out.portion),
		.stderr_as_kept = !portion_is_whole(&run->err.portion),
		.is_terminal = isatty(STDERR_FILENO),
		.is_shared = run_has_one_stream(),
		.is_for_agent = run->is_for_agent,
	};
	if (!quiet)
		report_remarks(out, result, &place);
	report_note(out, result);
	if (fclose(out) == 0)
		sink_write(&sink, text, length, &run->mask_before);
}

/* The command has ended by itself: a signal that came too late for it changes nothing. One that comes while a reader
 * is waited for means cordon. */
static int conclude(struct run *run, const struct cordon_result *result, bool quiet)
{
	terminal_restore();
	while (run_take_signal(run))
		;
	if (run->json)
		return conclude_json(run, result);
	sink_finish(&run->out, result->stdout_data, result->stdout_length, &run->mask_before);
	sink_finish(&run->err, result->stderr_data, result->stderr_length, &run->mask_before);
	tell_remarks(run, result, quiet);
	return output_status(run, report_result_status(result));
}

/* From here on a signal is meant for cordon. */
static void end_watching(struct run *run)
{
	terminal_restore();
	if (run->signal_fd >= 0)
		sigprocmask(SIG_SETMASK, &run->mask_before, NULL);
}

static int conclude_failure(struct run *run, const struct cordon_error *err)
{
	end_watching(run);
	sink_finish(&run->out, NULL, 0, NULL);
	sink_finish(&run->err, NULL, 0, NULL);
	report_error(err, run->json);
	return report_error_status(err);
}

static int run_here(struct run *run, const struct options *options)
{
	struct cordon_result *result = NULL;
	struct cordon_error err;
	bool failed = start_here(run, options, &err) < 0 || run_loop(run, &err) < 0 ||
	              cordon_execution_result(run->execution, &result, &err) < 0;
	/* What failed after the command had ended is in its result. */
	int status = failed && !result ? conclude_failure(run, &err) :
	             conclude(run, result, options_flag(options, "quiet"));
	cordon_result_unref(result);
	cordon_execution_unref(run->execution);
	cordon_request_unref(run->request);
	cordon_unref(run->cordon);
	return status;
}

/* False: there is no daemon, or none for this command; nothing has happened. */
static bool run_by_daemon(struct run *run, const char *command, const struct options *options, char **words,
                          int *ret_status)
{
	struct cordon_error err;
	bool declined = false;
	if (!remote_open(run, command, options, words))
		return false;
	int status = 0;
	bool failed = run_loop(run, &err) < 0;
	if (!failed && (declined = remote_declined(run)))
		remote_raise_kept(run);
	else {
		end_watching(run);
		failed = failed || remote_finish(run, &status, &err) < 0;
		*ret_status = failed ? conclude_failure(run, &err) : output_status(run, status);
	}
	remote_close(run);
	return !declined;
}

/* As outside, a command that a person starts at a terminal has one. In the background it could not be read. */
static bool wants_terminal(const struct options *options, bool plain)
{
	if (options_flag(options, "tty"))
		return true;
	return plain && run_gives_terminals() && !options_flag(options, "no-tty") &&
	       !options_flag(options, "no-stdin") && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) &&
	       isatty(STDERR_FILENO) && terminal_is_ours();
}

int run_carry_out(const char *command, const struct options *options, char **words,
                  int (*here)(struct run *run, const struct options *options))
{
	bool json = options_flag(options, "json"),
	     plain = !json && !options_flag(options, "session") && !strcmp(command, "run");
	struct run run = {
		.signal_fd = -1,
		.interrupt_fd = -1,
		.answered_fd = -1,
		.main = pthread_self(),
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.prompt.tty = -1,
		.json = json,
		.plain = plain,
		.is_for_agent = report_is_for_agent(options_value(options, "session")),
		.tty = wants_terminal(options, plain),
		.out.own_fd = -1,
		.err.own_fd = -1,
	};
	int status;
	if (!run_by_daemon(&run, command, options, words, &status))
		status = here(&run, options);
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
	status = run_carry_out("run", &options, words, run_here);
	options_free(&options);
	return status;
}

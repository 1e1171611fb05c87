/* `cordon job start` where there is no daemon: two processes.
 *
 *     client ── fork ──▶ runner        takes the walk, asks on the terminal if need be
 *        │ ◀── the job, or the error ─┤
 *        ▼ prints it, and ends        │ setsid(): the terminal is not its own any more
 *                                     ▼ lives until the job has ended; the library follows that in a thread
 *
 * The runner has nothing of the caller's but its environment: whoever reads what the client prints must not have to
 * wait for the job. Told to end, it ends the job, and then itself. */
#include "door/cli/job-start.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "door/cli/cli.h"
#include "door/cli/job-signals.h"
#include "door/cli/job-text.h"
#include "door/cli/json-read.h"
#include "door/cli/prompt.h"
#include "door/cli/report.h"
#include "door/cli/request.h"

#define REPORT_FD 3
#define LOOK_MS 500            /* how soon a signal is noticed */
#define REPORT_MAX ((size_t)1 << 20)

struct runner {
	struct cordon *cordon;
	struct cordon_request *request;
	struct prompt prompt;
	int signal_fd;
};

/* What the client reads: this, and the job as text where there is no error. */
struct verdict {
	int32_t failed;
	struct cordon_error err;
};

/* ---- the runner -------------------------------------------------------------------------------------------------- */

static int leave_descriptors(int report_fd, struct cordon_error *err)
{
	auto_close int null = open("/dev/null", O_RDWR);
	bool done = null >= 0 && (report_fd == REPORT_FD || dup2(report_fd, REPORT_FD) == REPORT_FD);
	for (int fd = STDIN_FILENO; done && fd <= STDERR_FILENO; fd++)
		done = dup2(null, fd) == fd;
	if (!done)
		return fail(err, CORDON_E_INTERNAL, errno, NULL, "the caller's descriptors cannot be left");
	/* An old kernel does not know it, and few callers have more. */
	for (int fd = REPORT_FD + 1, known = close_range(REPORT_FD + 1, ~0U, 0); known < 0 && fd < 1024; fd++)
		close(fd);
	if (null > REPORT_FD)
		take_fd(&null);
	return fcntl(REPORT_FD, F_SETFD, FD_CLOEXEC) < 0 ? fail(err, CORDON_E_INTERNAL, errno, NULL, "fcntl") : 0;
}

static int start(struct runner *runner, const struct options *options, char **ret_json, struct cordon_error *err)
{
	const struct options after = options_after_action(options);
	if (job_signals_open(&runner->signal_fd, err) < 0 || request_build(&after, NULL, &runner->request, err) < 0 ||
	    cli_open(options, &runner->cordon, err) < 0)
		return -1;
	bool asks = !options_flag(options, "no-ask") && prompt_open(&runner->prompt, runner->signal_fd);
	cordon_request_approver(runner->request, asks ? prompt_ask : NULL, &runner->prompt, runner->signal_fd, 0);
	return cordon_job_start(runner->cordon, runner->request, ret_json, err);
}

static void follow(struct runner *runner, const char *json)
{
	struct cordon_error err;
	auto_json json_t *started = json_read(json);
	const char *id = json_read_text(started, "id");
	for (bool ended = false; !ended;) {
		auto_free char *now = NULL;
		if (job_signals_take(runner->signal_fd) && cordon_job_kill(runner->cordon, id, 0, &err) < 0)
			return;
		if (cordon_job_wait(runner->cordon, id, LOOK_MS, &now, &err) < 0)
			return;
		auto_json json_t *job = json_read(now);
		ended = !job_is_running(job);
	}
}

static void report(int failed, const struct cordon_error *err, const char *json)
{
	struct verdict verdict = { .failed = failed };
	if (failed)
		verdict.err = *err;
	/* A client that is gone does not end the job. */
	if (write(REPORT_FD, &verdict, sizeof(verdict)) == sizeof(verdict) && json)
		(void)!write(REPORT_FD, json, strlen(json));
	close(REPORT_FD);
}

static void work(const struct options *options, int report_fd)
{
	struct runner runner = { .prompt.tty = -1, .signal_fd = -1 };
	struct cordon_error err;
	auto_free char *json = NULL;
	if (leave_descriptors(report_fd, &err) < 0)
		return;
	int failed = start(&runner, options, &json, &err) < 0;
	prompt_close(&runner.prompt);
	runner.prompt.tty = -1;
	if (!failed) {
		setsid();
		(void)!chdir("/");
	}
	report(failed, &err, json);
	if (!failed)
		follow(&runner, json);
	cordon_request_unref(runner.request);
	cordon_unref(runner.cordon);
	cleanup_close(&runner.signal_fd);
}

/* ---- the client -------------------------------------------------------------------------------------------------- */

/* All that comes, ended by NUL, to be free()d; NULL when memory is short. */
static char *read_all(int fd, size_t *ret_length)
{
	char *text = malloc(REPORT_MAX + 1);
	size_t length = 0;
	for (ssize_t got = 1; text && length < REPORT_MAX && got;) {
		got = read(fd, text + length, REPORT_MAX - length);
		if (got < 0 && errno != EINTR)
			break;
		length += got > 0 ? (size_t)got : 0;
		got = got < 0 ? 1 : got;
	}
	if (text)
		text[length] = '\0';
	*ret_length = length;
	return text;
}

static int tell(int fd, bool json)
{
	struct verdict verdict = { .failed = true };
	size_t length = 0;
	auto_free char *text = read_all(fd, &length);
	if (text && length >= sizeof(verdict))
		memcpy(&verdict, text, sizeof(verdict));
	else
		fail(&verdict.err, CORDON_E_INTERNAL, 0, NULL, "the process that was to run the job has ended");
	if (verdict.failed) {
		report_error(&verdict.err, json);
		return report_error_status(&verdict.err);
	}
	job_print_started(stdout, text + sizeof(verdict), json);
	return 0;
}

int job_start_here(struct run *run, const struct options *options)
{
	struct cordon_error err;
	int ends[2];
	pid_t runner = -1;
	/* They were opened for a daemon. */
	if (run->signal_fd >= 0)
		sigprocmask(SIG_SETMASK, &run->mask_before, NULL);
	fflush(NULL);
	if (pipe2(ends, O_CLOEXEC) == 0)
		runner = fork();
	if (runner < 0) {
		fail(&err, CORDON_E_INTERNAL, errno, NULL, "no process can be started for the job");
		report_error(&err, options_flag(options, "json"));
		return STATUS_REFUSED;
	}
	if (runner == 0) {
		work(options, ends[1]);
		_exit(0);
	}
	close(ends[1]);
	int status = tell(ends[0], options_flag(options, "json"));
	close(ends[0]);
	return status;
}

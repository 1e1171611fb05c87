/* A command in its job: see windows.h. Its streams are pipes that are looked at every few milliseconds; there is no
 * thread but the one of the system's that calls when the time is over. */
#include "driver/windows/windows.h"

#include <poll.h>
#include <stdatomic.h>
#include <string.h>

#include "base/cleanup.h"

#define LOOK_MS 5
#define DRAIN_MS 2000
#define PART 65536
#define FLAGS (CREATE_SUSPENDED | CREATE_UNICODE_ENVIRONMENT | CREATE_NO_WINDOW | EXTENDED_STARTUPINFO_PRESENT)

struct windows_running {
	struct running running;
	const struct command *command;
	HANDLE process, job, output[3], input;  /* ours of the pipes; output by enum cordon_stream */
	int stdin_fd;
	struct capture captures[3];
	struct outcome outcome;
	uint64_t started_ms, ended_ms;          /* the latter 0: it runs */
	HANDLE deadline;                        /* a timer: writing what the command says may wait for a reader */
	atomic_bool is_late;
	uint64_t release_ms;                    /* when output that is held is let go; or 0 */
	char *waiting;                          /* input that the pipe had no room for */
	size_t waiting_length;
};

static uint64_t now_ms(void)
{
	return GetTickCount64();
}

static struct windows_running *of(const struct running *running)
{
	return (struct windows_running *)(uintptr_t)running;
}

static void close_handle(HANDLE *handle)
{
	if (*handle)
		CloseHandle(*handle);
	*handle = NULL;
}

/* ---- starting ---------------------------------------------------------------------------------------------------- */

bool windows_pipe(HANDLE *ret_ours, HANDLE *ret_theirs, bool to_child)
{
	SECURITY_ATTRIBUTES inherit = { .nLength = sizeof(inherit), .bInheritHandle = TRUE };
	HANDLE reading, writing;
	if (!CreatePipe(&reading, &writing, &inherit, PART))
		return false;
	/* A command that does not read must not stop us. */
	DWORD mode = PIPE_READMODE_BYTE | PIPE_NOWAIT;
	*ret_ours = to_child ? writing : reading;
	*ret_theirs = to_child ? reading : writing;
	return (!to_child || SetNamedPipeHandleState(writing, &mode, NULL, NULL)) &&
	       SetHandleInformation(*ret_ours, HANDLE_FLAG_INHERIT, 0);
}

/* Created so that it does not run, put into the job, looked at, and only then let go. */
static int create(struct windows_running *running, const struct windows_launch *launch, HANDLE theirs[3],
                  struct cordon_error *err)
{
	const char *name = running->command->profile->program;
	char room[256];
	SIZE_T size = sizeof(room);
	STARTUPINFOEXW startup = { .StartupInfo = { .cb = sizeof(startup),
		                                    .dwFlags = STARTF_USESTDHANDLES,
		                                    .hStdInput = theirs[0],
		                                    .hStdOutput = theirs[1],
		                                    .hStdError = theirs[2] },
		                   .lpAttributeList = (LPPROC_THREAD_ATTRIBUTE_LIST)(void *)room };
	PROCESS_INFORMATION made = { 0 };
	BOOL in_job = FALSE, started;
	if (!InitializeProcThreadAttributeList(startup.lpAttributeList, 1, 0, &size) ||
	    !UpdateProcThreadAttribute(startup.lpAttributeList, 0, PROC_THREAD_ATTRIBUTE_HANDLE_LIST, theirs,
	                               (theirs[2] == theirs[1] ? 2 : 3) * sizeof(HANDLE), NULL, NULL))
		return windows_fail(err, CORDON_WALL_DESCRIPTORS, GetLastError(),
		                    "the list of handles that are inherited cannot be made");
	if (launch->token)
		started = CreateProcessAsUserW(launch->token, launch->program, launch->line, NULL, NULL, TRUE, FLAGS,
		                               launch->environment, launch->cwd, &startup.StartupInfo, &made);
	else
		started = CreateProcessW(launch->program, launch->line, NULL, NULL, TRUE, FLAGS, launch->environment,
		                         launch->cwd, &startup.StartupInfo, &made);
	DWORD error = GetLastError();
	DeleteProcThreadAttributeList(startup.lpAttributeList);
	if (!started && (error == ERROR_BAD_EXE_FORMAT || error == ERROR_ACCESS_DENIED))
		return fail(err, CORDON_E_PROGRAM_NOT_ALLOWED, 0, name, "Windows does not execute it (error %lu)",
		            (unsigned long)error);
	if (!started)
		return fail(err, CORDON_E_INTERNAL, 0, name, "the program cannot be started (Windows error %lu)",
		            (unsigned long)error);
	HANDLE token = NULL;
	bool low = OpenProcessToken(made.hProcess, TOKEN_QUERY, &token) && windows_is_low(token);
	close_handle(&token);
	bool assigned = AssignProcessToJobObject(running->job, made.hProcess) &&
	                IsProcessInJob(made.hProcess, running->job, &in_job) && in_job;
	if (!assigned || (launch->low && !low)) {
		error = GetLastError();
		TerminateProcess(made.hProcess, 1);
		close_handle(&made.hThread);
		close_handle(&made.hProcess);
		return windows_fail(err, assigned ? CORDON_WALL_FILESYSTEM : CORDON_WALL_LIFETIME, error,
		                    assigned ? "the process is not at Low integrity" :
		                               "the process is not in its job object");
	}
	running->process = made.hProcess;
	ResumeThread(made.hThread);
	close_handle(&made.hThread);
	return 0;
}

/* ---- following --------------------------------------------------------------------------------------------------- */

static int no_fd(const struct running *running)
{
	(void)running;
	return -1;
}

static void deliver(struct running *running, enum cordon_stream stream, const void *bytes, size_t length)
{
	struct windows_running *windows = of(running);
	capture_add(&windows->captures[stream], bytes, length);
	if (windows->command->output)
		windows->command->output(windows->command->output_arg, stream, bytes, length);
}

/* True: there was something. */
static bool read_stream(struct windows_running *windows, enum cordon_stream stream)
{
	char part[PART];
	DWORD there = 0, got = 0;
	HANDLE *handle = &windows->output[stream];
	if (!*handle)
		return false;
	if (!PeekNamedPipe(*handle, NULL, 0, NULL, &there, NULL)) {
		close_handle(handle);
		return false;
	}
	if (!there || !ReadFile(*handle, part, there < PART ? there : PART, &got, NULL) || !got)
		return false;
	if (windows->command->filter.add)
		windows->command->filter.add(windows->command->filter.arg, stream, part, got);
	else
		deliver(&windows->running, stream, part, got);
	return true;
}

/* What is handed on as it comes is not held for longer than it may be. */
static void release_held(struct windows_running *windows)
{
	const struct output_filter *filter = &windows->command->filter;
	uint64_t held_ms = filter->add && windows->command->output ? filter->held_ms(filter->arg) : 0;
	if (!held_ms) {
		windows->release_ms = 0;
	} else if (!windows->release_ms) {
		windows->release_ms = now_ms() + held_ms;
	} else if (now_ms() >= windows->release_ms) {
		windows->release_ms = 0;
		filter->release(filter->arg);
	}
}

static void look_at_watched(const struct command *command)
{
	for (unsigned i = 0; i < command->watched_count; i++)
		if (poll(&(struct pollfd){ .fd = command->watched[i].fd, .events = POLLIN }, 1, 0) > 0)
			command->watched[i].handle(command->watched[i].arg);
}

static bool write_input(struct windows_running *windows)
{
	char part[4096];
	DWORD done = 0;
	if (!windows->input)
		return false;
	if (!windows->waiting_length && windows->stdin_fd >= 0) {
		if (!poll(&(struct pollfd){ .fd = windows->stdin_fd, .events = POLLIN }, 1, 0))
			return false;
		ssize_t got = read(windows->stdin_fd, part, sizeof(part));
		if (got > 0)
			memcpy(windows->waiting, part, windows->waiting_length = (size_t)got);
	}
	/* At its end, or where it cannot be read, the command is told so. */
	if (!windows->waiting_length ||
	    !WriteFile(windows->input, windows->waiting, (DWORD)windows->waiting_length, &done, NULL)) {
		close_handle(&windows->input);
		return false;
	}
	memmove(windows->waiting, windows->waiting + done, windows->waiting_length -= done);
	windows->outcome.stdin_bytes += done;
	return done;
}

static void stop(struct windows_running *windows)
{
	TerminateJobObject(windows->job, 137);
}

static void note_end(struct windows_running *windows)
{
	DWORD code = 0;
	if (windows->ended_ms || WaitForSingleObject(windows->process, 0) != WAIT_OBJECT_0)
		return;
	GetExitCodeProcess(windows->process, &code);
	windows->outcome.exit_code = (int)code;
	windows->outcome.timed_out = atomic_load(&windows->is_late);
	windows->ended_ms = now_ms();
	/* Nothing of a command outlives it. */
	stop(windows);
}

/* In a thread of the system's. */
static void CALLBACK end_late(void *arg, BOOLEAN fired)
{
	struct windows_running *windows = arg;
	(void)fired;
	atomic_store(&windows->is_late, true);
	stop(windows);
}

static int set_deadline(struct windows_running *windows, struct cordon_error *err)
{
	uint64_t limit = windows->command->profile->limits.wall_ms;
	if (!limit || CreateTimerQueueTimer(&windows->deadline, NULL, end_late, windows,
	                                    limit < UINT32_MAX ? (DWORD)limit : UINT32_MAX - 1, 0, WT_EXECUTEONLYONCE))
		return 0;
	windows->deadline = NULL;
	return windows_fail(err, CORDON_WALL_LIMIT_TIME, GetLastError(), "the timer of the time limit cannot be made");
}

static bool is_over(struct windows_running *windows)
{
	if (!windows->ended_ms)
		return false;
	bool drained = !windows->output[CORDON_STDOUT] && !windows->output[CORDON_STDERR];
	return (drained && !windows_job_count(windows->job)) || now_ms() - windows->ended_ms > DRAIN_MS;
}

static int step(struct running *running, int wait_ms, bool *ret_finished, struct cordon_error *err)
{
	struct windows_running *windows = of(running);
	(void)err;
	for (uint64_t begun = now_ms(); !running->finished; Sleep(LOOK_MS)) {
		bool some = write_input(windows);
		some |= read_stream(windows, CORDON_STDOUT);
		some |= read_stream(windows, CORDON_STDERR);
		release_held(windows);
		look_at_watched(windows->command);
		note_end(windows);
		if (windows->command->wish && windows->command->wish(windows->command->wish_arg) == COMMAND_END)
			stop(windows);
		running->finished = !some && is_over(windows);
		if (some || running->finished || (wait_ms >= 0 && now_ms() - begun >= (uint64_t)wait_ms))
			break;
	}
	*ret_finished = running->finished;
	return 0;
}

static void send_signal(struct running *running, int signal)
{
	/* There are none; what asks to end is ended. */
	(void)signal;
	stop(of(running));
}

static bool is_still(const struct running *running)
{
	(void)running;
	return false;
}

static void hold_input(struct running *running, bool hold)
{
	(void)running;
	(void)hold;
}

static void hold_output(struct running *running, enum cordon_stream stream, bool hold)
{
	(void)running;
	(void)stream;
	(void)hold;
}

static void close_output(struct running *running, enum cordon_stream stream)
{
	close_handle(&of(running)->output[stream]);
}

static void resize(struct running *running, unsigned short rows, unsigned short columns)
{
	(void)running;
	(void)rows;
	(void)columns;
}

static bool press_stop(struct running *running)
{
	(void)running;
	return true;
}

static void count_used(struct windows_running *windows)
{
	JOBOBJECT_BASIC_AND_IO_ACCOUNTING_INFORMATION used = { 0 };
	JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = { 0 };
	if (QueryInformationJobObject(windows->job, JobObjectBasicAndIoAccountingInformation, &used, sizeof(used),
	                              NULL))
		windows->outcome.cpu_ms =
			(uint64_t)(used.BasicInfo.TotalUserTime.QuadPart + used.BasicInfo.TotalKernelTime.QuadPart) /
			10000;
	if (QueryInformationJobObject(windows->job, JobObjectExtendedLimitInformation, &limits, sizeof(limits), NULL))
		windows->outcome.memory_peak_bytes = limits.PeakJobMemoryUsed;
	windows->outcome.max_rss_kb = windows->outcome.memory_peak_bytes / 1024;
}

static int end(struct running *running, struct outcome *ret_outcome, struct cordon_error *err)
{
	struct windows_running *windows = of(running);
	(void)err;
	if (windows->command->filter.finish)
		windows->command->filter.finish(windows->command->filter.arg);
	for (int stream = CORDON_STDOUT; stream <= CORDON_STDERR; stream++)
		capture_finish(&windows->captures[stream], &windows->outcome.streams[stream]);
	windows->outcome.duration_ms = windows->ended_ms - windows->started_ms;
	if (windows->outcome.timed_out)
		windows->outcome.exit_code = -1, windows->outcome.signal = 9;
	count_used(windows);
	*ret_outcome = windows->outcome;
	return 0;
}

static void free_running(struct running *running)
{
	struct windows_running *windows = of(running);
	/* Waits for one that is just being called. */
	if (windows->deadline)
		(void)!DeleteTimerQueueTimer(NULL, windows->deadline, INVALID_HANDLE_VALUE);
	if (windows->process)
		stop(windows);
	close_handle(&windows->process);
	close_handle(&windows->input);
	for (int stream = CORDON_STDOUT; stream <= CORDON_STDERR; stream++) {
		close_handle(&windows->output[stream]);
		capture_free(&windows->captures[stream]);
	}
	free(windows->waiting);
	free(windows);
}

static const struct running_ops ops = {
	.fd = no_fd,
	.step = step,
	.signal = send_signal,
	.is_still = is_still,
	.hold_input = hold_input,
	.hold_output = hold_output,
	.close_output = close_output,
	.resize = resize,
	.press_stop = press_stop,
	.deliver = deliver,
	.end = end,
	.free = free_running,
};

int windows_follow(const struct windows_launch *launch, const struct command *command, struct running **ret_running,
                   struct cordon_error *err)
{
	struct windows_running *windows = calloc(1, sizeof(*windows));
	HANDLE theirs[3] = { NULL };
	int result = -1;
	if (!windows || !(windows->waiting = malloc(4096))) {
		free(windows);
		return fail_oom(err);
	}
	windows->running.ops = &ops;
	windows->command = command;
	windows->job = launch->job;
	windows->stdin_fd = command->stdin_fd;
	capture_init(&windows->captures[CORDON_STDOUT], command->stdout_cap);
	capture_init(&windows->captures[CORDON_STDERR], command->stderr_cap);
	if (!windows_pipe(&windows->input, &theirs[0], true) ||
	    !windows_pipe(&windows->output[CORDON_STDOUT], &theirs[1], false) ||
	    (!command->one_stream && !windows_pipe(&windows->output[CORDON_STDERR], &theirs[2], false)))
		fail(err, CORDON_E_RESOURCE_EXHAUSTED, 0, "pipe", "a pipe cannot be made (Windows error %lu)",
		     (unsigned long)GetLastError());
	else if ((result = set_deadline(windows, err)) == 0)
		result = create(windows, launch,
		                (HANDLE[3]){ theirs[0], theirs[1], command->one_stream ? theirs[1] : theirs[2] }, err);
	for (int i = 0; i < 3; i++)
		close_handle(&theirs[i]);
	windows->started_ms = now_ms();
	if (result < 0)
		free_running(&windows->running);
	else
		*ret_running = &windows->running;
	return result;
}

/* A command and what it starts: see macos.h. One kqueue tells of output, of its end, and every TICK_MS that it is time
 * to look. */
#include "driver/macos/macos.h"

#include <poll.h>
#include <signal.h>
#include <sys/event.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <time.h>

#include "base/cleanup.h"

#define TICK_MS 20
#define DRAIN_MS 2000
#define PART 65536
#define TURNS 16                        /* of input, in one step */

struct macos_running {
	struct running running;
	const struct command *command;
	struct macos_sandbox *sandbox;
	struct macos_tree tree;
	pid_t pid;
	bool reaped;
	int queue, output[3], input;            /* ours of the pipes; output by enum cordon_stream */
	struct capture captures[3];
	struct outcome outcome;
	uint64_t started_ms, ended_ms;          /* the latter 0: it runs */
	uint64_t release_ms;                    /* when output that is held is let go; or 0 */
	char waiting[PART];                     /* input that the pipe had no room for */
	size_t waiting_length;
};

static uint64_t now_ms(void)
{
	return clock_gettime_nsec_np(CLOCK_UPTIME_RAW) / 1000000;
}

static struct macos_running *of(const struct running *running)
{
	return (struct macos_running *)(uintptr_t)running;
}

static bool make_pipe(int *ret_ours, int *ret_theirs, bool to_child)
{
	int fds[2];
	if (pipe(fds) < 0)
		return false;
	*ret_ours = fds[to_child];
	*ret_theirs = fds[!to_child];
	fcntl(fds[0], F_SETFD, FD_CLOEXEC);
	fcntl(fds[1], F_SETFD, FD_CLOEXEC);
	/* A command that closes its input ends no caller by SIGPIPE. */
	if (to_child && fcntl(*ret_ours, F_SETNOSIGPIPE, 1) < 0)
		return false;
	return fcntl(*ret_ours, F_SETFL, O_NONBLOCK) == 0;
}

/* ---- following --------------------------------------------------------------------------------------------------- */

static int queue_fd(const struct running *running)
{
	return of(running)->queue;
}

static void deliver(struct running *running, enum cordon_stream stream, const void *bytes, size_t length)
{
	struct macos_running *macos = of(running);
	capture_add(&macos->captures[stream], bytes, length);
	if (macos->command->output)
		macos->command->output(macos->command->output_arg, stream, bytes, length);
}

static bool read_stream(struct macos_running *macos, enum cordon_stream stream)
{
	char part[PART];
	if (macos->output[stream] < 0)
		return false;
	ssize_t got = read(macos->output[stream], part, sizeof(part));
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (got <= 0) {
		close_fd(&macos->output[stream]);
		return false;
	}
	if (macos->command->filter.add)
		macos->command->filter.add(macos->command->filter.arg, stream, part, (size_t)got);
	else
		deliver(&macos->running, stream, part, (size_t)got);
	return true;
}

/* What is handed on as it comes is not held for longer than it may be. */
static void release_held(struct macos_running *macos)
{
	const struct output_filter *filter = &macos->command->filter;
	uint64_t held_ms = filter->add && macos->command->output ? filter->held_ms(filter->arg) : 0;
	if (!held_ms) {
		macos->release_ms = 0;
	} else if (!macos->release_ms) {
		macos->release_ms = now_ms() + held_ms;
	} else if (now_ms() >= macos->release_ms) {
		macos->release_ms = 0;
		filter->release(filter->arg);
	}
}

/* Without waiting. By select(), since poll() knows no terminals here. */
static bool can_be_read(int fd)
{
	struct timeval now = { 0 };
	fd_set set;
	if (fd >= FD_SETSIZE)
		return poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 0) != 0;
	FD_ZERO(&set);
	FD_SET(fd, &set);
	return select(fd + 1, &set, NULL, NULL, &now) != 0;
}

static void look_at_watched(const struct command *command)
{
	for (unsigned i = 0; i < command->watched_count; i++)
		if (can_be_read(command->watched[i].fd))
			command->watched[i].handle(command->watched[i].arg);
}

/* True: some of it was passed on. */
static bool write_input(struct macos_running *macos)
{
	if (macos->input < 0)
		return false;
	if (!macos->waiting_length && macos->command->stdin_fd >= 0) {
		if (!can_be_read(macos->command->stdin_fd))
			return false;
		ssize_t got = read(macos->command->stdin_fd, macos->waiting, sizeof(macos->waiting));
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return false;
		macos->outcome.stdin_error = got < 0 ? errno : 0;
		macos->waiting_length = got > 0 ? (size_t)got : 0;
	}
	ssize_t put = macos->waiting_length ? write(macos->input, macos->waiting, macos->waiting_length) : -1;
	if (put < 0 && macos->waiting_length && (errno == EAGAIN || errno == EINTR))
		return false;
	if (put <= 0) {
		close_fd(&macos->input);
		return false;
	}
	memmove(macos->waiting, macos->waiting + put, macos->waiting_length -= (size_t)put);
	macos->outcome.stdin_bytes += (uint64_t)put;
	return true;
}

static void note_end(struct macos_running *macos)
{
	struct rusage usage;
	int status;
	if (macos->reaped || wait4(macos->pid, &status, WNOHANG, &usage) != macos->pid)
		return;
	macos->reaped = true;
	macos->ended_ms = now_ms();
	macos->outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	macos->outcome.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	macos->outcome.cpu_ms = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
	                        (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
	macos->outcome.max_rss_kb = (uint64_t)usage.ru_maxrss / 1024;
	/* Nothing of a command outlives it. */
	macos_tree_kill(&macos->tree);
}

static void end_for(struct macos_running *macos, const char *name, const char *unit, uint64_t used, uint64_t allowed)
{
	macos->outcome.limit_hit = (struct limit_hit){ name, unit, used, allowed };
	macos_tree_kill(&macos->tree);
}

static void look_at_limits(struct macos_running *macos)
{
	const struct limits *limits = &macos->command->profile->limits;
	if (macos->reaped || macos->outcome.limit_hit.name || macos->outcome.timed_out)
		return;
	macos_tree_look(&macos->tree);
	uint64_t memory = macos_tree_memory(&macos->tree);
	if (memory > macos->outcome.memory_peak_bytes)
		macos->outcome.memory_peak_bytes = memory;
	if (macos->tree.count > macos->outcome.process_peak)
		macos->outcome.process_peak = macos->tree.count;
	if (limits->wall_ms && now_ms() - macos->started_ms >= limits->wall_ms) {
		macos->outcome.timed_out = true;
		macos_tree_kill(&macos->tree);
	} else if (limits->memory_bytes && memory > limits->memory_bytes) {
		macos->outcome.oom_kills++;
		end_for(macos, "memory", "bytes", memory, limits->memory_bytes);
	} else if (limits->processes && macos->tree.count > limits->processes) {
		end_for(macos, "processes", "", macos->tree.count, limits->processes);
	} else if (macos->command->wish && macos->command->wish(macos->command->wish_arg) == COMMAND_END) {
		macos_tree_kill(&macos->tree);
	}
}

static bool is_over(const struct macos_running *macos)
{
	bool drained = macos->output[CORDON_STDOUT] < 0 && macos->output[CORDON_STDERR] < 0;
	return macos->reaped && (drained || now_ms() - macos->ended_ms > DRAIN_MS);
}

static int step(struct running *running, int wait_ms, bool *ret_finished, struct cordon_error *err)
{
	struct macos_running *macos = of(running);
	struct timespec wait = { wait_ms / 1000, wait_ms % 1000 * 1000000L };
	struct kevent events[8];
	(void)err;
	if (!running->finished && kevent(macos->queue, NULL, 0, events, 8, wait_ms < 0 ? NULL : &wait) >= 0) {
		for (int turn = 0; turn < TURNS && write_input(macos); turn++)
			;
		while (read_stream(macos, CORDON_STDOUT))
			;
		while (read_stream(macos, CORDON_STDERR))
			;
		release_held(macos);
		look_at_watched(macos->command);
		look_at_limits(macos);
		note_end(macos);
		running->finished = is_over(macos);
	}
	*ret_finished = running->finished;
	return 0;
}

static void send_signal(struct running *running, int signal_number)
{
	struct macos_running *macos = of(running);
	if (!macos->reaped)
		kill(-macos->pid, signal_number);
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
	close_fd(&of(running)->output[stream]);
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

static int end(struct running *running, struct outcome *ret_outcome, struct cordon_error *err)
{
	struct macos_running *macos = of(running);
	struct outcome *outcome = &macos->outcome;
	(void)err;
	if (macos->command->filter.finish)
		macos->command->filter.finish(macos->command->filter.arg);
	for (int stream = CORDON_STDOUT; stream <= CORDON_STDERR; stream++)
		capture_finish(&macos->captures[stream], &outcome->streams[stream]);
	outcome->duration_ms = macos->ended_ms - macos->started_ms;
	*ret_outcome = *outcome;
	return 0;
}

static void free_running(struct running *running)
{
	struct macos_running *macos = of(running);
	int status;
	if (macos->pid > 0 && !macos->reaped) {
		macos_tree_kill(&macos->tree);
		while (waitpid(macos->pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	close_fd(&macos->queue);
	close_fd(&macos->input);
	for (int stream = CORDON_STDOUT; stream <= CORDON_STDERR; stream++) {
		close_fd(&macos->output[stream]);
		capture_free(&macos->captures[stream]);
	}
	macos->sandbox->tree = NULL;
	free(macos->tree.items);
	free(macos);
}

static const struct running_ops ops = {
	.fd = queue_fd, .step = step, .signal = send_signal, .is_still = is_still, .hold_input = hold_input,
	.hold_output = hold_output, .close_output = close_output, .resize = resize, .press_stop = press_stop,
	.deliver = deliver, .end = end, .free = free_running,
};

static int watch(struct macos_running *macos)
{
	struct kevent changes[4];
	macos->queue = kqueue();
	if (macos->queue < 0 || fcntl(macos->queue, F_SETFD, FD_CLOEXEC) < 0)
		return -1;
	int count = 0;
	EV_SET(&changes[count++], 1, EVFILT_TIMER, EV_ADD, 0, TICK_MS, NULL);
	EV_SET(&changes[count++], macos->output[CORDON_STDOUT], EVFILT_READ, EV_ADD, 0, 0, NULL);
	if (macos->output[CORDON_STDERR] >= 0)
		EV_SET(&changes[count++], macos->output[CORDON_STDERR], EVFILT_READ, EV_ADD, 0, 0, NULL);
	if (kevent(macos->queue, changes, count, NULL, 0, NULL) < 0)
		return -1;
	/* Where that is not told, the timer looks. */
	for (unsigned i = 0; i < macos->command->watched_count; i++) {
		EV_SET(&changes[0], macos->command->watched[i].fd, EVFILT_READ, EV_ADD, 0, 0, NULL);
		kevent(macos->queue, changes, 1, NULL, 0, NULL);
	}
	/* One that has ended already is found by the timer. */
	EV_SET(&changes[0], macos->pid, EVFILT_PROC, EV_ADD, NOTE_EXIT, 0, NULL);
	kevent(macos->queue, changes, 1, NULL, 0, NULL);
	return 0;
}

static int launch(struct macos_running *macos, char *const *argv, const int theirs[3], struct cordon_error *err)
{
	int report[2], number = 0;
	if (pipe(report) < 0)
		return fail(err, CORDON_E_RESOURCE_EXHAUSTED, errno, "pipe", "a pipe cannot be made");
	auto_close int reading = report[0], writing = report[1];
	fcntl(reading, F_SETFD, FD_CLOEXEC);
	fcntl(writing, F_SETFD, FD_CLOEXEC);
	macos->pid = fork();
	if (macos->pid < 0)
		return fail(err, CORDON_E_RESOURCE_EXHAUSTED, errno, "fork", "the command cannot be started");
	if (macos->pid == 0)
		macos_become(macos->command, theirs, argv, writing);
	close_fd(&writing);
	macos_tree_begin(&macos->tree, macos->pid);
	macos->sandbox->tree = &macos->tree;
	if (read(reading, &number, sizeof(number)) == (ssize_t)sizeof(number))
		return fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, number, SANDBOX_EXEC, "it cannot be executed");
	return watch(macos) < 0
	               ? fail(err, CORDON_E_RESOURCE_EXHAUSTED, errno, "kqueue", "the command cannot be followed")
	               : 0;
}

int macos_start(struct sandbox *sandbox, const struct command *command, struct running **ret_running,
                struct cordon_error *err)
{
	int theirs[3] = { -1, -1, -1 }, result = -1;
	struct macos_running *macos = calloc(1, sizeof(*macos));
	if (!macos)
		return fail_oom(err);
	*macos = (struct macos_running){ .running = { .ops = &ops }, .command = command, .queue = -1,
		                         .output = { -1, -1, -1 }, .input = -1 };
	macos->sandbox = (struct macos_sandbox *)sandbox;
	capture_init(&macos->captures[CORDON_STDOUT], command->stdout_cap);
	capture_init(&macos->captures[CORDON_STDERR], command->stderr_cap);
	macos->started_ms = now_ms();
	char *const *argv = NULL;
	if (command->tty)
		fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, "tty", "this driver gives a command no terminal");
	else
		argv = macos_arguments((struct macos_sandbox *)sandbox, command, err);
	if (argv && make_pipe(&macos->input, &theirs[0], true) &&
	    make_pipe(&macos->output[CORDON_STDOUT], &theirs[1], false) &&
	    (command->one_stream || make_pipe(&macos->output[CORDON_STDERR], &theirs[2], false)))
		result = launch(macos, argv,
		                (const int[3]){ theirs[0], theirs[1], theirs[command->one_stream ? 1 : 2] }, err);
	else if (argv)
		fail(err, CORDON_E_RESOURCE_EXHAUSTED, errno, "pipe", "a pipe cannot be made");
	for (int i = 0; i < 3; i++)
		close_fd(&theirs[i]);
	if (result < 0)
		free_running(&macos->running);
	else
		*ret_running = &macos->running;
	return result;
}

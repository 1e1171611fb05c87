/* A command that runs, for all drivers of Linux: supervise.h behind run/running.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/linux/pidfd.h"
#include "driver/linux/processes.h"
#include "driver/linux/running.h"

static struct linux_running *of(struct running *running)
{
	return (struct linux_running *)running;
}

static int fd(const struct running *running)
{
	return ((const struct linux_running *)running)->supervision.epoll_fd;
}

static int step(struct running *running, int wait_ms, bool *ret_finished, struct cordon_error *err)
{
	int result = supervise_step(&of(running)->supervision, wait_ms, ret_finished, err);
	running->finished = result == 0 && *ret_finished;
	return result;
}

static void send_signal(struct running *running, int signal)
{
	supervise_signal(&of(running)->supervision, signal);
}

static bool is_still(const struct running *running)
{
	return ((const struct linux_running *)running)->supervision.still;
}

/* The last number of a line "NSpid:", which is that in the innermost namespace. */
static int64_t number_inside(pid_t pid)
{
	char path[64], line[256];
	int64_t number = 0;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, "NSpid:", strlen("NSpid:"))) {
			const char *last = strrchr(line, '\t');
			number = last ? strtoll(last, NULL, 10) : 0;
		}
	if (file)
		fclose(file);
	return number;
}

static uint64_t resident_kb(pid_t pid)
{
	char path[64];
	unsigned long long total = 0, resident = 0;
	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	FILE *file = fopen(path, "re");
	if (file && fscanf(file, "%llu %llu", &total, &resident) != 2)
		resident = 0;
	if (file)
		fclose(file);
	return resident * (unsigned long long)sysconf(_SC_PAGESIZE) / 1024;
}

/* The first of the tree is init, or the command's reaper; the second the command. */
static void usage(const struct running *running, struct running_usage *ret_usage)
{
	struct processes processes;
	pid_t first = pidfd_number(((const struct linux_running *)running)->supervision.pidfd);
	*ret_usage = (struct running_usage){ 0 };
	if (!first)
		return;
	processes_list(first, &processes);
	for (size_t i = 1; i < processes.count; i++) {
		ret_usage->processes++;
		ret_usage->memory_kb += resident_kb(processes.pids[i]);
	}
	if (processes.count > 1)
		ret_usage->pid = number_inside(processes.pids[1]);
	processes_free(&processes);
}

static void hold_input(struct running *running, bool hold)
{
	supervise_hold_input(&of(running)->supervision, hold);
}

static void hold_output(struct running *running, enum cordon_stream stream, bool hold)
{
	supervise_hold_output(&of(running)->supervision, stream, hold);
}

static void close_output(struct running *running, enum cordon_stream stream)
{
	supervise_close_output(&of(running)->supervision, stream);
}

static void resize(struct running *running, unsigned short rows, unsigned short columns)
{
	supervise_resize(&of(running)->supervision, rows, columns);
}

static bool press_stop(struct running *running)
{
	return supervise_press_stop(&of(running)->supervision);
}

static void deliver(struct running *running, enum cordon_stream stream, const void *bytes, size_t length)
{
	supervise_deliver(&of(running)->supervision, stream, bytes, length);
}

static void fill_outcome(const struct supervision *supervision, struct outcome *outcome)
{
	int status = supervision->status;
	outcome->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	outcome->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	outcome->timed_out = supervision->timed_out;
	outcome->duration_ms = (supervision->end_us - supervision->start_us) / 1000;
	outcome->cpu_ms = supervision->cpu_us / 1000;
	outcome->paused_ms = supervision->still_ms;
	outcome->max_rss_kb = supervision->max_rss_kb;
	outcome->read_bytes = supervision->read_bytes;
	outcome->written_bytes = supervision->written_bytes;
	outcome->stdin_bytes = supervision->stdin_bytes;
	outcome->stdin_error = supervision->stdin_error;
	outcome->init_lost = supervision->init_lost;
	outcome->sandbox_ended = supervision->sandbox_ended;
}

static int end(struct running *running, struct outcome *ret_outcome, struct cordon_error *err)
{
	struct linux_running *ours = of(running);
	struct supervision *supervision = &ours->supervision;
	const struct linux_driver *driver = linux_driver(ours->sandbox->sandbox.driver);
	struct outcome outcome = { 0 };
	for (int stream = CORDON_STDOUT; stream <= CORDON_STDERR; stream++)
		capture_finish(&supervision->captures[stream], &outcome.streams[stream]);
	int result = driver->conclude ? driver->conclude(&ours->launch, supervision->status,
	                                                 outcome.streams[CORDON_STDERR].data, err) :
	                                0;
	linux_limits_end(ours, &outcome);
	fill_outcome(supervision, &outcome);
	/* What has ended and is on its way out is not waited for. */
	supervise_leave(supervision, &ours->group);
	*ret_outcome = outcome;
	return result;
}

static void free_running(struct running *running)
{
	struct linux_running *ours = of(running);
	if (ours->prepared)
		supervise_free(&ours->supervision);
	renames_end(&ours->renames);
	linux_limits_free(ours);
	if (!ours->sandbox->shared)
		ours->sandbox->running = NULL;
	free(ours);
}

const struct running_ops linux_running_ops = {
	.fd = fd,
	.step = step,
	.signal = send_signal,
	.is_still = is_still,
	.usage = usage,
	.hold_input = hold_input,
	.hold_output = hold_output,
	.close_output = close_output,
	.resize = resize,
	.press_stop = press_stop,
	.deliver = deliver,
	.end = end,
	.free = free_running,
};

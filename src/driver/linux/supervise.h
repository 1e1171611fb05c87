/* A command's life, from its descriptors to its result, driven by events: prepare → (launch) → begin → step… →
 * (running.c: end) → leave → free. One epoll descriptor stands for everything that can happen, so a caller with a loop of its own polls just that, and
 * the synchronous call is "step until finished". */
#pragma once
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "driver/driver.h"
#include "driver/linux/cgroup.h"
#include "driver/linux/disk.h"
#include "driver/linux/launch.h"
#include "driver/linux/memory-watch.h"
#include "driver/linux/renames.h"
#include "driver/linux/shared.h"

struct supervise_options {
	int stdin_fd;                   /* borrowed; -1: empty input */
	bool tty;
	bool one_stream;                /* stderr is the pipe of stdout, which keeps the order of what is written */
	uint64_t wall_ms;               /* 0: no limit */
	uint64_t stdout_cap, stderr_cap;
	cordon_output_fn output;        /* or NULL */
	void *output_arg;
	struct output_filter filter;
	struct cgroup *group;           /* borrowed; what init could not end is ended by it */
	const struct shared_sandbox *sandbox;  /* of a session's command, borrowed: ended where the command's reaper
	                                          fails; else NULL */
	struct disk_watch *disk;        /* borrowed; or NULL */
	struct memory_watch *memory;    /* the same */
	struct renames *renames;        /* the same */
	const struct watched *watched;  /* the same; `watched_count` of them */
	unsigned watched_count;
	enum command_wish (*wish)(void *arg);         /* asked again and again once it is no longer new; or NULL */
	void *wish_arg;
};

enum supervise_state {
	SUPERVISE_RUNNING,              /* the command runs */
	SUPERVISE_KILLING,              /* init was asked to kill the tree */
	SUPERVISE_DRAINING,             /* nothing is left of it but what it wrote */
	SUPERVISE_FINISHED,
};

struct supervision {
	enum supervise_state state;
	struct supervise_options options;
	int epoll_fd, timer_fd, disk_timer_fd, memory_timer_fd, control_fd, pidfd;
	int release_timer_fd;           /* for what the filter holds, once it has held something; or -1 */
	int stdin_fd;                   /* our end: the pipe or the terminal's master */
	int stream_fd[3];               /* [CORDON_STDOUT], [CORDON_STDERR] */
	bool stream_held[3];            /* the same: not read for now */
	int child_fd[4];                /* the child's ends: stdio and the control socket, until begin */
	bool stdin_pollable, stdin_open;
	int unread_fd;                  /* the other end of the pipe for its input, to see what was not read; or -1 */
	int64_t stdin_offset;           /* of a regular file, where reading began; -1: it is none */
	uint64_t stdin_bytes;           /* so much was read from the caller's descriptor, and in the end so much by
	                                   the command */
	int stdin_error;                /* why it could not be read to its end, or 0 */
	pthread_mutex_t stdin_lock;     /* over the next: */
	bool stdin_held;
	bool init_ends_all;             /* with it the kernel ends whatever the command has started */
	unsigned presses;               /* so often it did not end all in time */
	unsigned stopped_looks;         /* so often in a row init was found stopped */
	bool init_lost;                 /* init was killed or stopped before the command had ended */
	bool sandbox_ended;             /* together with all that ran in the sandbox */
	bool reported, timed_out, disk_full, memory_full;
	bool is_new;                    /* it has normal priority, and its session's state is not checked */
	uint64_t deadline_us;           /* the end of its time; 0: it has any */
	bool still;                     /* it is frozen */
	int64_t still_since_ms;
	uint64_t still_ms;              /* how long it was frozen */
	int status;                     /* as wait() tells it */
	uint64_t start_us, end_us, cpu_us, max_rss_kb, read_bytes, written_bytes;
	struct capture captures[3];
	char *chunk;                    /* where output is read to; touched only as far as there is some */
	char *pending;                  /* input read but not yet written */
	size_t pending_start, pending_length;
};

/* Makes the descriptors and puts the child's ends into `launch`. The command's time begins. */
int supervise_prepare(struct supervision *supervision, const struct supervise_options *options, struct launch *launch,
                      struct cordon_error *err) must_check;
/* Output that is kept and handed on. */
void supervise_deliver(struct supervision *supervision, enum cordon_stream stream, const void *bytes, size_t length);
/* The command runs: takes launch->pidfd, unless there is an init already. */
int supervise_begin(struct supervision *supervision, struct launch *launch, struct cordon_error *err) must_check;
/* The listeners of launch->listeners, in their order; an IPv6 one is -1 where the kernel has no IPv6. They are the
 * caller's to close, do not block, and can be taken once, after the launch and before the first step. On failure all
 * are -1. */
int supervise_receive_listeners(int control_fd, int *fds, size_t count, struct cordon_error *err) must_check;
/* Handles what is ready; waits up to `wait_ms` (-1: without a limit) for an event. */
int supervise_step(struct supervision *supervision, int wait_ms, bool *ret_finished,
                   struct cordon_error *err) must_check;
/* While a question is open at the terminal from which the command's input comes, what is typed there is not for the
 * command. From any thread. If the input is no terminal, nothing changes. */
void supervise_hold_input(struct supervision *supervision, bool hold);
/* Output that is held is not read: a command that continues to write waits, as at any full pipe. What it wrote before
 * it ended is read then, held or not. */
void supervise_hold_output(struct supervision *supervision, enum cordon_stream stream, bool hold);
/* The output has no reader any more: a command that continues to write gets SIGPIPE or EPIPE. With a terminal this
 * does nothing. */
void supervise_close_output(struct supervision *supervision, enum cordon_stream stream);
/* While it is frozen it takes no signal but SIGKILL. */
void supervise_signal(struct supervision *supervision, int signal);
void supervise_resize(struct supervision *supervision, unsigned short rows, unsigned short columns);
/* Ctrl-Z was pressed. True: nothing was done, and the whole command is to be stopped; false: the key went to its
 * terminal. */
bool supervise_press_stop(struct supervision *supervision);
/* It has finished: callers need not wait until init, which has reported, and the group, which is taken, are gone. */
void supervise_leave(struct supervision *supervision, struct cgroup *group);
/* The patience for the program has run out, and it has not started yet. */
void supervise_cut_short(struct supervision *supervision);
/* Kills what still runs and releases everything. */
void supervise_free(struct supervision *supervision);

/* A command that runs, and what became of it: the same on every system and for every driver.
 *
 * A caller with a loop of its own polls `fd`, and calls `step` when that is readable; others step with a wait. When it
 * has finished, `end` tells how. What is not said to be for any thread is called by one. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "run/capture.h"

/* The limit that ended a command, or one process of it; no name: none did. */
struct limit_hit {
	const char *name, *unit;
	uint64_t used, allowed;
};

struct outcome {
	int exit_code, signal;                  /* -1 where a signal ended it; or 0 */
	bool timed_out;
	uint64_t duration_ms, cpu_ms, paused_ms, max_rss_kb, read_bytes, written_bytes, stdin_bytes;
	int stdin_error;                        /* why its input could not be read to its end; or 0 */
	struct captured streams[3];             /* [CORDON_STDOUT], [CORDON_STDERR]; borrowed until it is freed */
	uint64_t memory_peak_bytes, process_peak;       /* 0: not known */
	uint64_t oom_kills;                     /* processes that were killed for want of memory */
	uint64_t process_refusals;              /* processes that were not made because of the limit */
	uint32_t grouped;                       /* 1 << enum cordon_wall: limits that the kernel held for the whole
	                                           tree */
	struct limit_hit limit_hit;
	bool disk_passed;                       /* its limit on disk space, but it ended before that was found out;
	                                           then: */
	bool disk_growth;                       /* the limit was on what it added */
	uint64_t disk_used;
	bool init_lost;                         /* a process of cordon's that looks after it was killed or stopped, and
	                                           the command was ended for that */
	bool sandbox_ended;                     /* what it had started could only be ended together with all that ran
	                                           in its sandbox */
};

/* While it runs, for people. 0: not known. */
struct running_usage {
	int64_t pid;                            /* of the command, as it is known inside */
	uint64_t processes, memory_kb;          /* of all that it has started */
};

struct running;
struct running_ops {
	int (*fd)(const struct running *running);
	/* Handles what is ready; waits up to `wait_ms` (-1: for ever) for something to be. */
	int (*step)(struct running *running, int wait_ms, bool *ret_finished, struct cordon_error *err);
	void (*signal)(struct running *running, int signal);
	/* Is it stopped, with its session? */
	bool (*is_still)(const struct running *running);
	/* From any thread. */
	void (*usage)(const struct running *running, struct running_usage *ret_usage);
	/* While a human is asked at the terminal that its input comes from, that is not read. From any thread. */
	void (*hold_input)(struct running *running, bool hold);
	void (*hold_output)(struct running *running, enum cordon_stream stream, bool hold);
	void (*close_output)(struct running *running, enum cordon_stream stream);
	void (*resize)(struct running *running, unsigned short rows, unsigned short columns);
	/* Ctrl-Z was pressed. True: nothing was done, and the whole command is to be stopped. */
	bool (*press_stop)(struct running *running);
	/* Output that has passed the filter: it is kept and handed on. */
	void (*deliver)(struct running *running, enum cordon_stream stream, const void *bytes, size_t length);
	/* Once, when it has finished. An error: the walls were not raised after all, and nothing ran. */
	int (*end)(struct running *running, struct outcome *ret_outcome, struct cordon_error *err);
	/* Kills what still runs. */
	void (*free)(struct running *running);
};

/* Begins each driver's own struct. */
struct running {
	const struct running_ops *ops;
	bool finished;
};

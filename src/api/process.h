/* A process: a command that is followed by a thread of the library's own, so that no call about it waits.
 *
 *     struct process              the command: kept by the cordon that started it, its thread and its handles
 *     struct cordon_process       a handle: where its caller is in the events and in the output, and a descriptor
 *
 * The thread takes the walk (every step may wait: for a disk, for a human), then steps the command to its end. It alone
 * touches the execution. Everything else is under the process's lock; what callers want of it is written there, and
 * `poke_fd` wakes the thread. While a handle has not taken all output, the command waits as at a full pipe; with no
 * handle the oldest output is overwritten. */
#pragma once
#include <pthread.h>

#include "api/value.h"
#include "base/id.h"
#include "walk.h"

#define PROCESS_KEPT ((size_t)1 << 20)          /* of each stream, for those that attach later */
#define PROCESS_BEHIND ((size_t)256 << 10)      /* a handle that has not taken so much holds the command's output */
#define PROCESS_PART ((size_t)64 << 10)         /* of output in one event */
#define PROCESS_ENDED_KEPT 64                   /* of those that have ended, for those that attach later; */
#define PROCESS_ENDED_MOST 512                  /* and so many, as long as their output is not larger */
#define PROCESS_ENDED_BYTES ((size_t)4 << 20)

enum process_state {
	PROCESS_STARTING,               /* the walk, up to its start */
	PROCESS_RUNNING,
	PROCESS_ENDED,                  /* `result` or `error` is there, and there will be no more events */
};

/* The last so many bytes of a stream, by their places. */
struct process_stream {
	char *bytes;
	size_t size;                    /* a power of two, or 0 */
	uint64_t from, end;             /* the places of what is kept */
	bool held;                      /* it is not read: a handle is behind */
};

struct process_event {
	struct process_event *next;
	uint64_t number;                /* counted from 1 */
	json_t *tree;
};

struct process {
	struct process *next;           /* of the cordon's, under its jobs_lock */
	struct cordon *cordon;
	char id[ID_SIZE];
	struct cordon_request request, *kept;   /* a copy, and what holds its parts */
	int interrupt_fd;               /* readable: no answer is waited for any more */
	int poke_fd;                    /* readable: the thread is to look at what is wanted */
	int input_fd;                   /* our end of the command's input; or -1 */
	int input_given_fd;             /* what the caller or we give it to read; or -1 */
	pthread_t thread;
	pthread_mutex_t lock;           /* over the next: */
	pthread_cond_t changed;         /* the state */
	enum process_state state;
	struct cordon_process *handles;
	bool detached;                  /* it goes on without a handle */
	bool done;                      /* its thread will touch it no more; */
	bool joined;                    /* and is no more */
	/* What is wanted of it: */
	uint64_t signals;               /* bits */
	const char *told_by;            /* by whom it was told to end, or NULL */
	int64_t grace_ms;               /* then */
	int64_t end_at_ms;              /* when it is to be ended if it still runs, with `end_grace_ms`; 0: never */
	int64_t end_grace_ms;
	bool resized, wants_room;
	unsigned short rows, columns;
	/* What has become of it: */
	char asks[ID_SIZE];             /* the card that it asks now; or "" */
	struct process_event *events, **last_event;
	struct process_event *last_words;       /* the event `ended`, for when memory is short */
	uint64_t event_count;
	struct process_stream streams[3];
	json_t *result;                 /* or NULL, then */
	struct cordon_error error;
};

struct cordon_process {
	struct cordon_process *next;    /* of the process's */
	struct process *process;
	int fd;                         /* readable: there is an event */
	uint64_t seen;                  /* of the events, the last that was taken */
	uint64_t at[3];                 /* of the streams */
	bool waits;                     /* it does not hold the output: it waits for the end */
	bool has_room;                  /* there is room for input again, which was not told yet */
};

/* Under the process's lock. */
void process_wake(struct process *process);
void process_push(struct process *process, json_t *event);
/* The last event. It is told also where memory is short, without what there was no memory for. */
void process_push_end(struct process *process, json_t *event);
/* Whether this handle keeps the command waiting; how much the slowest has not taken. */
uint64_t process_behind(const struct process *process, int stream);
void process_add_output(struct process *process, int stream, const char *data, size_t length);
/* Copies what is kept from a place on; returns how much. */
size_t process_copy_output(const struct process_stream *stream, uint64_t from, char *buffer, size_t size);
void process_poke(struct process *process);

/* After fork() the thread that would tell of the process is in the parent, which may even hold the lock. */
int process_check_owner(const struct cordon_process *handle, struct cordon_error *err) must_check;
/* Starts the thread (process-thread.c). */
int process_begin(struct process *process, struct cordon_error *err) must_check;
/* The process of this id that this cordon has started, or NULL; *ret_handle is a handle for it, at these places. */
int process_attach(struct cordon *cordon, const char *id, uint64_t stdout_from, uint64_t stderr_from,
                   struct cordon_process **ret_handle, struct cordon_error *err) must_check;
/* How many have not ended. */
size_t process_count(struct cordon *cordon);
/* The list of those that are known here, as JSON. NULL when memory is short. */
json_t *process_list(struct cordon *cordon);
/* Tells each that still runs after `drain_ms` to end: SIGTERM, and SIGKILL after `grace_ms`. */
void process_stop_all(struct cordon *cordon, int64_t drain_ms, int64_t grace_ms);
json_t *process_tell(struct process *process);

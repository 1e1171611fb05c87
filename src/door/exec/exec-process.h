/* A process of the exec-server, as its parts see it. */
#pragma once
#include "door/exec/exec.h"

#define EXEC_WRITES_KEPT 64
#define EXEC_STATUS_NOT_RUN 125

enum exec_state {
	EXEC_STARTING,          /* it is decided, in a thread of its own: a human may be asked */
	EXEC_RUNNING,
	EXEC_ENDED,
};

struct chunk {
	struct chunk *next;
	uint64_t seq;
	enum cordon_stream stream;
	size_t length;
	char data[];
};

/* A process/read that waits for more. */
struct waiter {
	struct waiter *next;
	char id[RPC_ID_MAX];
	uint64_t after, max, until_ms;
};

struct exec_process {
	struct exec_process *next;
	struct exec_server *server;
	char name[EXEC_NAME_SIZE];
	enum exec_state state;
	struct exec_starting *starting;         /* EXEC_STARTING; or NULL */
	struct cordon_request *request;
	struct cordon_execution *execution;     /* EXEC_RUNNING; else NULL */
	bool tty, exited;                       /* `exited`: and all that can be told of it was */
	bool denied;                            /* it failed, and a denial explains that */
	int exit_code;
	char left_out[256];                     /* variables that cordon refuses, of those that the client sent */
	int source_fd;                          /* what it reads; lent to the library */
	int input_fd;                           /* our end of that; -1: closed */
	char *input;                            /* not written yet */
	size_t input_length;
	char written[EXEC_WRITES_KEPT][EXEC_NAME_SIZE]; /* the last writeIds that were accepted, a ring */
	unsigned next_written;
	struct chunk *chunks, **last;
	size_t kept;
	uint64_t next_seq;
	struct waiter *waiters;
};

/* As cordon_output_fn. */
void exec_process_output(void *arg, enum cordon_stream stream, const void *data, size_t length);
/* Text of cordon's on its standard error. */
void exec_process_say(struct exec_process *process, const char *text);
/* It was not run: why, to the model. */
void exec_process_refused(struct exec_process *process, const struct cordon_error *err);

void exec_put_chunk(struct json *json, const struct exec_process *process, const struct chunk *chunk);
void exec_read_call(struct exec_server *server, const char *id, json_t *params);
/* Those for whom there is more, or whose time is over. */
void exec_answer_waiters(struct exec_process *process);

/* process/start, from its own thread to the first step (exec-start.c). */
void exec_start_call(struct exec_server *server, const char *id, json_t *params);
/* If it is decided: EXEC_RUNNING, or refused. */
void exec_start_step(struct exec_process *process);
/* Readable when it is decided. */
int exec_start_fd(const struct exec_process *process);
/* Whoever is asked need not answer any more: it will not run. */
void exec_start_cancel(struct exec_process *process);
/* Waits until it is decided, which is at once when it was cancelled. */
void exec_start_free(struct exec_process *process);
struct exec_process *exec_process_find(struct exec_server *server, const char *name);
void exec_process_free(struct exec_process *process);

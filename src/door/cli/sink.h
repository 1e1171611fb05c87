/* Where a command's output goes: one of cordon's own standard streams. */
#pragma once
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "door/cli/portion.h"

struct sink {
	int fd;                 /* a standard stream, or `own_fd` */
	int own_fd;             /* the same terminal or pipe, opened again for writing without blocking; or -1 */
	struct portion portion;
	bool is_pipe;           /* whose reader may go away */
	bool is_file;           /* a regular one: writing never waits for a reader */
	bool held;              /* nothing is written for now */
	char *waiting;
	size_t waiting_from, waiting_to, waiting_size;
	int error;              /* the errno that ended writing, or 0 */
};

/* `kept` is how much of the stream the library keeps. */
void sink_open(struct sink *sink, int fd, uint64_t kept);
/* Takes output as it comes. Never blocks. */
void sink_live(struct sink *sink, const void *data, size_t length);
/* Writes what waits, as far as that goes without blocking. */
void sink_pump(struct sink *sink);
/* Writes this, or the rest, given what the library kept. May block; `waiting` is the signal mask meanwhile, NULL: as
 * it is. */
void sink_write(struct sink *sink, const char *data, size_t length, const sigset_t *waiting);
void sink_finish(struct sink *sink, const char *kept, size_t length, const sigset_t *waiting);
void sink_close(struct sink *sink);

static inline size_t sink_waiting(const struct sink *sink)
{
	return sink->error ? 0 : sink->waiting_to - sink->waiting_from;
}

/* What to poll for writing before pumping; -1: nothing waits. */
static inline int sink_fd(const struct sink *sink)
{
	return sink_waiting(sink) && !sink->held ? sink->fd : -1;
}

/* What to poll for an error: a pipe has one when its reader is gone; -1: nothing. */
static inline int sink_reader_fd(const struct sink *sink)
{
	return sink->is_pipe && !sink->error ? sink->fd : -1;
}

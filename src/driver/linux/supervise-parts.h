/* The parts of a supervision, which begin it, feed the command, and have it stand still; for supervise*.c alone. */
#pragma once
#include "driver/linux/supervise.h"

enum source {
	SOURCE_CONTROL,
	SOURCE_TIMER,
	SOURCE_STDOUT,
	SOURCE_STDERR,
	SOURCE_STDIN,
	SOURCE_STDIN_ROOM,
	SOURCE_DISK,
	SOURCE_MEMORY,
	SOURCE_RELEASE,
	SOURCE_RENAMES,
	SOURCE_WATCHED,                 /* and those after it: options.watched */
};

#define SUPERVISE_CHUNK (64 * 1024)     /* the size of `chunk`, for output */

int supervise_watch(struct supervision *supervision, int fd, enum source source, uint32_t events);
void supervise_arm(int timer_fd, uint64_t after_ms);
/* The first of these times, in ms; 0 and below 0 are none. */
int supervise_earlier(int one, int other);
/* Whether commands can stop init: a reaper by those of its sandbox; init where the driver has no pid namespace. */
bool supervise_init_can_stop(const struct supervision *supervision);

void input_begin(struct supervision *supervision);
/* `readable`: a read now does not block. */
void input_pump(struct supervision *supervision, bool readable);
void input_end(struct supervision *supervision);
/* The command has ended: how much of its input it read. A regular file is left at that offset, unless another process
 * moved it. */
void input_settle(struct supervision *supervision);

/* The command has ended: nothing is held any more. */
void output_release(struct supervision *supervision);

/* Watches the listener for renames, which it takes. */
void supervise_renames(struct supervision *supervision, int listener_fd);

void supervise_kill(struct supervision *supervision);
/* Checks whether it is to be frozen, and freezes or thaws it. Returns the time until the next check in ms; 0: none. */
uint64_t pause_look(struct supervision *supervision);
/* It has ended; or must, even if init fails. */
void pause_end(struct supervision *supervision);

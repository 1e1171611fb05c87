/* The parts of a supervision that feed the command, and have it stand still; used by supervise.c alone. */
#pragma once
#include "driver/linux/supervise.h"

enum source {
	SOURCE_CONTROL, SOURCE_TIMER, SOURCE_STDOUT, SOURCE_STDERR, SOURCE_STDIN, SOURCE_STDIN_ROOM, SOURCE_DISK, SOURCE_MEMORY,
	SOURCE_RELEASE,
};

int supervise_watch(struct supervision *supervision, int fd, enum source source, uint32_t events);

void input_begin(struct supervision *supervision);
/* `readable`: a read now does not block. */
void input_pump(struct supervision *supervision, bool readable);
void input_end(struct supervision *supervision);
/* The command has ended: how much of its input it read. A regular file is left at that offset, unless another process moved it. */
void input_settle(struct supervision *supervision);

/* The command has ended: nothing is held any more. */
void output_release(struct supervision *supervision);

void supervise_kill(struct supervision *supervision);
/* Asks whether it is to stand still, and sees to it. For how long there is nothing more to do, in ms; 0: for ever. */
uint64_t pause_look(struct supervision *supervision);
/* It has ended; or is to, whatever becomes of init. */
void pause_end(struct supervision *supervision);

/* The part of a supervision that feeds the command; used by supervise.c alone. */
#pragma once
#include "run/supervise.h"

enum source {
	SOURCE_CONTROL, SOURCE_TIMER, SOURCE_STDOUT, SOURCE_STDERR, SOURCE_STDIN, SOURCE_STDIN_ROOM, SOURCE_DISK,
};

int supervise_watch(struct supervision *supervision, int fd, enum source source, uint32_t events);

void input_begin(struct supervision *supervision);
/* `readable`: a read now does not block. */
void input_pump(struct supervision *supervision, bool readable);
void input_end(struct supervision *supervision);

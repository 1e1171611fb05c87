/* What the daemon says, as it comes: bytes from the socket in, frames (wire.h) out. */
#pragma once
#include "base/cleanup.h"
#include "door/wire/wire-read.h"

struct cordon_error;

/* All zero at first. */
struct inbox {
	char *bytes;
	size_t from, to, size;
	bool is_closed;                 /* nothing more comes... */
	bool is_reset;                  /* ...and the other end has not read all that it was sent */
};
void inbox_free(struct inbox *inbox);

/* What there is to be read, without waiting. *ret_any: there was something. */
int inbox_receive(struct inbox *inbox, int fd, bool *ret_any, struct cordon_error *err) must_check;

/* The first frame, borrowed until more is received: 1, or 0 where there is none yet. -1 where there will never be
 * one. */
int inbox_next(const struct inbox *inbox, struct wire_frame *ret_frame, struct cordon_error *err) must_check;
void inbox_drop(struct inbox *inbox, const struct wire_frame *frame);

/* Reading frames (wire.h): bytes in, frames out. The frames are untrusted. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "door/wire/wire.h"

enum wire_state {
	WIRE_PARTIAL,                   /* more bytes are needed */
	WIRE_WHOLE,
	WIRE_BROKEN,                    /* no frame, or none that this side may send */
};

struct wire_frame {
	struct wire_head head;
	const char *body;               /* borrowed from the bytes */
	size_t size;                    /* of head and body */
};

/* The frame that the bytes begin with. */
enum wire_state wire_next(const char *bytes, size_t length, bool from_client, struct wire_frame *ret_frame);

struct wire_words {
	const char **words, **environment;      /* each ended by NULL; to be free()d at `words` alone */
	const char *cwd;
	uint32_t flags, umask;
};

/* Sorts the body of a HELLO; the strings stay in it. False: it is not one of this version, or memory is short. */
bool wire_hello(const char *body, size_t length, struct wire_words *ret_words);

/* A number that is the whole body. */
bool wire_number(const struct wire_frame *frame, uint32_t *ret_number);

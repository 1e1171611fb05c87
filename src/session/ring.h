/* The last bytes that a job wrote to one of its streams, in a file of a fixed size: one process writes, any number
 * read, and none waits for another. Offsets are counted from the first byte that was ever written, so that a reader
 * continues at its offset, and learns how much it missed. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"

#define RING_SIZE_DEFAULT (UINT64_C(1) << 20)
#define RING_SIZE_MAX (UINT64_C(64) << 20)

struct ring {
	int fd;
	uint64_t size, written;
	int error;              /* an errno: from there on nothing is kept */
};

/* A new file. `size` is cut to RING_SIZE_MAX. */
int ring_make(int directory_fd, const char *name, uint64_t size, struct ring *ret_ring,
              struct cordon_error *err) must_check;
/* Never fails: see `error`. */
void ring_add(struct ring *ring, const void *bytes, size_t length);
void ring_close(struct ring *ring);

struct ring_part {
	uint64_t from;          /* where what was read begins: later than asked for where that is no longer kept */
	uint64_t end;           /* how much was written in all, by now */
	size_t length;
};

/* The file, to be closed. 0, or a negative errno. */
int ring_open(int directory_fd, const char *name, int *ret_fd) must_check;
/* As much as there is from `from` on, up to `size` bytes. A place that is not reached yet is taken for the end. 0, or a
 * negative errno: -EBADMSG where it is not what cordon wrote. */
int ring_read(int fd, uint64_t from, void *buffer, size_t size, struct ring_part *ret_part) must_check;

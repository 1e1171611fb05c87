/* Words between cordon's own processes. A process that waits behind its walls, `command` of launch.h's picture or a starter,
 * gets over a socket what to execute: program, arguments, environment, directory, and three descriptors. Replies carry a
 * failure back. Structs travel packed: pointers are offsets into one run of bytes. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "driver/linux/launch.h"

#define ORDER_MAX (64 * 1024)           /* one message */

enum reply_kind {
	REPLY_READY = 1,                /* with a descriptor */
	REPLY_FAILED,                   /* with the error */
};

struct reply {
	int32_t kind;
	struct cordon_error error;      /* only of REPLY_FAILED; else not sent */
};

/* What is to be executed; the strings are in the same message. */
struct order {
	const char *cwd;
	const char *const *candidates, *const *argv, *const *environment;
	uint64_t program_device, program_inode;
	bool program_judged;
	unsigned umask;
};

/* A struct and all that it points to, in one run of bytes: at the places that `fixups` tells there are offsets from the
 * beginning, which become pointers wherever the bytes lie. The root struct follows the head. */
struct pack {
	uint32_t size, fixup_at, fixup_count;
	uint32_t unused;
};

/* In bytes of this capacity; 0: too large. Offsets into the bytes. */
struct packer {
	char *bytes;
	uint32_t capacity, length, fixup_count;
	uint32_t fixups[8192];
	bool full;
};
void pack_begin(struct packer *packer, void *bytes, uint32_t capacity);
uint32_t pack_bytes(struct packer *packer, const void *data, size_t size);
void pack_point(struct packer *packer, uint32_t field, uint32_t to);
void pack_text(struct packer *packer, uint32_t field, const char *text);
void pack_texts(struct packer *packer, uint32_t field, const char *const *texts);
uint32_t pack_end(struct packer *packer);

/* ---- without libc: child-order.c ---------------------------------------------------------------------------------- */

/* Makes the pointers; returns the root struct, or NULL where the bytes are no pack. */
void *pack_open(void *bytes, size_t size);
/* Sends the launch's error, if it has failed. */
void reply_failure(const struct launch *launch, int fd);

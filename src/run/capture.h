/* What a command wrote, within a cap: the first 40 % and the last 60 %, the true total, and a hash of everything.
 * Nothing here fails: where memory is short, less is kept and the result says so. */
#pragma once
#include <sodium/crypto_hash_sha256.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "Unlimited" ends here: the output is one block of memory, and a flood must not take cordon down with it. */
#define CAPTURE_CEILING ((uint64_t)1 << 30)

struct capture {
	char *bytes;                    /* `head` bytes, then the tail as a ring */
	size_t cap, head, capacity;
	uint64_t total;
	char after_head[3];             /* what followed the head, once the ring has gone over it */
	bool wrapped;
	crypto_hash_sha256_state hash;
};

struct captured {
	const char *data;               /* ended by a NUL that is not counted; borrowed until capture_free() */
	size_t length;
	uint64_t total;                 /* bytes that were written */
	bool truncated;
	char sha256[65];                /* of all that was written, in hex */
};

/* At most `cap` bytes are kept, besides the marker; 0 keeps nothing and counts, UINT64_MAX is unlimited. */
void capture_init(struct capture *capture, uint64_t cap);
void capture_add(struct capture *capture, const void *bytes, size_t length);
/* Once, after the last byte. */
void capture_finish(struct capture *capture, struct captured *ret_captured);
void capture_free(struct capture *capture);

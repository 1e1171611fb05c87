/* SHA-1, only to compare files with what git calls them: nothing is trusted because of it. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#define SHA1_BYTES 20

struct sha1 {
	uint32_t state[5];
	uint64_t length;
	unsigned char block[64];
};

void sha1_init(struct sha1 *sha1);
void sha1_update(struct sha1 *sha1, const void *bytes, size_t length);
void sha1_final(struct sha1 *sha1, unsigned char ret_hash[SHA1_BYTES]);

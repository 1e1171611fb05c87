/* SHA-1 (FIPS 180-4): see sha1.h. */
#include "base/sha1.h"

#include <string.h>

static uint32_t rotate(uint32_t word, unsigned bits)
{
	return word << bits | word >> (32 - bits);
}

/* One step; the five words change their roles instead of their places. */
#define STEP(a, b, c, d, e, mixed, constant, word)                              \
	do {                                                                    \
		(e) += rotate((a), 5) + (mixed) + (constant) + (word);          \
		(b) = rotate((b), 30);                                          \
	} while (0)
#define STEPS(i, MIXED, constant)                                               \
	do {                                                                    \
		STEP(a, b, c, d, e, MIXED(b, c, d), constant, words[i]);        \
		STEP(e, a, b, c, d, MIXED(a, b, c), constant, words[(i) + 1]);  \
		STEP(d, e, a, b, c, MIXED(e, a, b), constant, words[(i) + 2]);  \
		STEP(c, d, e, a, b, MIXED(d, e, a), constant, words[(i) + 3]);  \
		STEP(b, c, d, e, a, MIXED(c, d, e), constant, words[(i) + 4]);  \
	} while (0)
#define CHOICE(b, c, d) (((b) & (c)) | (~(b) & (d)))
#define PARITY(b, c, d) ((b) ^ (c) ^ (d))
#define MAJORITY(b, c, d) (((b) & (c)) | ((b) & (d)) | ((c) & (d)))

static void take_block(struct sha1 *sha1, const unsigned char *block)
{
	uint32_t words[80], a = sha1->state[0], b = sha1->state[1], c = sha1->state[2], d = sha1->state[3],
			    e = sha1->state[4];
	for (unsigned i = 0; i < 16; i++)
		words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
		           (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (unsigned i = 16; i < 80; i++)
		words[i] = rotate(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
	for (unsigned i = 0; i < 20; i += 5)
		STEPS(i, CHOICE, 0x5a827999);
	for (unsigned i = 20; i < 40; i += 5)
		STEPS(i, PARITY, 0x6ed9eba1);
	for (unsigned i = 40; i < 60; i += 5)
		STEPS(i, MAJORITY, 0x8f1bbcdc);
	for (unsigned i = 60; i < 80; i += 5)
		STEPS(i, PARITY, 0xca62c1d6);
	sha1->state[0] += a;
	sha1->state[1] += b;
	sha1->state[2] += c;
	sha1->state[3] += d;
	sha1->state[4] += e;
}

void sha1_init(struct sha1 *sha1)
{
	*sha1 = (struct sha1){ .state = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 } };
}

void sha1_update(struct sha1 *sha1, const void *bytes, size_t length)
{
	const unsigned char *from = bytes;
	while (length) {
		size_t used = sha1->length % sizeof(sha1->block), room = sizeof(sha1->block) - used;
		size_t part = length < room ? length : room;
		memcpy(sha1->block + used, from, part);
		sha1->length += part;
		from += part;
		length -= part;
		if (part == room)
			take_block(sha1, sha1->block);
	}
}

void sha1_final(struct sha1 *sha1, unsigned char ret_hash[SHA1_BYTES])
{
	static const unsigned char padding[64] = { 0x80 };
	unsigned char length[8];
	size_t used = sha1->length % 64;
	for (unsigned i = 0; i < 8; i++)
		length[i] = (unsigned char)(sha1->length * 8 >> (56 - 8 * i));
	sha1_update(sha1, padding, used < 56 ? 56 - used : 120 - used);
	sha1_update(sha1, length, sizeof(length));
	for (unsigned i = 0; i < SHA1_BYTES; i++)
		ret_hash[i] = (unsigned char)(sha1->state[i / 4] >> (24 - 8 * (i % 4)));
}

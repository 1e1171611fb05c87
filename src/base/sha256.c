/* See sha256.h. FIPS 180-4; the instructions: Intel SHA Extensions (2013). libsodium's state is used as it is: eight
 * words, how many bits there were, and what does not fill a block yet. Whether the instructions are there glibc knows
 * since it started; asking the processor again costs more than all the rest where it is a virtual one. */
#include "base/sha256.h"

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__has_include)
#if __has_include(<sys/platform/x86.h>)
#include <immintrin.h>
#include <sys/platform/x86.h>
#define HAS_INSTRUCTIONS CPU_FEATURE_ACTIVE(SHA)
#endif
#endif

#ifdef HAS_INSTRUCTIONS

#define BLOCK 64

static const uint32_t constants[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

/* The instructions want the eight words as two vectors, ABEF and CDGH, and take four rounds and four words at a
 * time. */
__attribute__((target("sha,sse4.1"))) static void compress(uint32_t words[8], const unsigned char *bytes, size_t blocks)
{
	const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
	__m128i low = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)words), 0xb1);
	__m128i high = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(words + 4)), 0x1b);
	__m128i abef = _mm_alignr_epi8(low, high, 8), cdgh = _mm_blend_epi16(high, low, 0xf0);
	for (; blocks; blocks--, bytes += BLOCK) {
		const __m128i abef_before = abef, cdgh_before = cdgh;
		__m128i message[4];
		for (int i = 0; i < 4; i++)
			message[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(bytes + 16 * i)), swap);
#pragma GCC unroll 16
		for (int i = 0; i < 16; i++) {
			__m128i *at = &message[i % 4], last = message[(i + 3) % 4];
			__m128i sum = _mm_add_epi32(*at, _mm_loadu_si128((const __m128i *)(constants + 4 * i)));
			cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
			abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
			/* The words that come four groups later. */
			*at = _mm_sha256msg1_epu32(*at, message[(i + 1) % 4]);
			*at = _mm_sha256msg2_epu32(_mm_add_epi32(*at, _mm_alignr_epi8(last, message[(i + 2) % 4], 4)),
			                           last);
		}
		abef = _mm_add_epi32(abef, abef_before);
		cdgh = _mm_add_epi32(cdgh, cdgh_before);
	}
	low = _mm_shuffle_epi32(abef, 0x1b);
	high = _mm_shuffle_epi32(cdgh, 0xb1);
	_mm_storeu_si128((__m128i *)words, _mm_blend_epi16(low, high, 0xf0));
	_mm_storeu_si128((__m128i *)(words + 4), _mm_alignr_epi8(high, low, 8));
}

static void update(crypto_hash_sha256_state *state, const unsigned char *bytes, size_t length)
{
	size_t held = (size_t)(state->count / 8) % BLOCK;
	state->count += (uint64_t)length * 8;
	if (held) {
		size_t part = length < BLOCK - held ? length : BLOCK - held;
		memcpy(state->buf + held, bytes, part);
		bytes += part;
		length -= part;
		if (held + part < BLOCK)
			return;
		compress(state->state, state->buf, 1);
	}
	compress(state->state, bytes, length / BLOCK);
	if (length % BLOCK)
		memcpy(state->buf, bytes + length / BLOCK * BLOCK, length % BLOCK);
}

/* A one bit, as few zeros as will do, and the number of bits. */
static void finish(crypto_hash_sha256_state *state, unsigned char ret_hash[crypto_hash_sha256_BYTES])
{
	unsigned char end[2 * BLOCK] = { 0x80 };
	size_t held = (size_t)(state->count / 8) % BLOCK, length = (held < BLOCK - 8 ? BLOCK : 2 * BLOCK) - held;
	uint64_t bits = __builtin_bswap64(state->count);
	memcpy(end + length - 8, &bits, sizeof(bits));
	update(state, end, length);
	for (int i = 0; i < 8; i++) {
		uint32_t word = __builtin_bswap32(state->state[i]);
		memcpy(ret_hash + 4 * i, &word, sizeof(word));
	}
}

void sha256_update(crypto_hash_sha256_state *state, const void *bytes, size_t length)
{
	if (!HAS_INSTRUCTIONS)
		crypto_hash_sha256_update(state, bytes, length);
	else if (length)
		update(state, bytes, length);
}

void sha256_final(crypto_hash_sha256_state *state, unsigned char ret_hash[crypto_hash_sha256_BYTES])
{
	if (!HAS_INSTRUCTIONS)
		crypto_hash_sha256_final(state, ret_hash);
	else
		finish(state, ret_hash);
}

#else

void sha256_update(crypto_hash_sha256_state *state, const void *bytes, size_t length)
{
	crypto_hash_sha256_update(state, bytes, length);
}

void sha256_final(crypto_hash_sha256_state *state, unsigned char ret_hash[crypto_hash_sha256_BYTES])
{
	crypto_hash_sha256_final(state, ret_hash);
}

#endif

void sha256(unsigned char ret_hash[crypto_hash_sha256_BYTES], const void *bytes, size_t length)
{
	crypto_hash_sha256_state state;
	crypto_hash_sha256_init(&state);
	sha256_update(&state, bytes, length);
	sha256_final(&state, ret_hash);
}

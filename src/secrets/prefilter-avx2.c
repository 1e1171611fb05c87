/* The search for AVX2: 32 places at a time, by shuffles. Compiled for any x86-64; called only where the processor has
 * it. */
#include "secrets/prefilter.h"

#ifdef __x86_64__
#include <immintrin.h>

#include "base/cleanup.h"

#define AVX2 __attribute__((target("avx2")))

struct tables {
	__m256i low[PREFILTER_BYTES], high[PREFILTER_BYTES];
};

/* The buckets that may fit for each of the 32 places from `bytes` on. Reads three bytes beyond them. */
AVX2 static inline __m256i fits(const struct tables *tables, const unsigned char *bytes)
{
	const __m256i nibble = _mm256_set1_epi8(15);
	__m256i all = _mm256_set1_epi8(-1);
#pragma GCC unroll 4
	for (int i = 0; i < PREFILTER_BYTES; i++) {
		__m256i block = _mm256_loadu_si256((const __m256i *)(const void *)(bytes + i));
		__m256i low = _mm256_and_si256(block, nibble);
		__m256i high = _mm256_and_si256(_mm256_srli_epi16(block, 4), nibble);
		all = _mm256_and_si256(all, _mm256_and_si256(_mm256_shuffle_epi8(tables->low[i], low),
		                                             _mm256_shuffle_epi8(tables->high[i], high)));
	}
	return all;
}

/* One of the places in `block` that really fits, or 32. */
AVX2 static size_t confirm(const struct prefilter *filter, const unsigned char *bytes, __m256i block,
                           uint8_t *ret_buckets)
{
	uint32_t places = ~(uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(block, _mm256_setzero_si256()));
	for (; places; places &= places - 1) {
		size_t i = (size_t)__builtin_ctz(places);
		uint8_t hit = filter->exact[0][bytes[i]] & filter->exact[1][bytes[i + 1]] &
		              filter->exact[2][bytes[i + 2]] & filter->exact[3][bytes[i + 3]];
		if (hit) {
			*ret_buckets = hit;
			return i;
		}
	}
	return 32;
}

AVX2 size_t prefilter_next_avx2(const struct prefilter *filter, const unsigned char *bytes, size_t length, size_t from,
                                uint8_t *ret_buckets)
{
	struct tables tables uncleared;
	for (int i = 0; i < PREFILTER_BYTES; i++) {
		tables.low[i] =
			_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)filter->low[i]));
		tables.high[i] =
			_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)filter->high[i]));
	}
	size_t at = from;
	for (; at + 64 + PREFILTER_BYTES - 1 <= length; at += 64) {
		__m256i first = fits(&tables, bytes + at), second = fits(&tables, bytes + at + 32);
		__m256i either = _mm256_or_si256(first, second);
		if (__builtin_expect(_mm256_testz_si256(either, either), 1))
			continue;
		size_t place = confirm(filter, bytes + at, first, ret_buckets);
		if (place < 32)
			return at + place;
		place = confirm(filter, bytes + at + 32, second, ret_buckets);
		if (place < 32)
			return at + 32 + place;
	}
	return prefilter_next_portable(filter, bytes, length, at, ret_buckets);
}

/* A bit for each of 32 bytes that is in the alphabet. A byte's upper half has one of five bits, its lower half those
 * that it is in the alphabet with. */
AVX2 static inline uint32_t alphabet_mask(const unsigned char *bytes)
{
	const __m256i nibble = _mm256_set1_epi8(15);
	const __m256i high =
		_mm256_broadcastsi128_si256(_mm_setr_epi8(0, 0, 1, 2, 4, 8, 4, 16, 0, 0, 0, 0, 0, 0, 0, 0));
	const __m256i low =
		_mm256_broadcastsi128_si256(_mm_setr_epi8(26, 30, 30, 30, 30, 30, 30, 30, 30, 30, 28, 5, 4, 5, 4, 13));
	__m256i block = _mm256_loadu_si256((const __m256i *)(const void *)bytes);
	__m256i fits =
		_mm256_and_si256(_mm256_shuffle_epi8(low, _mm256_and_si256(block, nibble)),
	                         _mm256_shuffle_epi8(high, _mm256_and_si256(_mm256_srli_epi16(block, 4), nibble)));
	return ~(uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(fits, _mm256_setzero_si256()));
}

/* 64 places at a time, of which a run may begin at the first 49. */
AVX2 size_t run_next_avx2(const unsigned char *bytes, size_t length, size_t from)
{
	for (; from + 64 <= length; from += 64 - RUN_LENGTH + 1) {
		uint64_t mask = alphabet_mask(bytes + from) | (uint64_t)alphabet_mask(bytes + from + 32) << 32;
		mask &= mask >> 1;
		mask &= mask >> 2;
		mask &= mask >> 4;
		mask &= mask >> 8;
		if (mask)
			return from + (size_t)__builtin_ctzll(mask);
	}
	return run_next_portable(bytes, length, from);
}
#else
/* Never called: prefilter_has_avx2() is false. */
size_t prefilter_next_avx2(const struct prefilter *filter, const unsigned char *bytes, size_t length, size_t from,
                           uint8_t *ret_buckets)
{
	return prefilter_next_portable(filter, bytes, length, from, ret_buckets);
}

size_t run_next_avx2(const unsigned char *bytes, size_t length, size_t from)
{
	return run_next_portable(bytes, length, from);
}
#endif

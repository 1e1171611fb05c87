/* The tables, the portable search, and the choice between it and the one for AVX2: see prefilter.h. */
#include "secrets/prefilter.h"

#if defined(__x86_64__) && __has_include(<sys/platform/x86.h>)
#include <sys/platform/x86.h>
#define HAS_AVX2 CPU_FEATURE_ACTIVE(AVX2)       /* what libc found at the start: CPUID is slow in a virtual machine */
#elif defined(__x86_64__)
#define HAS_AVX2 __builtin_cpu_supports("avx2")
#else
#define HAS_AVX2 false
#endif

static void add(struct prefilter *filter, size_t position, unsigned char byte, unsigned bucket)
{
	uint8_t bit = (uint8_t)(1u << bucket);
	filter->exact[position][byte] |= bit;
	filter->low[position][byte & 15] |= bit;
	filter->high[position][byte >> 4] |= bit;
}

void prefilter_add(struct prefilter *filter, const char *pattern, unsigned bucket)
{
	for (size_t i = 0; i < PREFILTER_BYTES; i++, pattern++) {
		if (*pattern != '[') {
			add(filter, i, (unsigned char)*pattern, bucket);
			continue;
		}
		for (pattern++; *pattern != ']'; pattern++) {
			unsigned first = (unsigned char)*pattern, last = first;
			if (pattern[1] == '-' && pattern[2] != ']') {
				last = (unsigned char)pattern[2];
				pattern += 2;
			}
			for (unsigned byte = first; byte <= last; byte++)
				add(filter, i, (unsigned char)byte, bucket);
		}
	}
}

void prefilter_add_bytes(struct prefilter *filter, const unsigned char *bytes, unsigned bucket)
{
	for (size_t i = 0; i < PREFILTER_BYTES; i++)
		add(filter, i, bytes[i], bucket);
}

size_t prefilter_next_portable(const struct prefilter *filter, const unsigned char *bytes, size_t length, size_t from,
                               uint8_t *ret_buckets)
{
	for (size_t i = from; i + PREFILTER_BYTES <= length; i++) {
		uint8_t hit = filter->exact[0][bytes[i]] & filter->exact[1][bytes[i + 1]];
		if (!hit)
			continue;
		hit &= filter->exact[2][bytes[i + 2]] & filter->exact[3][bytes[i + 3]];
		if (hit) {
			*ret_buckets = hit;
			return i;
		}
	}
	return length;
}

bool prefilter_has_avx2(void)
{
	return HAS_AVX2;
}

size_t prefilter_next(const struct prefilter *filter, const unsigned char *bytes, size_t length, size_t from,
                      bool is_near, uint8_t *ret_buckets)
{
#ifdef __x86_64__
	if (length - from >= 128 && prefilter_has_avx2()) {
		if (!is_near)
			return prefilter_next_avx2(filter, bytes, length, from, ret_buckets);
		/* The tables of the faster search need not be loaded for it. */
		size_t near = from + 16 + PREFILTER_BYTES - 1,
		       place = prefilter_next_portable(filter, bytes, near, from, ret_buckets);
		return place < near ? place : prefilter_next_avx2(filter, bytes, length, from + 16, ret_buckets);
	}
#else
	(void)is_near;
#endif
	return prefilter_next_portable(filter, bytes, length, from, ret_buckets);
}

static const bool in_alphabet[256] = {
	['A' ... 'Z'] = true, ['a' ... 'z'] = true, ['0' ... '9'] = true,
	['+'] = true, ['-'] = true, ['/'] = true, ['_'] = true,
};

bool run_has(unsigned char byte)
{
	return in_alphabet[byte];
}

/* A run has a byte at every RUN_LENGTH-th place: it is looked for backwards from there. */
size_t run_next_portable(const unsigned char *bytes, size_t length, size_t from)
{
	while (from + RUN_LENGTH <= length) {
		size_t at = from + RUN_LENGTH;
		while (at > from && in_alphabet[bytes[at - 1]])
			at--;
		if (at == from)
			return from;
		from = at;
	}
	return length;
}

size_t run_next(const unsigned char *bytes, size_t length, size_t from)
{
#ifdef __x86_64__
	if (length - from >= 64 && prefilter_has_avx2())
		return run_next_avx2(bytes, length, from);
#endif
	return run_next_portable(bytes, length, from);
}

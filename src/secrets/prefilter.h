/* Finds the places where a secret may stand, in one pass over the bytes, for all kinds at once.
 *
 * Each pattern is four sets of bytes, and belongs to one of eight buckets. A place is reported with the buckets for
 * which all four bytes there fit; the check behind a pattern decides. The portable search looks up four tables of 256
 * entries. The one for AVX2 looks up the two halves of 32 bytes at a time in tables of 16 entries, which lets through
 * a few more, and asks the larger tables about those: both report the same places. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PREFILTER_BYTES 4
#define PREFILTER_BUCKETS 8

struct prefilter {
	uint8_t exact[PREFILTER_BYTES][256];
	uint8_t low[PREFILTER_BYTES][16], high[PREFILTER_BYTES][16];
};

/* Adds `pattern`, four bytes or sets in brackets as in kinds.def, to a bucket. */
void prefilter_add(struct prefilter *filter, const char *pattern, unsigned bucket);
/* Adds four bytes as they are. */
void prefilter_add_bytes(struct prefilter *filter, const unsigned char *bytes, unsigned bucket);

/* The first place at or after `from` where a pattern fits, or `length`. `is_near`: it is likely to be within a few
 * bytes, which changes nothing but the time. */
size_t prefilter_next(const struct prefilter *filter, const unsigned char *bytes, size_t length, size_t from,
                      bool is_near, uint8_t *ret_buckets);
/* The two ways behind it, for tests and measurements. The second may be called only where prefilter_has_avx2(). */
size_t prefilter_next_portable(const struct prefilter *filter, const unsigned char *bytes, size_t length, size_t from,
                               uint8_t *ret_buckets);
size_t prefilter_next_avx2(const struct prefilter *filter, const unsigned char *bytes, size_t length, size_t from,
                           uint8_t *ret_buckets);
bool prefilter_has_avx2(void);

/* The first run of at least RUN_LENGTH bytes of the base64 alphabet, standard or URL-safe, at or after `from`;
 * `length` if none. */
#define RUN_LENGTH 16
size_t run_next(const unsigned char *bytes, size_t length, size_t from);
size_t run_next_portable(const unsigned char *bytes, size_t length, size_t from);
size_t run_next_avx2(const unsigned char *bytes, size_t length, size_t from);
/* Is it in the alphabet? */
bool run_has(unsigned char byte);

/* Small questions about text: units, paths, nearest spelling. No side effects. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;

/* "2G", "512M", "64k", "100" (bytes); powers of 1024; an optional "B" or "iB" follows. */
bool text_parse_size(const char *text, uint64_t *ret_bytes);
/* "60s", "1500ms", "2m", "1h", "90" (seconds). */
bool text_parse_duration(const char *text, uint64_t *ret_ms);
/* A decimal number up to `max`. */
bool text_parse_number(const char *text, uint64_t max, uint64_t *ret_number);

/* The same back, in the largest unit that needs no fraction. */
#define TEXT_AMOUNT_SIZE 32
/* A share of one processor: "150" or "150%". */
bool text_parse_percent(const char *text, uint64_t *ret_percent);
void text_format_size(uint64_t bytes, char ret_text[TEXT_AMOUNT_SIZE]);
void text_format_duration(uint64_t ms, char ret_text[TEXT_AMOUNT_SIZE]);

/* Of a command's input, with why: said by the library, and by the daemon for whom its client reads it. */
#define TEXT_INPUT_CUT "standard input could not be read to its end: %s"

/* The candidate closest to `word`, or NULL if none is close enough to suggest: half of the word is right. */
const char *text_nearest(const char *word, const char *const *candidates, size_t count);

/* True if there is a byte below 0x20 or 0x7f. */
bool text_has_control(const char *text);

/* Of ASCII only, whatever the locale. */
static inline char text_lower(char byte)
{
	return byte >= 'A' && byte <= 'Z' ? (char)(byte + ('a' - 'A')) : byte;
}

/* FNV-1a, continued from `hash`; the initial value is TEXT_HASH. For tables; no defence against chosen keys. */
#define TEXT_HASH UINT64_C(1469598103934665603)
static inline uint64_t text_hash(uint64_t hash, const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)text[i]) * UINT64_C(1099511628211);
	return hash;
}

/* Resolves ".", "..", doubled and trailing slashes by text alone. `path` must be absolute; NULL if it is not, or if
 * memory is short. */
char *path_normalise(struct arena *arena, const char *path);

/* Is it absolute and as path_normalise() would leave it? */
bool path_is_normal(const char *path);

/* Component-wise: is `path` the same as `root` or beneath it? Both normalised: "/data/ab" is not beneath "/data/a". */
bool path_within(const char *path, const char *root);

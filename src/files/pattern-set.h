/* Sets of bytes and characters in a pattern: `[a-z]`, `\d`, `\x41`. */
#pragma once
#include "files/pattern-parts.h"

#define SET_CHARACTERS_MAX 64

struct set_reading {
	const char *at, *end;           /* after the bracket; then after the one that closes it */
	struct pattern_set set;         /* of ASCII */
	bool negated;
	bool beyond;                    /* and every character beyond ASCII: `\D` in a set */
	struct {
		char bytes[4];
		size_t length;
	} characters[SET_CHARACTERS_MAX];       /* beyond ASCII */
	size_t character_count;
};

/* NULL, or what is wrong. */
const char *set_read(struct set_reading *reading);
/* Reads what follows a backslash, as the bytes of one character; `at` then points behind it. NULL, or what is wrong. */
const char *set_read_escape(const char **at, const char *end, char ret_bytes[4], size_t *ret_length);
/* `\d` and its like; *ret_beyond: also what is beyond ASCII. */
bool set_of_class(char letter, struct pattern_set *ret_set, bool *ret_beyond);

static inline void set_add(struct pattern_set *set, unsigned char byte)
{
	set->bits[byte >> 6] |= UINT64_C(1) << (byte & 63);
}
/* Both cases of every letter of ASCII. */
void set_fold(struct pattern_set *set);
void set_negate_ascii(struct pattern_set *set);
/* Bytes that may be at place `at` in a character of `length` bytes; of length 1: what begins none. */
void set_of_utf8(struct pattern_set *ret_set, unsigned length, unsigned at);
/* Its only byte, or -1. */
int set_single(const struct pattern_set *set);

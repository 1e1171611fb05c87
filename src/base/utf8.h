/* Where UTF-8 sequences begin and end. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* The length of the valid sequence at the start of `bytes`, or 0 if there is none (overlong forms, surrogates and
 * what is beyond U+10FFFF are not valid). `length` must be at least 1. */
size_t utf8_sequence(const char *bytes, size_t length);

/* How many bytes at the end of `bytes` begin a sequence that is cut off there; 0 if the end is whole (or not UTF-8). */
size_t utf8_cut_tail(const char *bytes, size_t length);

/* How many bytes at the start of `bytes` continue a sequence that began before; at most 3. */
size_t utf8_cut_head(const char *bytes, size_t length);

/* Is all of it valid? */
bool utf8_valid(const char *bytes, size_t length);

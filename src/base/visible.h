/* Showing text that others wrote. A terminal must not obey it, every character of it must be seen, in its order, and
 * different texts must be written differently.
 *
 * Letters of one script that look like those of another (Latin a, Cyrillic U+0430) are shown as they are: two texts
 * that are written differently may look alike. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct visible {
	size_t length;          /* in bytes, at least 1 */
	uint32_t code;          /* the character, or the one byte that is not UTF-8 */
	bool is_utf8;
	bool is_plain;          /* may be shown as it is: assigned, visible by itself, set from left to right */
};

/* The character `text` begins with; `left` is at least 1. */
struct visible visible_next(const char *text, size_t left);
/* May it be shown as part of a program's own output, on a terminal? Letters and marks of every script may. */
bool visible_is_output(const struct visible *seen);

/* For a terminal: lines and tabs as they are, and as an escape what it might obey. */
void visible_print(FILE *out, const char *text, size_t length);

/* As a shell's word: bare, 'quoted', or $'escaped' where a character is not plain. No two texts are written the same
 * way. */
void visible_quote(FILE *out, const char *text);

/* JSON that is valid already, with every character that is not plain as \uXXXX: the same value, safe to print. To be
 * free()d; NULL when memory is short. */
char *visible_json(const char *json);

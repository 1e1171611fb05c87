/* Showing text that others wrote. A terminal must not obey it, and it must not look like something else than it is. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct visible {
	size_t length;          /* in bytes, at least 1 */
	uint32_t code;          /* the character, or the one byte that is not UTF-8 */
	bool is_utf8;
	bool is_plain;          /* may be shown as it is: no control, nothing invisible, nothing that moves its neighbours */
};

/* The character `text` begins with; `left` is at least 1. */
struct visible visible_next(const char *text, size_t left);

/* As a shell's word: bare, 'quoted', or $'escaped' where a character is not plain. Two texts never look the same. */
void visible_quote(FILE *out, const char *text);

/* JSON that is valid already, with every character that is not plain as \uXXXX: the same value, safe to print. To be
 * free()d; NULL when memory is short. */
char *visible_json(const char *json);

/* Regular expressions that take time in proportion to the text, whatever the pattern and the text: all ways to match
 * are followed at once, none is tried again. So there are no back references and no look-around, as in RE2 and
 * ripgrep, and no limit that could end a search early. Of bytes; a character of UTF-8 is one to `.` and to a set.
 *
 * `.` `[a-z]` `[^a-z]` `[[:alpha:]]` `\d \w \s \D \W \S` `\b \B` `^ $` `( ) (?: ) | * + ? {m,n}` (a `?` after them
 * changes nothing: only whether there is a match is told), `\t \n \r \f \v \0 \xHH \x{HHHH}`, `(?i)` at the beginning.
 * A set may list characters beyond ASCII, but no range of them. Ignoring case is for ASCII. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

struct arena;
struct cordon_error;

#define PATTERN_LENGTH_MAX 1024
#define PATTERN_STEPS_MAX 4096          /* of the compiled pattern */
#define PATTERN_REPEAT_MAX 1000
#define PATTERN_DEPTH_MAX 64            /* of groups in groups */

enum pattern_option { PATTERN_FOLD_CASE = 1 << 0, PATTERN_LITERAL = 1 << 1 };

struct pattern;
/* The arena's. Not to be used by two threads at once. Refused as `invalid_request`, with the place in the pattern. */
int pattern_compile(struct arena *arena, const char *text, size_t length, unsigned options,
                    struct pattern **ret_pattern, struct cordon_error *err) must_check;
/* Does it match anywhere in the line, which has no newline in it? */
bool pattern_match(struct pattern *pattern, const char *line, size_t length);
/* The time is in proportion, and may still be long: `is_late` is asked now and then while a line is matched, and where
 * it says so, that line and each one after it matches nothing. */
void pattern_set_end(struct pattern *pattern, bool (*is_late)(const void *arg), const void *arg);
bool pattern_was_ended(const struct pattern *pattern);
/* Bytes that every match has in it, as they stand; NULL: none are known. */
const char *pattern_required(const struct pattern *pattern, size_t *ret_length);

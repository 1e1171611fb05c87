/* Replacing text in a text; data in, data out. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/error.h"

struct edit {
	const char *old, *new;
	size_t old_length, new_length;
	bool all;                       /* every match; otherwise there must be exactly one */
};

struct edited {
	char *data;                     /* to be free()d */
	size_t length;
	size_t count;                   /* of replacements */
	size_t line;                    /* of the first */
};

#define EDIT_RESULT_MAX (64u << 20)

/* In a text whose lines end in CRLF, a line end in `old` and `new` stands for that one. Refused, with `subject` in the
 * error: no match (`not_found`), more than one without `all`, nothing to replace or to change (`invalid_request`), a
 * result that is too large (`limit_exceeded`). Matches that overlap are more than one. */
int edit_apply(const char *text, size_t length, const struct edit *edit, const char *subject, struct edited *ret_edited,
               struct cordon_error *err) must_check;

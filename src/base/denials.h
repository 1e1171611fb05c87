/* What a command was denied, for its result and its result row. Bounded: beyond the limit, the last entry counts the
 * rest. */
#pragma once
#include <stddef.h>

#include "base/cleanup.h"
#include "cordon.h"

struct arena;

struct denials {
	struct cordon_denial *items;
	size_t count;
	size_t unlisted;                        /* denials that the last entry stands for */
	char unlisted_note[64];                 /* the note of that entry */
};

/* Copies the texts, cut to a bounded length. -1 when memory is short. */
int denials_add(struct denials *denials, struct arena *arena, enum cordon_wall wall, const char *what, const char *note,
                const char *grant) must_check;

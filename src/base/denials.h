/* What a command was denied, for its result and its result row. Bounded: beyond the limit, the last entry counts the
 * rest. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "cordon-internal.h"

struct arena;

struct denials {
	struct cordon_denial *items;
	size_t count;
	size_t unlisted;                        /* denials that are summed up in the last entry */
	char unlisted_note[64];                 /* the note of that entry */
};

/* Copies the texts, cut to a bounded length. -1 when memory is short. */
int denials_add(struct denials *denials, struct arena *arena, enum cordon_wall wall, const char *what, const char *note,
                const char *grant) must_check;

/* Whether an entry from the index `from` on is of one of the walls from `first` to `last`. */
bool denials_have(const struct denials *denials, size_t from, enum cordon_wall first, enum cordon_wall last);

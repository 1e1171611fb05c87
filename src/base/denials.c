/* What a command was denied: see denials.h. */
#include "base/denials.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"

#define DENIALS_MAX 256
#define DENIAL_WHAT_MAX 4096
#define DENIAL_NOTE_MAX 256

int denials_add(struct denials *denials, struct arena *arena, enum cordon_wall wall, const char *what, const char *note,
                const char *grant)
{
	bool last = denials->count >= DENIALS_MAX - 1;
	if (!denials->items)
		denials->items = arena_alloc(arena, DENIALS_MAX * sizeof(*denials->items));
	if (!denials->items)
		return -1;
	struct cordon_denial *denial = &denials->items[last ? DENIALS_MAX - 1 : denials->count];
	*denial = (struct cordon_denial){ .wall = cordon_wall_name(wall) };
	denial->what = last ? "and more" : arena_printf(arena, "%.*s", DENIAL_WHAT_MAX, what);
	denial->note = last ? denials->unlisted_note : arena_printf(arena, "%.*s", DENIAL_NOTE_MAX, note);
	denial->grant = last ? "" : arena_printf(arena, "%.*s", DENIAL_NOTE_MAX, grant);
	if (last)
		snprintf(denials->unlisted_note, sizeof(denials->unlisted_note), "%zu that are not listed",
		         ++denials->unlisted);
	denials->count = last ? DENIALS_MAX : denials->count + 1;
	return denial->what && denial->note && denial->grant ? 0 : -1;
}

bool denials_have(const struct denials *denials, size_t from, enum cordon_wall first, enum cordon_wall last)
{
	for (size_t i = from; i < denials->count; i++)
		for (enum cordon_wall wall = first; wall <= last; wall++)
			if (!strcmp(denials->items[i].wall, cordon_wall_name(wall)))
				return true;
	return false;
}

/* A growing list of places: see place.h. */
#include "base/place.h"

#include <string.h>

#include "base/arena.h"

int places_add(struct arena *arena, struct places *places, const struct place *place)
{
	if (places->count == places->capacity) {
		size_t capacity = places->capacity ? places->capacity * 2 : 16;
		struct place *items = arena_alloc(arena, capacity * sizeof(*items));
		if (!items)
			return -1;
		if (places->count)
			memcpy(items, places->items, places->count * sizeof(*items));
		places->items = items;
		places->capacity = capacity;
	}
	places->items[places->count++] = *place;
	return 0;
}

/* Places: see place.h. */
#include "base/place.h"

#include <string.h>

#include "base/arena.h"
#include "base/text.h"

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

int place_add_names(struct arena *arena, struct strings *list, const struct place *place)
{
	return strings_add(arena, list, place->path) < 0 ||
	       (place->alias && strings_add(arena, list, place->alias) < 0) ? -1 : 0;
}

bool place_is_within(const char *path, const struct place *root, const struct places *more)
{
	bool within = path_within(path, root->path);
	for (size_t i = 0; i < more->count && !within; i++)
		within = path_within(path, more->items[i].path);
	return within;
}

/* See compare.h. */
#include "paths/index/compare.h"

#include <string.h>

#include "paths/index/names.h"

#define STEPS_MAX (256 * 1024)

/* The match of the same name and kind among `count` from `first` on, looking from where the last one was found: the
 * order is mostly the same. NULL where there is none, or it takes too long. */
static const struct names_match *find_same(const struct names_table *table, size_t first, size_t count,
                                           const struct names_match *like, size_t *near, size_t *steps)
{
	for (size_t i = 0; i < count && *steps < STEPS_MAX; i++, ++*steps) {
		size_t at = (*near + i) % count;
		const struct names_match *match = &table->matches[first + at];
		if (match->directory != like->directory || match->name_length != like->name_length ||
		    match->kind != like->kind ||
		    memcmp(table->pool + match->name, table->pool + like->name, like->name_length))
			continue;
		*near = at + 1;
		return match;
	}
	return NULL;
}

bool names_masked_is_lost(const struct names_table *table)
{
	size_t near = 0, steps = 0, fresh = table->match_count - table->loaded_matches;
	for (size_t i = 0; i < table->loaded_matches; i++) {
		const struct names_match *old = &table->matches[i];
		if (old->kind != NAME_MASKED || names_table_match_counts(table, i))
			continue;
		if (table->directories[old->directory].flags & (NAMES_DEAD | NAMES_REPLACED) ||
		    !find_same(table, table->loaded_matches, fresh, old, &near, &steps))
			return true;
	}
	return false;
}

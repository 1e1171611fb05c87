/* See names-compare.h.
 *
 * A search at a command's end is bounded, so it may leave out a directory in which the command made something. A later search, before
 * another command, finds that and must not take it for what its owner made. So each directory that was left out is noted, until a
 * search that judges looks at it, and what comes to light there until then is late. */
#include "session/names-compare.h"

#include <string.h>

#define STEPS_MAX (256 * 1024)

/* The match of the same name and kind among `count` from `first` on, looking from where the last one was found: the order is mostly
 * the same. NULL where there is none, or it takes too long. */
static const struct names_match *find_same(const struct names_table *table, size_t first, size_t count,
                                           const struct names_match *like, size_t *near, size_t *steps)
{
	for (size_t i = 0; i < count && *steps < STEPS_MAX; i++, ++*steps) {
		size_t at = (*near + i) % count;
		const struct names_match *match = &table->matches[first + at];
		if (match->directory != like->directory || match->name_length != like->name_length || match->kind != like->kind ||
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

bool names_compare_late(struct names_walk *walk)
{
	struct names_table *table = &walk->table;
	size_t near = 0, steps = 0, loaded = table->loaded_matches;
	bool was_late = false;
	for (size_t i = 0; i < table->match_count; i++) {
		struct names_match *match = &table->matches[i];
		if (walk->judges) {
			was_late |= match->late;
			match->late = false;
		} else if (i >= loaded && (match->kind == NAME_PROTECTED || match->kind == NAME_LINK)) {
			const struct names_match *old = find_same(table, 0, loaded, match, &near, &steps);
			match->late = old ? old->late : names_walk_was_left_out(walk, match->directory);
		}
	}
	return was_late;
}

/* What has never been looked into has nothing new in it. */
static bool is_left_out(const struct names_walk *walk, size_t directory)
{
	const struct names_directory *at = &walk->table.directories[directory];
	if (!walk->judges)
		return names_walk_was_left_out(walk, (uint32_t)directory);
	return !(at->flags & (NAMES_CHECKED | NAMES_PARTIAL)) && at->inode;
}

bool names_note_left_out(struct names_walk *walk)
{
	bool any = false, was = false;
	for (size_t i = 0; i < walk->table.directory_count; i++) {
		struct names_directory *at = &walk->table.directories[i];
		bool left_out = is_left_out(walk, i);
		any |= left_out;
		was |= i < walk->table.loaded_directories && at->flags & NAMES_LEFT_OUT;
		at->flags = (uint16_t)(left_out ? at->flags | NAMES_LEFT_OUT : at->flags & ~NAMES_LEFT_OUT);
	}
	return was && !any;
}

uint32_t names_first_unjudged(const struct names_walk *walk)
{
	const struct names_table *table = &walk->table;
	bool any = false;
	if (!walk->judges)
		return walk->unjudged;
	for (size_t i = 0; i < table->directory_count; i++) {
		unsigned flags = table->directories[i].flags;
		any |= flags & NAMES_LEFT_OUT;
		if (flags & NAMES_LEFT_OUT && flags & NAMES_HOT)
			return i ? (uint32_t)i : 1;
	}
	return any ? (uint32_t)table->directory_count : 0;
}

/* What a search found, beside what was known before it. */
#pragma once
#include "session/names-walk.h"

/* A masked name that was known is not where it was. Said too often, it costs time only. */
bool names_masked_is_lost(const struct names_table *table);

/* Says of each protected name and link that was just read whether it is late (names.h). Where the search judges none is: true if one was. */
bool names_compare_late(struct names_walk *walk);

/* Says of each directory whether a search that judges has left it out. True: none is, and the file tells of some. */
bool names_note_left_out(struct names_walk *walk);

/* Of struct names_progress, where the file is not written anew. */
uint32_t names_first_unjudged(const struct names_walk *walk);

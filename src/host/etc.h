/* Which names of /etc the base view has: the table etc.def, and what sandbox.etc adds. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/cleanup.h"

/* The paths beneath `directory` ("/etc") that are there and listed, sorted, none within another. `extra` (or NULL) are
 * paths beneath /etc, of which one directly in it may be a glob. -1 when memory is short. */
int etc_find(struct arena *arena, const char *directory, const struct strings *extra,
             struct strings *ret_paths) must_check;

/* May sandbox.etc name this normalised path? NULL, or why not. */
const char *etc_refuses(const char *path);

/* The rows, for tests. */
struct etc_row {
	const char *name, *reason;
};
extern const struct etc_row etc_rows[];
extern const size_t etc_row_count;

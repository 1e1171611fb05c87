/* Which file a command's first word means, looked for outside the walls: for people, rules and manifests to judge. */
#pragma once
#include <stdbool.h>

#include "base/arena.h"
#include "base/place.h"

/* Whether one is found: its path as it really is, and how it is called (`alias`) where that differs. `path` is a PATH;
 * `cwd` is absolute. */
bool program_find(struct arena *arena, const char *name, const char *path, const char *cwd, struct place *ret_place);

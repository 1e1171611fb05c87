/* Which file a command's first word means, looked up outside the sandbox: for approvals, rules and manifests. */
#pragma once
#include <stdbool.h>

#include "base/arena.h"
#include "base/place.h"

/* Whether one is found: its path as it really is, and how it is called (`alias`) where that differs. `path` is a PATH;
 * `cwd` is absolute. */
bool program_find(struct arena *arena, const char *name, const char *path, const char *cwd, struct place *ret_place);

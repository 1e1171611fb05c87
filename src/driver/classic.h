/* Whether mounts are made with the new mount API or with mount(2) alone. */
#pragma once
#include "base/arena.h"
#include "run/launch.h"

/* Is any call of the new mount API missing, or refused by a filter? Found out once per process. */
bool classic_is_needed(void);
/* Sets root->classic, with room for the table of mounts that the child reads; 0, or -1 when memory is short. */
int classic_prepare(struct arena *arena, struct launch_root *root);

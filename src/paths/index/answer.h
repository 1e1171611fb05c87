/* The answer of a search: see names_find(). */
#pragma once
#include "paths/index/names.h"
#include "paths/index/walk.h"

/* `since_ns`: of struct names_keep. It has no effect where the filesystem does not change the change time of what is
 * moved. */
int names_answer(struct arena *arena, const struct names_walk *walk, int64_t since_ns, struct names *ret_names,
                 struct cordon_error *err) must_check;

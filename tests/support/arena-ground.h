/* An arena for what one case makes. */
#pragma once
#include "base/arena.h"

static struct arena arena;

static inline int free_arena(void **state)
{
	(void)state;
	arena_free(&arena);
	return 0;
}

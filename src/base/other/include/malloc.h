/* How much an allocator keeps is its own matter. */
#pragma once
#include <stdlib.h>

#define M_TRIM_THRESHOLD 0
#define M_TOP_PAD 0
static inline int mallopt(int setting, int value)
{
	(void)setting;
	(void)value;
	return 1;
}

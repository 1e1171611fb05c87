/* A clock that tests set: the linker prefers this time(). */
#pragma once
#include <time.h>

extern time_t clock_offset;

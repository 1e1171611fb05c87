/* Could a file of this mode be run? Where there is no bit for it, any could: there git runs every hook that it
 * finds. */
#pragma once
#include <stdbool.h>
#include <sys/types.h>

static inline bool mode_may_run(mode_t mode)
{
#ifdef SYSTEM_RUNS_ANY_FILE
	(void)mode;
	return true;
#else
	return mode & 0111;
#endif
}

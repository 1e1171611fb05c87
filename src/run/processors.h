/* Where processes run. Two that work side by side are faster than one after the other only where a processor is free for the second:
 * who is sent to one that is taken waits there for milliseconds, though this one falls idle meanwhile. */
#pragma once
#include <stdbool.h>

/* Is there, besides this one, a processor that nobody wants just now? False, too, where the kernel does not tell. */
bool processors_one_is_free(void);
/* The same, and nobody is on it for a moment, either. */
bool processors_one_is_idle(void);
/* Do more want to run than there are processors? Who is begun then waits for its turn, wherever it is. */
bool processors_are_short(void);

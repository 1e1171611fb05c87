/* How much of a stream is handed on while the command runs. A terminal is shown everything as it comes, and so is
 * anything else where there is no limit. Where there is one, exactly what the library keeps is handed on: the head as
 * it comes, and after the end the marker and the tail. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct portion {
	bool is_terminal;
	uint64_t live_limit;    /* how much is handed on while the command runs; UINT64_MAX: everything */
	uint64_t accepted;      /* how much was */
};

/* `kept` is how much of the stream the library keeps; UINT64_MAX: there is no limit. */
void portion_open(struct portion *portion, bool is_terminal, uint64_t kept);
/* The same, where that is known only later, and nothing was handed on yet. */
void portion_keep(struct portion *portion, uint64_t kept);
/* So many of the next `length` bytes are to be handed on now. */
size_t portion_live(struct portion *portion, size_t length);
/* Everything is handed on as it comes. */
static inline bool portion_is_whole(const struct portion *portion)
{
	return portion->live_limit == UINT64_MAX;
}

/* So many bytes at the end of what the library kept were not handed on yet. */
size_t portion_rest(const struct portion *portion, size_t length);

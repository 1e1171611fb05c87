/* How much of a stream is handed on while the command runs. A terminal is shown everything as it comes. Anything else gets
 * exactly what the library keeps: the head as it comes, and after the end the marker and the tail. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct portion {
	bool is_terminal;
	uint64_t live_limit;    /* how much is handed on while the command runs */
	uint64_t accepted;      /* how much was */
};

/* `kept` is how much of the stream the library keeps. */
void portion_open(struct portion *portion, bool is_terminal, uint64_t kept);
/* The same, where that is known only later, and nothing was handed on yet. */
void portion_keep(struct portion *portion, uint64_t kept);
/* So many of the next `length` bytes are to be handed on now. */
size_t portion_live(struct portion *portion, size_t length);
/* So many bytes at the end of what the library kept were not handed on yet. */
size_t portion_rest(const struct portion *portion, size_t length);

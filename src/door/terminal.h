/* The caller's terminal, while a command has one of its own. */
#pragma once
#include <stdbool.h>

/* Is standard input a terminal that this process may read now, without being stopped for it? */
bool terminal_is_ours(void);
/* Lets every key through to the command, until terminal_restore() or the end of the process, however it ends. */
void terminal_raw(void);
void terminal_restore(void);
/* The size of the terminal, or of an ordinary one where there is none. */
void terminal_size(unsigned short *ret_rows, unsigned short *ret_columns);

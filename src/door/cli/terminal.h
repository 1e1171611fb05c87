/* The caller's terminal, while it is used otherwise than its owner left it. */
#pragma once
#include <stdbool.h>
#include <termios.h>

/* Standard input is a terminal: may this process read it now, without being stopped for it? */
bool terminal_is_ours(void);
/* tcsetattr(); what was before the first change comes back by terminal_restore() or at the end of the process, however
 * it ends. */
void terminal_set(int fd, const struct termios *wanted, int when);
void terminal_restore(void);
/* Lets every key through to the command. */
void terminal_raw(void);
/* The size of the terminal, or of an ordinary one where there is none. */
void terminal_size(unsigned short *ret_rows, unsigned short *ret_columns);

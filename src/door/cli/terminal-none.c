/* Where cordon leaves the caller's terminal alone: see terminal.h. */
#include "door/cli/terminal.h"

bool terminal_is_ours(void)
{
	return false;
}

void terminal_set(int fd, const struct termios *wanted, int when)
{
	(void)fd;
	(void)wanted;
	(void)when;
}

void terminal_restore(void)
{
}

void terminal_raw(void)
{
}

void terminal_size(unsigned short *ret_rows, unsigned short *ret_columns)
{
	*ret_rows = 24;
	*ret_columns = 80;
}

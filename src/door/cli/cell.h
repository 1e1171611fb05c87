/* Cells of a table, with text that others wrote. */
#pragma once
#include <stddef.h>

/* Escaped, and cut to so many characters (0: not at all). To be free()d; NULL when memory is short. */
char *cell_make(const char *text, size_t most);
/* In characters. */
size_t cell_width(const char *text);
/* The same, printed and filled up with spaces to `width`. Returns how many columns the text took. */
size_t cell_print(const char *text, size_t most, size_t width);

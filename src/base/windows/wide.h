/* UTF-8 and UTF-16. */
#pragma once
#include <stddef.h>
#include <stdio.h>
#include <wchar.h>

/* Both end what they write with NUL. 0, or -1 and errno: EILSEQ, ENAMETOOLONG. */
int text_to_wide(const char *text, wchar_t *ret_wide, size_t size);
int wide_to_text(const wchar_t *wide, char *ret_text, size_t size);

/* A stream of a file that nobody else can open and that goes when it is closed; or NULL. */
FILE *system_temporary(void);

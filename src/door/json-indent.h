/* Laying out JSON that is already valid. */
#pragma once
#include <stdbool.h>
#include <stdio.h>

/* Prints it with one member a line, or all on one line; ends it with a newline. */
void json_indent(FILE *out, const char *json, bool one_line);

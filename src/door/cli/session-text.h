/* Sessions as text, from the library's JSON. On standard output. */
#pragma once
#include <jansson.h>

/* One, in full. */
void session_print(const json_t *session);
/* All, a line each. */
void session_print_list(const json_t *list);

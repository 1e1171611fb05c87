/* Sessions laid out for people, from the library's JSON. On standard output. */
#pragma once

/* One, in full. */
void session_print(const char *session);
/* All, a line each. */
void session_print_list(const char *list);

/* The ledger as text. The contents of rows are untrusted: they are escaped. */
#pragma once
#include <jansson.h>

/* One line: when, what, which session, which program, and how it came out. `text` is one JSON object. */
void audit_print_row(const char *text);
/* That line, and then the whole row, member by member. */
void audit_print_whole(const char *text);
/* What verify found. */
void audit_print_report(const json_t *report);

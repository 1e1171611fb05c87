/* The ledger for people. What rows hold was written by others: it comes out escaped. */
#pragma once

/* One line: when, what, which session, which program, and how it came out. `row` is one JSON object. */
void audit_print_row(const char *row);
/* That line, and then the whole row, member by member. */
void audit_print_whole(const char *row);
/* What verify found. */
void audit_print_report(const char *report);

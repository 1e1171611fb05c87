/* Reading the ledger: the rows that meet a filter, in the order they were written, in bounded memory. Nothing is
 * written, and nothing is locked except briefly at the end.
 *
 * A line that is not a JSON object (torn, or edited by hand) is passed on as `{"row":"damaged",…}` with its position,
 * unless the filter has a condition other than time: its contents are unknown. */
#pragma once
#include "base/cleanup.h"
#include "cordon-internal.h"

/* A ledger that is not there has no rows. */
int ledger_read(const char *data_dir, const struct cordon_audit_filter *filter, cordon_row_fn fn, void *arg,
                struct cordon_error *err) must_check;

/* A place in the ledger as text: what is after the row that was read last. "" is the beginning. */
#define LEDGER_CURSOR_SIZE 64

/* The rows after `after`, or with NULL as above, and where the reading came to. `last` and `follow` go without `after`.
 * The last line is not read as long as it has no end. */
int ledger_read_from(const char *data_dir, const struct cordon_audit_filter *filter, const char *after,
                     cordon_row_fn fn, void *arg, char ret_next[LEDGER_CURSOR_SIZE],
                     struct cordon_error *err) must_check;
/* Where the next row will be. */
int ledger_end(const char *data_dir, char ret_next[LEDGER_CURSOR_SIZE], struct cordon_error *err) must_check;

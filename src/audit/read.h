/* Reading the ledger: rows that were asked for, in the order they were written, in bounded memory. Nothing is locked
 * but for a moment at the end, and nothing written.
 *
 * A line that is no JSON object (torn, or edited by hand) is handed on as `{"row":"damaged",…}` with its place,
 * unless a condition other than time leaves it out: nobody can say what it was. */
#pragma once
#include "base/cleanup.h"
#include "cordon.h"

/* A ledger that is not there has no rows. */
int ledger_read(const char *data_dir, const struct cordon_audit_filter *filter, cordon_row_fn fn, void *arg,
                struct cordon_error *err) must_check;

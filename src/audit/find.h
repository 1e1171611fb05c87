/* Whether a row is in the ledger, by its bytes alone: to find out what a process wrote before it was killed. */
#pragma once
#include <stdbool.h>

#include "base/cleanup.h"
#include "cordon-internal.h"

/* `kind` and `id` as audit_row_begin() writes them. Looks through all files, the newest first. */
int ledger_find(const char *data_dir, const char *kind, const char *id, bool *ret_found, struct cordon_error *err)
	must_check;

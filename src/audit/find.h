/* Whether a row is in the ledger, told from its bytes alone: for who has to know what a process that died had
 * written. */
#pragma once
#include <stdbool.h>

#include "base/cleanup.h"
#include "cordon.h"

/* `kind` and `id` as audit_row_begin() writes them. Looks through all files, the newest first. */
int ledger_find(const char *data_dir, const char *kind, const char *id, bool *ret_found, struct cordon_error *err)
	must_check;

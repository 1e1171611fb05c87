/* Is the ledger what was written? Every line of every file, the head, the signed head and the key, in one pass and
 * bounded memory; reads only, and needs no lock but for a moment. */
#pragma once
#include <stdbool.h>

#include "base/cleanup.h"
#include "cordon-internal.h"

struct json;

/* Writes an object with what was found: `intact`, `problems` (each with what, file, line and reason), counts, the
 * public key and both heads. An error only where it could not be looked at: what is missing or illegible is a
 * problem. */
int verify_ledger(const char *data_dir, struct json *json, bool *ret_intact, struct cordon_error *err) must_check;

/* Sessions and the ledger: every change of a session has a row of kind `session`, written before the change is. So a
 * row may tell of a change that a killed process did not come to make, but none is made untold. */
#pragma once
#include "base/cleanup.h"
#include "session/registry.h"

struct ledger;

/* What was done to the session, in one word: made, paused, resumed, ended, removed. The record as it will be. */
int session_row_write(struct ledger *ledger, const char *change, const struct session_record *record,
                      bool removes_workspace, struct cordon_error *err) must_check;

/* registry_open(), with the row that a new session has. */
int session_row_open(struct ledger *ledger, struct arena *arena, const char *data_dir, const char *id, const struct session_record *first,
                     struct session_record *ret_record, bool *ret_made, struct cordon_error *err) must_check;

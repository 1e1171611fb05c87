/* Sessions and the ledger: every change of a session has a row of kind `session`, written before the change is made.
 * So there may be a row of a change that a killed process did not make, but no change without a row. */
#pragma once
#include "base/cleanup.h"
#include "session/registry.h"

struct ledger;

/* What was done to the session, in one word: made, paused, resumed, ended, removed. The record as it will be. */
int session_row_write(struct ledger *ledger, const char *change, const struct session_record *record,
                      bool removes_workspace, struct cordon_error *err) must_check;

/* Ends the session if it has been without a command for as long as it may be: *ret_ended. One in use is not idle. */
int session_row_end_idle(struct ledger *ledger, const char *data_dir, const char *id, bool *ret_ended,
                         struct cordon_error *err) must_check;
/* Has it? By what the record says, and the time of its files. */
bool session_is_idle(const char *data_dir, const char *id, uint64_t idle_expiry_s);

/* registry_open(), with the row that a new session has. */
int session_row_open(struct ledger *ledger, struct arena *arena, const char *data_dir, const char *id,
                     const struct session_record *first, struct session_record *ret_record, bool *ret_made,
                     struct cordon_error *err) must_check;

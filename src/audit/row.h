/* Beginning and ending a row of the ledger, of whatever kind. */
#pragma once
#include "base/cleanup.h"
#include "cordon-internal.h"

struct json;
struct ledger;
struct ledger_room;

/* Begins the object with its kind, id (NULL: a new one), time and session (may be NULL). The caller may add keys before
 * audit_row_end() writes the row. */
void audit_row_begin(struct json *json, const char *kind, const char *id, const char *session_id);
int audit_row_end(struct json *json, struct ledger *ledger, struct cordon_error *err) must_check;
/* The same, if need be into the room that is reserved for such rows. */
int audit_row_end_in(struct json *json, struct ledger *ledger, struct ledger_room *room,
                     struct cordon_error *err) must_check;

/* The denial row of a refused call that is no command, such as `session new`. Stores the row's id and the step in
 * `err`. The session may be NULL. Returns -1. */
int audit_refusal(struct ledger *ledger, const char *session_id, const char *action, enum cordon_step step,
                  struct cordon_error *err);

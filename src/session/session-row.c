/* Rows about sessions: see session-row.h. */
#include <jansson.h>

#include "session/session-row.h"

#include "audit/row.h"
#include "base/json.h"
#include "policy/capability-json.h"

int session_row_write(struct ledger *ledger, const char *change, const struct session_record *record,
                      bool removes_workspace, struct cordon_error *err)
{
	struct json json;
	audit_row_begin(&json, "session", NULL, record->id);
	json_key_string(&json, "change", change);
	json_key_string(&json, "state", session_state_names[record->state]);
	if (record->why)
		json_key_string(&json, "why", record->why);
	if (record->workspace)
		json_key_path(&json, "workspace", record->workspace);
	if (removes_workspace)
		json_key_bool(&json, "removes_workspace", true);
	if (record->has_baseline) {
		json_key(&json, "baseline");
		capability_write_json(&json, &record->baseline);
	}
	return audit_row_end(&json, ledger, err);
}

static int tell_made(struct arena *arena, struct session_record *record, void *arg, struct cordon_error *err)
{
	(void)arena;
	return session_row_write(arg, "made", record, false, err);
}

int session_row_open(struct ledger *ledger, struct arena *arena, const char *data_dir, const char *id, const struct session_record *first,
                     struct session_record *ret_record, bool *ret_made, struct cordon_error *err)
{
	return registry_make(arena, data_dir, id, first, tell_made, ledger, ret_record, ret_made, err);
}

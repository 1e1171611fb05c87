/* Rows of the ledger: see row.h. */
#include "audit/row.h"

#include <stdio.h>
#include <stdlib.h>

#include "audit/ledger.h"
#include "base/error.h"
#include "base/id.h"
#include "base/json.h"
#include "base/utc.h"

#define ROW_VERSION 1   /* of what the members of a row mean; a reader passes over those that it does not know */

void audit_row_begin(struct json *json, const char *kind, const char *id, const char *session_id)
{
	char time_text[UTC_SIZE], own_id[ID_SIZE];
	if (!id) {
		id_make(own_id);
		id = own_id;
	}
	utc_now(time_text);
	json_init(json);
	json_object_begin(json);
	json_key_string(json, "row", kind);
	json_key_string(json, "id", id);
	json_key_string(json, "time", time_text);
	json_key_uint(json, "version", ROW_VERSION);
	if (session_id)
		json_key_string(json, "session", session_id);
}

int audit_row_end(struct json *json, struct ledger *ledger, struct cordon_error *err)
{
	json_object_end(json);
	size_t length = json->length;
	auto_free char *line = json_take(json);
	if (!line)
		return fail_oom(err);
	return ledger_append(ledger, line, length, err);
}

int audit_row_end_in(struct json *json, struct ledger *ledger, struct ledger_room *room, struct cordon_error *err)
{
	json_object_end(json);
	size_t length = json->length;
	auto_free char *line = json_take(json);
	if (!line)
		return fail_oom(err);
	return ledger_append_in(ledger, room, line, length, err);
}

int audit_refusal(struct ledger *ledger, const char *session_id, const char *action, enum cordon_step step,
                  struct cordon_error *err)
{
	struct json json;
	struct cordon_error unwritten;
	char id[ID_SIZE];
	id_make(id);
	err->step = step;
	snprintf(err->audit_id, sizeof(err->audit_id), "%s", id);
	audit_row_begin(&json, "denial", id, session_id);
	json_key_string(&json, "action", action);
	json_key(&json, "error");
	error_write_json(&json, err);
	/* It is refused already; a ledger that cannot say so must not hide why. */
	if (audit_row_end(&json, ledger, &unwritten) < 0)
		err->audit_id[0] = '\0';
	return -1;
}

/* Rows about sessions: see session-row.h. */
#include <jansson.h>

#include "session/session-row.h"

#include <time.h>

#include "audit/row.h"
#include "base/error.h"
#include "base/json.h"
#include "base/lock.h"
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

bool session_is_idle(const char *data_dir, const char *id, uint64_t idle_expiry_s)
{
	int64_t used_s = idle_expiry_s ? registry_used_s(data_dir, id) : 0;
	return used_s && time(NULL) - used_s >= (int64_t)idle_expiry_s;
}

struct idle {
	struct ledger *ledger;
	int64_t used_s;                         /* when it was decided that it is idle */
};

/* Under the session's lock: it may have been used or ended since. */
static int end_idle(struct arena *arena, struct session_record *record, void *arg, struct cordon_error *err)
{
	const struct idle *idle = arg;
	if (record->state == SESSION_ENDED || !record->idle_expiry_s ||
	    time(NULL) - idle->used_s < (int64_t)record->idle_expiry_s)
		return 1;
	record->state = SESSION_ENDED;
	record->why = arena_printf(arena, "no command for %ju s", (uintmax_t)record->idle_expiry_s);
	return record->why ? session_row_write(idle->ledger, "ended", record, false, err) : fail_oom(err);
}

int session_row_end_idle(struct ledger *ledger, const char *data_dir, const char *id, bool *ret_ended,
                         struct cordon_error *err)
{
	struct arena arena = { 0 };
	struct session_record record = { 0 };
	/* Before the lock is taken, which makes it new where no command was ever there to take it. */
	struct idle idle = { ledger, registry_used_s(data_dir, id) };
	struct cordon_error why;
	auto_unlock int alone = -1;
	*ret_ended = false;
	/* A command that runs holds it. */
	if (registry_exclude(data_dir, id, &alone, &why) < 0) {
		if (why.class != CORDON_E_SESSION_BUSY)
			*err = why;
		return why.class == CORDON_E_SESSION_BUSY ? 0 : -1;
	}
	int result = registry_change(&arena, data_dir, id, end_idle, &idle, &record, err);
	*ret_ended = result == 0 && record.state == SESSION_ENDED;
	arena_free(&arena);
	return result;
}

static int tell_made(struct arena *arena, struct session_record *record, void *arg, struct cordon_error *err)
{
	(void)arena;
	return session_row_write(arg, "made", record, false, err);
}

int session_row_open(struct ledger *ledger, struct arena *arena, const char *data_dir, const char *id,
                     const struct session_record *first, struct session_record *ret_record, bool *ret_made,
                     struct cordon_error *err)
{
	return registry_make(arena, data_dir, id, first, tell_made, ledger, ret_record, ret_made, err);
}

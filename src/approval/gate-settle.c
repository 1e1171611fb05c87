/* Settling: see gate-settle.h. */
#include <jansson.h>

#include "approval/gate-settle.h"

#include <string.h>

#include "approval/gate.h"
#include "audit/find.h"
#include "audit/row.h"
#include "base/json.h"
#include "base/utc.h"
#include "policy/capability-json.h"
#include "session/session-row.h"

#define ROW "approval"

static const struct {
	const char *outcome, *scope;
} written[] = {
	[APPROVAL_ONCE] = { "approved", "once" }, [APPROVAL_SESSION] = { "approved", "session" },
	[APPROVAL_DENIED] = { "denied", NULL }, [APPROVAL_TIMEOUT] = { "timeout", NULL },
	[APPROVAL_CANCELLED] = { "cancelled", NULL }, [APPROVAL_ABANDONED] = { "abandoned", NULL },
	[APPROVAL_VOID] = { "void", NULL },
};
_Static_assert(ARRAY_SIZE(written) == APPROVAL_OUTCOME_MAX, "every outcome has its words");

/* ---- the ledger -------------------------------------------------------------------------------------------------- */

/* The arguments are not in it: they may hold secrets. The hash tells which card it was, the audit id which command. */
int gate_record(const struct gate *gate, const struct gate_settling *settling, struct cordon_error *err)
{
	const struct approval_question *question = settling->question;
	const struct approval_answer *answer = settling->answer;
	struct json json;
	audit_row_begin(&json, ROW, question->id, *question->session ? question->session : question->audit_id);
	json_key_string(&json, "audit_id", question->audit_id);
	json_key_string(&json, "outcome", written[answer->outcome].outcome);
	json_key_string(&json, "scope", written[answer->outcome].scope);
	json_key_string(&json, "reason", answer->reason);
	json_key(&json, "by");
	approval_by_write(&json, &answer->by);
	json_key_string(&json, "hash", question->hash);
	json_key_string(&json, "tool", question->tool);
	json_key_string(&json, "program", question->program);
	json_key(&json, "asks_for");
	capability_write_json(&json, &question->excess);
	json_key_string(&json, "rule", question->rule);
	if (settling->recovered)
		json_key_bool(&json, "recovered", true);
	else
		json_key_uint(&json, "waited_ms", settling->waited_ms);
	return audit_row_end(&json, gate->ledger, err);
}

/* ---- the record -------------------------------------------------------------------------------------------------- */

struct applying {
	const struct gate *gate;
	const struct gate_settling *settling;
	bool paused;
};

static int apply(struct arena *arena, struct session_record *record, void *arg, struct cordon_error *err)
{
	struct applying *applying = arg;
	enum session_state before = record->state;
	int result = approval_apply(arena, record, applying->settling->question, applying->settling->answer);
	applying->paused = before != record->state;
	if (result < 0)
		return fail_oom(err);
	return applying->paused && session_row_write(applying->gate->ledger, "paused", record, false, err) < 0 ? -1 :
	                                                                                                         result;
}

int gate_settle(const struct gate *gate, struct arena *arena, const struct gate_settling *settling,
                struct session_record *ret_record, bool *ret_paused, struct cordon_error *err)
{
	struct applying applying = { .gate = gate, .settling = settling };
	struct session_record record;
	const char *session = settling->question->session;
	bool recorded = false;
	/* The process that asked may have written it before it ended. */
	if (settling->recovered && ledger_find(gate->data_dir, ROW, settling->question->id, &recorded, err) < 0)
		return -1;
	if (!recorded && gate_record(gate, settling, err) < 0)
		return -1;
	if (!*session)
		return 0;
	if (registry_change(arena, gate->data_dir, session, apply, &applying, &record, err) < 0)
		return -1;
	if (ret_record)
		*ret_record = record;
	if (ret_paused)
		*ret_paused = applying.paused;
	return 0;
}

/* ---- after the dead ---------------------------------------------------------------------------------------------- */

static int last_answer(struct arena *arena, const struct approval_wait *wait, const char *hash,
                       struct approval_answer *ret_answer)
{
	struct approval_answer none = { .outcome = APPROVAL_ABANDONED, .hash = hash,
	                                .reason = "the command that asked had ended before the question was answered" };
	char now[UTC_SIZE];
	bool found = false;
	utc_now(now);
	none.time = now;
	if (approval_by_process(arena, "sweep", 0, &none.by) < 0 ||
	    approvals_take(arena, wait, NULL, ret_answer, &found, NULL) < 0)
		return -1;
	/* From now on it cannot be answered. */
	if (!found && approvals_take(arena, wait, &none, ret_answer, &found, NULL) < 0)
		return -1;
	return found ? 0 : -1;
}

static bool settle_stale(void *arg, struct arena *arena, const struct approval_wait *wait,
                         const struct approval_question *question)
{
	struct approval_question unreadable = { .session = "", .audit_id = "", .tool = "", .program = "", .hash = "" };
	struct approval_answer answer;
	struct cordon_error err;
	struct gate_settling settling = { .question = question ? question : &unreadable, .answer = &answer,
	                                  .recovered = true };
	memcpy(unreadable.id, wait->id, sizeof(unreadable.id));
	if (last_answer(arena, wait, settling.question->hash, &answer) < 0)
		return false;
	if (!question || strcmp(answer.hash, question->hash)) {
		answer.outcome = APPROVAL_VOID;
		answer.reason = question ? "the answer was for another content" : "the question could not be read";
	} else if (answer.outcome == APPROVAL_ONCE) {
		answer.outcome = APPROVAL_ABANDONED;
		answer.reason = "approved once, but the command that asked was gone";
	}
	if (gate_settle(arg, arena, &settling, NULL, NULL, &err) == 0)
		return true;
	/* A session that was removed has nothing to be applied to. */
	return err.class == CORDON_E_NOT_FOUND || err.class == CORDON_E_INVALID_REQUEST;
}

void gate_sweep(const struct gate *gate)
{
	approvals_each_stale(gate->data_dir, settle_stale, (void *)(uintptr_t)gate);
}

/* The public calls of the approval gate: whom to ask, what waits, answering it. */
#include <string.h>

#include "api/policy.h"
#include "base/json.h"
#include "base/utc.h"
#include "approval/gate.h"
#include "audit/row.h"
#include "walk.h"
#include "approval/approvals.h"

void cordon_approver(struct cordon *cordon, cordon_approver_fn fn, void *arg)
{
	if (!cordon)
		return;
	cordon->approver.fn = fn;
	cordon->approver.arg = arg;
}

void cordon_approver_interrupt(struct cordon *cordon, int fd)
{
	if (cordon)
		cordon->approver.interrupt_fd = fd;
}

const char *cordon_card_text(const struct cordon_card *card, const char *name)
{
	if (!card || !name)
		return NULL;
	const struct {
		const char *name, *text;
	} members[] = {
		{ "id", card->id }, { "hash", card->hash }, { "session", card->session }, { "text", card->text },
		{ "json", card->json },
	};
	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		if (!strcmp(members[i].name, name))
			return members[i].text;
	return NULL;
}

uint64_t cordon_card_timeout_ms(const struct cordon_card *card)
{
	return card ? card->timeout_ms : 0;
}

int cordon_card_settled_fd(const struct cordon_card *card)
{
	return card ? card->settled_fd : -1;
}

static void describe(void *arg, const struct approval_question *question)
{
	struct json *json = arg;
	auto_free char *text = approval_describe(question);
	if (text)
		json_verbatim(json, text);
	else
		json->failed = true;
}

int cordon_approvals_list(struct cordon *cordon, char **ret_json, struct cordon_error *err)
{
	struct json json;
	if (call_check(err, cordon, ret_json) < 0 || policy_check(cordon, err) < 0)
		return -1;
	const struct gate gate = handle_gate(cordon);
	gate_sweep(&gate);
	json_init(&json);
	json_object_begin(&json);
	json_key(&json, "approvals");
	json_array_begin(&json);
	if (approvals_each(cordon->data_dir, describe, &json, err) < 0) {
		json_free(&json);
		return -1;
	}
	json_array_end(&json);
	json_object_end(&json);
	char *text = json_take(&json);
	if (!text)
		return fail_oom(err);
	*ret_json = text;
	return 0;
}

static int answer_card(struct cordon *cordon, const char *card, const char *hash, enum cordon_answer answer,
                       const char *reason, struct cordon_error *err)
{
	static const enum approval_outcome outcomes[] = {
		[CORDON_APPROVED_ONCE] = APPROVAL_ONCE, [CORDON_APPROVED_SESSION] = APPROVAL_SESSION,
		[CORDON_DENIED] = APPROVAL_DENIED,
	};
	struct arena arena = { 0 };
	char now[UTC_SIZE];
	size_t length = reason ? strlen(reason) : 0;
	if (length >= APPROVAL_REASON_MAX)
		return fail(err, CORDON_E_INVALID_REQUEST, 0, card, "the reason is longer than %d bytes",
		            APPROVAL_REASON_MAX - 1);
	const struct gate gate = handle_gate(cordon);
	gate_sweep(&gate);
	utc_now(now);
	struct approval_answer given = { .outcome = outcomes[answer], .reason = reason ? reason : "", .time = now };
	int result = approval_by_process(&arena, "queue", 0, &given.by) < 0 ?
	             fail_oom(err) : approvals_answer(&arena, cordon->data_dir, card, hash, &given, err);
	arena_free(&arena);
	return result;
}

int cordon_approvals_answer(struct cordon *cordon, const char *card, const char *hash, enum cordon_answer answer,
                            const char *reason, struct cordon_error *err)
{
	static const char *const actions[] = {
		[CORDON_APPROVED_ONCE] = "approvals approve", [CORDON_APPROVED_SESSION] = "approvals approve",
		[CORDON_DENIED] = "approvals deny",
	};
	if (call_check(err, cordon, card) < 0)
		return -1;
	if (answer <= CORDON_UNANSWERED || answer >= CORDON_ANSWER_MAX)
		return fail(err, CORDON_E_INVALID_REQUEST, 0, card, "this is not an answer");
	if (policy_check(cordon, err) < 0)
		return -1;
	if (answer_card(cordon, card, hash, answer, reason, err) < 0)
		return audit_refusal(cordon->ledger, NULL, actions[answer], CORDON_STEP_CAPABILITY, err);
	return 0;
}

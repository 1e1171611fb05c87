/* Settling a question: the rows of the ledger and the session's record after it was answered. Done by the process that
 * asked, or by another process if that one has ended. */
#pragma once
#include "approval/approvals.h"

struct gate;

struct gate_settling {
	const struct approval_question *question;
	const struct approval_answer *answer;
	uint64_t waited_ms;
	bool recovered;                         /* for one that died */
};

/* The row, then the record: no grant without its row. Where it fails halfway, doing it again for one that died does the
 * rest and no more. *ret_record is the session's record afterwards, and *ret_paused whether this paused it; untouched
 * without a session. */
int gate_settle(const struct gate *gate, struct arena *arena, const struct gate_settling *settling,
                struct session_record *ret_record, bool *ret_paused, struct cordon_error *err) must_check;

/* The row alone, for what never was in the queue. */
int gate_record(const struct gate *gate, const struct gate_settling *settling, struct cordon_error *err) must_check;
